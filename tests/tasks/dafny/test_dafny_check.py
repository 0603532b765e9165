"""The check of Dafny data: its counts, and its exit codes."""

from dataclasses import replace
from pathlib import Path

import pytest
from surface_programs import GHOSTS, MAX, SUM

from rlvr_exp.tasks.dafny import check
from rlvr_exp.tasks.dafny.load import survey


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = {"sum": SUM, "max": MAX, "ghosts": GHOSTS, "broken": "method {", "odd": "method M() { § }"}
    for name, text in texts.items():
        (tmp_path / f"{name}.dfy").write_text(text, encoding="utf-8")
    return tmp_path


def test_counts_programs_examples_pairs_and_reasons(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main([str(folder)]) == 0
    said = capsys.readouterr().out
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


def test_bad_data_end_with_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.jsonl").write_text("{}\n{\n")
    assert check.main([str(tmp_path)]) == 2 and "faults: 2" in capsys.readouterr().out
