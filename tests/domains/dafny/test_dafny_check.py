"""The check of Dafny data: its counts, and what is at fault."""

from dataclasses import replace
from pathlib import Path

import pytest
from makers import made
from surface_programs import GHOSTS, MAX, SUM

from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.domains.dafny import usable as check
from rlvr_exp.domains.dafny.load import survey


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = {"sum": SUM, "max": MAX, "ghosts": GHOSTS, "broken": "method {", "odd": "method M() { § }"}
    (tmp_path / "data").mkdir()
    for name, text in texts.items():
        (tmp_path / "data" / f"{name}.dfy").write_text(text, encoding="utf-8")
    return tmp_path / "data"


def test_counts_programs_examples_pairs_and_reasons(folder: Path) -> None:
    said, counts = made(folder.parent, "dafny_check", f"prepare.path={folder}")
    assert counts == {"programs": 5, "examples": 5}
    for line in (
        "programs: 5, that lex: 4, without an example: 2 cannot be read",
        "put together otherwise than given: 0\n",
        "declared with a body: 4 method, 1 function, 1 lemma",
        "writer pairs: 3, left out: 2\n    2 a lemma or ghost method",
        "annotator pairs: 5 (1 with nothing to add), left out: 0",
        "groups that stay together: 3, the largest of 2",
    ):
        assert line in said, said


def test_examples_that_are_not_their_program_are_told(folder: Path) -> None:
    found = survey(folder)
    assert check.other_text(found) == [] == check.changed(found)
    found.examples[0] = replace(found.examples[0], after="")
    assert check.other_text(found) == [found.examples[0].id]


def test_a_program_that_is_put_together_otherwise_stops_the_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "changed", lambda found: ["sum"])
    with pytest.raises(GuardStop, match="put together otherwise than given: 1\n    sum"):
        made(folder.parent, "dafny_check", f"prepare.path={folder}")


def test_bad_data_are_bad_input(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text("{}\n{\n")
    with pytest.raises(InputError) as found:
        made(tmp_path, "dafny_check", f"prepare.path={tmp_path}")
    assert len(found.value.problems) == 2
