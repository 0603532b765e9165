"""The benchmark of ast-grep counts the checks of a catalogue, and a fault of a rule stops it."""

import json
from pathlib import Path

import pytest
from functions import measured

from rlvr_exp.core.errors import GuardStop

ENTRY = {
    "id": "no-print",
    "language": "python",
    "check": "fix-exact",
    "rule": "id: no-print\nlanguage: python\nrule:\n  pattern: print($A)\nfix: log($A)\n",
    "diff_before": ["print(1)"],
    "diff_after": ["log(1)"],
}


def test_a_rule_that_does_not_do_what_its_catalogue_says_stops_the_run(tmp_path: Path) -> None:
    words = (f"benchmark.path={tmp_path}", "sandbox.workers=1")
    (tmp_path / "extracted.jsonl").write_text(json.dumps(ENTRY))
    assert measured(tmp_path, "ast_grep", *words) == ("    1 fix-exact, passed", {"fix-exact, passed": 1})
    (row,) = map(json.loads, (tmp_path / "rows.jsonl").read_text().splitlines())
    assert row["id"] == "python/no-print" and row["action"] == {"rule_yaml": ENTRY["rule"]}
    (tmp_path / "extracted.jsonl").write_text(json.dumps(ENTRY | {"diff_after": ["log(2)"]}))
    with pytest.raises(GuardStop, match="FAULT fix-exact, wrong_answer: python/no-print"):
        measured(tmp_path, "ast_grep", *words)
