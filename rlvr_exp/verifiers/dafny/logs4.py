"""The output of Dafny 4.x (`dafny verify --log-format=text`) as the same data. Written from its reference manual and
the expected outputs of its test suite; not run by us.

Exit codes: 0 success, 1 bad options, 2 the program does not parse or resolve, 4 not everything proved.
"""

import re
from collections.abc import Iterable

from rlvr_exp.verifiers.dafny.error_kinds import kind_of
from rlvr_exp.verifiers.dafny.logs import Fault, Procedure, Report

_FAULT = re.compile(r"^\S*?\((\d+),\d+\): Error: (.*)$")
_RESULT = re.compile(r"^Results for (\S+) \(([\w -]+)\)$")
_OUTCOME = re.compile(r"^\s*Overall outcome: (\w+)$")
_BATCH = re.compile(r"^\s+Outcome: ")
_COUNTED = re.compile(r"^\d+ parse errors? detected in ", re.MULTILINE)
_UNFINISHED = re.compile(r"Warning: .*(?:loop|forall statement) has no body", re.MULTILINE)
_FINISHED = re.compile(r"^Dafny program verifier finished with (\d+) verified, 0 errors$", re.MULTILINE)
_RESULTS = {
    "Correct": "verified",
    "TimedOut": "timed out",
    "OutOfResource": "out of resource",
    "OutOfMemory": "out of memory",
}
_PARTS = {"correctness": "Impl", "well-formedness": "CheckWellformed"}


def read(output: str, code: int) -> Report:
    """Parse an output and its exit code."""
    stage = "verify"
    if code not in (0, 4):
        stage = "parse" if _COUNTED.search(output) else "resolve"
    lines = output.split("\n")
    procedures = tuple(_procedures(lines))
    proved = _FINISHED.search(output) is not None and code == 0
    good = sum(procedure.result == "verified" for procedure in procedures)
    return Report(
        stage, tuple(_faults(lines, stage)), procedures, good if proved else -1, len(_UNFINISHED.findall(output))
    )


def _procedures(lines: Iterable[str]) -> Iterable[Procedure]:
    name, part, batches = "", "", 0
    result = "no result"
    for line in lines:
        begun, outcome = _RESULT.match(line), _OUTCOME.match(line)
        if begun:
            if name:
                yield Procedure(part, name, batches, result)
            name, part, batches, result = begun[1], _PARTS.get(begun[2], begun[2]), 0, "no result"
        elif outcome:
            result = _RESULTS.get(outcome[1], outcome[1].lower())
        elif _BATCH.match(line):
            batches += 1
    if name:
        yield Procedure(part, name, batches, result)


def _faults(lines: Iterable[str], stage: str) -> Iterable[Fault]:
    for line in lines:
        found = _FAULT.match(line)
        if found:
            yield Fault(int(found[1]), kind_of(found[2]) if stage == "verify" else "", found[2])
