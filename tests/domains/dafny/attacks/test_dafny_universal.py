"""Universal answers: what they are made of, how they are counted, and that none passes."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from dafny_judge import Judge
from dafny_programs import EXTENDED, HOLE, LEMMAS, SORT, STACK

from rlvr_exp.domains.dafny.problem import DafnyExample, DafnyProblem, RoleExample
from rlvr_exp.domains.dafny.universal import (
    ANSWERS,
    Tally,
    bodies,
    judge_all,
    refused,
    renamed,
    report,
    sets_of,
    such_that,
    tasks_of,
)
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.verifiers.base import Request, Verdict

ABS = DafnyExample("abs", "method Abs(x: int) returns (y: int)\n", "  ensures y >= 0\n", "{ y := 3; }", "{ y := 3; }")


def task(role: str = "writer") -> Task:
    part = RoleExample(role, ABS)
    return Task(part.id, "", 0.0, part, part.problem)


class FakeVerifier:
    """Passes candidates that contain a word."""

    def __init__(self, word: str):
        self.word, self.texts = word, list[str]()

    def as_ready(self, requests: Sequence[Request]) -> Iterator[tuple[int, Verdict]]:
        for index, request in enumerate(requests):
            self.texts.append(request.candidate.text)
            yield index, Verdict("passed") if self.word in request.candidate.text else Verdict("failed", "verify")


def test_there_are_answers_of_every_kind_and_they_have_names_of_their_own() -> None:
    assert len(ANSWERS) >= 60 and len(dict(ANSWERS)) == len(ANSWERS)


def test_an_answer_fills_holes_and_else_begins_every_body() -> None:
    assert bodies("method A() ensures false", "U();", "lemma U() { }").split() == (
        "method A() ensures false { U(); } lemma U() { }".split()
    )
    assert bodies("method A() { x(); }", "U();").split() == "method A() { U(); x(); }".split()


def test_the_postcondition_is_copied() -> None:
    given = "method M() returns (a: int, b: int) ensures a > b ensures b > 3"
    assert such_that(given).split() == f"{given} {{ a, b :| (a > b) && (b > 3); }}".split()


def test_declarations_get_names_that_no_program_has() -> None:
    rename = renamed("datatype O = No | Yes(v: int) lemma U() { }")
    assert rename("U(); o.Yes? && O.No == x;") == "Uq_U(); o.Uq_Yes? && Uq_O.Uq_No == x;"


def test_a_pass_is_counted_apart_on_a_task_that_a_trivial_answer_solves() -> None:
    rows = []
    found = judge_all("s/writer", [task()], FakeVerifier("{ y := x; }"), {}, rows.append)
    assert found.weak == {"abs/writer": "{ y := x; }"} and not found.passed
    found = judge_all("s/writer", [task()], FakeVerifier(":|"), {}, rows.append)
    assert not found.weak and found.on_strong_tasks
    assert Tally(passed=["a on t", "b on u"], weak={"t": "{ }"}).on_strong_tasks == ["b on u"]


def test_a_second_run_judges_nothing_again() -> None:
    rows: list[dict[str, str]] = []
    first = judge_all("s/writer", [task()], FakeVerifier("{ y := 0; }"), {}, rows.append)
    known = {(row["set"], row["task"], row["answer"]): row for row in rows}
    verifier = FakeVerifier("")
    second = judge_all("s/writer", [task()], verifier, known, rows.append)
    assert second == first and not verifier.texts and first.judged < first.candidates == len(ANSWERS)


def test_the_report_has_a_row_for_each_set_and_names_what_passed() -> None:
    tally = Tally(2, 9, 4, 5, ["cheat on t", "cheat on u"], {"u": "{ }"})
    text = report({"clover/writer": tally})
    assert "| clover/writer | 2 | 1 | 9 | 4 | 5 | 1 | 1 |" in text
    assert "passed, clover/writer: cheat on t" in text and "weak, clover/writer: u by { }" in text


def test_the_sets_of_a_folder(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "clover" / "textbook_algo" / name).mkdir(parents=True)
        (tmp_path / "clover" / "textbook_algo" / name / f"{name}_strong.dfy").write_text("method M() { }")
    assert sets_of("") == {"embedded": ""}
    assert list(sets_of(str(tmp_path))) == ["embedded", "clover"]


@pytest.mark.slow
def test_no_answer_passes_on_a_sample_of_the_embedded_tasks(judge: Judge) -> None:
    for role, tasks in tasks_of("", 3).items():
        found = judge_all(role, tasks, judge.verifier, {}, lambda row: None)
        assert not found.on_strong_tasks and found.candidates == 3 * len(ANSWERS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "given", [SORT, STACK, LEMMAS, HOLE, EXTENDED], ids=["sort", "stack", "lemmas", "hole", "extended"]
)
def test_no_answer_passes_on_programs_of_every_shape(judge: Judge, given: str) -> None:
    candidates = [(name, DafnyProblem(given), answer(given)) for name, answer in ANSWERS]
    left = [
        (name, Request(problem, Candidate(text))) for name, problem, text in candidates if not refused(problem, text)
    ]
    verdicts = judge.verifier.verify([request for _, request in left])
    passed = [name for (name, _), verdict in zip(left, verdicts, strict=True) if verdict.outcome == "passed"]
    assert set(passed) <= {name for name, _ in left if "postcondition" in name or "such that" in name}


def test_an_answer_that_is_no_cheat_is_counted_as_a_pass(judge: Judge) -> None:
    """The check can fail: a program that an empty body proves passes with an answer that only adds an empty prefix."""
    given = "lemma Easy() ensures 1 + 1 == 2 { }"
    assert judge(given, bodies(given, "assert true;", "lemma U() { }")).outcome == "passed"
