"""Parsing Dafny's output: only an explicit "verified" is a proof. Logs of 2.3 are its own; those of 4.x are quoted from
the expected outputs of its test suite, since no 4.x was run here."""

from rlvr_exp.domains.dafny import logs

PROVED = """
Verifying Impl$$_module.__default.Abs ...
  [0.201 s, 2 proof obligations]  verified

Verifying CheckWellformed$$_0_M.Some__Class.__ctor ...
  [0.1 s, 1 proof obligation]  verified

Dafny program verifier finished with 2 verified, 0 errors
"""
EXHAUSTED = """
Verifying Impl$$_module.__default.Hard ...
  [0.232 s, 1 proof obligation]  errors

Dafny program verifier finished with 0 verified, 0 errors
"""
FAILED = """
Verifying Impl$$_module.__default.A ...
  [0.070 s, 11 proof obligations]  error
x1.dfy(9,26): Error BP5004: This loop invariant might not hold on entry.
x1.dfy(9,26): Related message: loop invariant violation
Execution trace:
    (0,0): anon0

Dafny program verifier finished with 0 verified, 1 error
"""
OUT_OF_RESOURCE = """
Verifying Impl$$_module.__default.Hard ...
  [1.522 s, 1 proof obligation]  out of resource
x1.dfy(1,6): Verification out of resource (Impl$$_module.__default.Hard)
x1.dfy(4,0): Out of resource on BP5003: A postcondition might not hold on this return path.
x1.dfy(3,24): Related location: This is the postcondition that might not hold.

Dafny program verifier finished with 0 verified, 0 errors
"""


def test_proved_with_names_as_declared() -> None:
    report = logs.read_23(PROVED, 0)
    assert report.proved
    assert [procedure.name for procedure in report.procedures] == ["Abs", "M.Some_Class._ctor"]


def test_zero_errors_without_verified_another_exit_code_or_count_are_no_proof() -> None:
    report = logs.read_23(EXHAUSTED, 0)
    assert not report.proved and report.bucket == "verify"
    assert not logs.read_23(PROVED, 4).proved
    assert not logs.read_23(PROVED.replace("finished with 2", "finished with 3"), 0).proved
    assert not logs.read_23(PROVED.replace("  [0.1 s, 1 proof obligation]  verified\n", ""), 0).proved
    assert not logs.read_23("", 0).proved and not logs.read_23("Dafny program verifier finished with", 0).proved


def test_unproved_obligation_has_kind_and_line() -> None:
    report = logs.read_23(FAILED, 4)
    (fault,) = report.faults
    assert (report.bucket, fault.line, fault.kind) == ("verify", 9, "invariant-entry")
    assert report.summary().startswith("line 9: invariant-entry: BP5004")


def test_out_of_resource_is_a_timeout_unless_something_fails_for_sure() -> None:
    assert logs.read_23(OUT_OF_RESOURCE, 0).bucket == "timeout"
    assert logs.read_23(OUT_OF_RESOURCE + FAILED, 4).bucket == "verify"


def test_stages_before_the_proofs() -> None:
    parse = "c.dfy(1,10): Error: closeparen expected\n1 parse errors detected in c.dfy\n"
    resolve = "c.dfy(2,13): Error: unresolved identifier: x\n1 resolution/type errors detected in c.dfy\n"
    assert logs.read_23(parse, 2).bucket == "parse" and logs.read_23(resolve, 2).bucket == "resolve"
    assert logs.read_23(resolve, 2).faults[0].line == 2


def test_loops_without_body_are_counted() -> None:
    assert logs.read_23("t.dfy(1,13): Warning: note, this loop has no body\n" + PROVED, 0).bodyless == 1


def test_version_4_needs_exit_code_last_line_and_every_outcome() -> None:
    said = "Results for M (correctness)\n  Overall outcome: Correct\n\n"
    last = "\nDafny program verifier finished with 1 verified, 0 errors\n"
    assert logs.read_4(said + last, 0).proved
    assert not logs.read_4(said + last, 4).proved
    assert not logs.read_4(said.replace("Correct", "Errors") + last, 0).proved
    assert not logs.read_4(said + last.replace("0 errors", "0 errors, 1 time out"), 0).proved
    late = said.replace("Correct", "OutOfResource") + last.replace("1 verified", "0 verified")
    assert logs.read_4(late, 4).bucket == "timeout"
    broken = "c.dfy(1,3): Error: rbrace expected\n1 parse errors detected in c.dfy\n"
    assert logs.read_4(broken, 2).bucket == "parse"


def test_names_are_read_as_they_are_written_in_the_program() -> None:
    written = {
        "_module.__default._default_Main": "Main",
        "_1_M.C.it_k__k": "M.C.it'_k",
        "_module.__default.Is_q": "Is?",
    }
    for label, name in written.items():
        log = f"Verifying Impl$${label} ...\n  [0.1 s, 1 proof obligation]  verified\n"
        assert [one.name for one in logs.read_23(log, 0).procedures] == [name]
