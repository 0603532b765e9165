"""Usable examples under the real Dafny: proved, accepted by the guards, resolved without annotations."""

import json
from pathlib import Path

import pytest

from rlvr_exp.core.errors import InputError
from rlvr_exp.tasks.dafny.load import load
from rlvr_exp.verifiers.dafny import rows, usable_examples
from rlvr_exp.verifiers.dafny.resolve import Resolver
from rlvr_exp.verifiers.dafny.tool import Tool

SUM_TO = """method Up(n: nat) returns (m: nat)
  ensures m == n
{
  m := 0;
  while m < n
    invariant m <= n
  { m := m + 1; }
}
"""
PROGRAMS = {
    "good": SUM_TO,
    "unproved": SUM_TO.replace("invariant m <= n", ""),
    "assumes": SUM_TO.replace("invariant m <= n", "").replace("m + 1; }", "m + 1; }\n  assume m == n;"),
    "leans": "method N()\n  ensures true\n{ ghost var g := 1; if g == 1 { assert g > 0; } }\n",
}
BEGINS = {
    "good": "",
    "unproved": "the program is not proved",
    "assumes": "the guards refuse the gold, assume",
    "leans": "the body alone does not resolve",
}


def test_reasons_of_each_role_under_dafny(dafny: Tool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in PROGRAMS.items():
        (tmp_path / f"{name}.dfy").write_text(text)
    reasons, examples = tmp_path / "reasons.jsonl", tmp_path / "examples.jsonl"
    said = usable_examples.main(
        [str(tmp_path), "--reasons", str(reasons), "--examples", str(examples), "--workers", "1"]
    )
    assert said == 0
    found = {row["id"].partition("/")[0]: row for row in map(json.loads, reasons.open())}
    for name, reason in BEGINS.items():
        for role in ("writer", "annotator"):
            why = found[name][role]
            assert why.startswith(reason) and bool(why) == bool(reason), found[name]
    assert "usable writer pairs: 1, left out: 3" in capsys.readouterr().out
    assert [(one.id, one.gold) for one in load(examples)] == [("good/Up", SUM_TO)]


@pytest.mark.parametrize("warm", [True, False])
def test_the_front_end_alone_tells_what_resolves(dafny: Tool, warm: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not warm:
        monkeypatch.setattr("rlvr_exp.verifiers.dafny.tool._library", lambda program: "")
    with Resolver() as resolver:
        assert resolver.fault(PROGRAMS["unproved"]) == ""
        assert "unresolved identifier: k" in resolver.fault(SUM_TO.replace("m + 1", "k + 1"))


def test_wrong_variants_become_rows(tmp_path: Path) -> None:
    weak = SUM_TO.replace("m == n", "m <= n")
    for name, text in {"textbook_algo/up/up_strong.dfy": SUM_TO, "adversarial_incorrect/C2/up/up_C1.dfy": weak}.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    (row,) = rows.rows(tmp_path, "wrong")
    assert row == {"id": "C2/up", "program": SUM_TO, "candidate": weak, "weakened": True}


def test_tests_that_assert_become_rows_and_those_to_be_run_do_not(tmp_path: Path) -> None:
    asserts = SUM_TO + "method UpTest() { var m := Up(3); assert m == 3; } // no expect\n"
    tests = {"1": asserts, "2": asserts.replace("assert", "expect"), "3": asserts.replace("assert m == 3", "print m")}
    for name, test in tests.items():
        for folder, text in {"src": SUM_TO, "test": test}.items():
            (tmp_path / "MBPP-DFY-50" / folder).mkdir(parents=True, exist_ok=True)
            (tmp_path / "MBPP-DFY-50" / folder / f"task_id_{name}.dfy").write_text(text)
    (row,) = rows.rows(tmp_path, "tests")
    assert row == {"id": "MBPP-DFY-50/task_id_1", "program": SUM_TO, "candidate": asserts}


def test_a_folder_without_tests_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="MBPP-DFY"):
        list(rows.rows(tmp_path, "tests"))
