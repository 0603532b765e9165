"""Usable examples under the real Dafny: proved, accepted by the guards, resolved without annotations."""

import json
from pathlib import Path

import pytest
from makers import made

from rlvr_exp.domains.dafny.load import load
from rlvr_exp.domains.dafny.tool import Tool

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


@pytest.mark.slow
def test_reasons_of_each_role_under_dafny(dafny: Tool, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, text in PROGRAMS.items():
        (tmp_path / "in" / f"{name}.dfy").write_text(text)
    text, counts = made(tmp_path, "dafny_usable", f"prepare.path={tmp_path}/in", "sandbox.workers=1")
    found = {row["id"].partition("/")[0]: row for row in map(json.loads, (tmp_path / "reasons.jsonl").open())}
    for name, reason in BEGINS.items():
        for role in ("writer", "annotator"):
            why = found[name][role]
            assert why.startswith(reason) and bool(why) == bool(reason), found[name]
    assert "usable writer pairs: 1, left out: 3" in text and counts["usable"] == 1
    assert [(one.id, one.gold) for one in load(tmp_path / "examples.jsonl")] == [("good/Up", SUM_TO)]
