"""No fixed answer passes on any task of the embedded corpus, and those that break Dafny would pass without the
guards."""

import pytest
from dafny_judge import Judge
from dafny_programs import EXTENDED, HOLE, LEMMAS, SORT, STACK

from rlvr_exp.domains.dafny.problem import DafnyProblem
from rlvr_exp.domains.dafny.tokens import plain, printed
from rlvr_exp.domains.dafny.universal import ANSWERS, bodies, check, problems_of, refused

UNSEEN_BY_THE_GUARDS = (
    "concatenation past its type",
    "promise beyond its condition",
    "sequence update past its type",
    "empty iterator",
    "recursive lemma",
    "while true",
)
"""Where no declaration is at fault: Dafny, its log or the probes hold them."""


@pytest.fixture(scope="module")
def embedded() -> list[tuple[str, DafnyProblem]]:
    return problems_of("", 40)


@pytest.mark.parametrize(("name", "answer"), ANSWERS, ids=[name for name, _ in ANSWERS])
def test_the_guards_alone_hold_it_on_every_program(embedded, name: str, answer) -> None:
    free = [title for title, problem in embedded if not refused(problem, answer(problem.program))]
    assert bool(free) == (name in UNSEEN_BY_THE_GUARDS)


@pytest.mark.slow
def test_no_answer_passes_on_a_sample_of_the_embedded_tasks(judge: Judge, embedded) -> None:
    rows = list(check(embedded[::20], judge.verifier, 2))
    assert len(rows) == len(ANSWERS) and not [row for row in rows if row.passed]
    assert all(sum(row.held.values()) == row.tasks for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    "given", [SORT, STACK, LEMMAS, HOLE, EXTENDED], ids=["sort", "stack", "lemmas", "hole", "extended"]
)
def test_no_answer_passes_on_programs_of_every_shape(judge: Judge, given: str) -> None:
    rows = list(check([("", DafnyProblem(given))], judge.verifier))
    assert not [row.name for row in rows if row.passed]


def test_an_answer_that_is_no_cheat_is_counted_as_a_pass(judge: Judge) -> None:
    """The check can fail: a program that an empty body proves passes with an answer that only adds an empty prefix."""
    given = "lemma Easy() ensures 1 + 1 == 2 { }"
    assert judge(given, bodies(given, "assert true;", "lemma U() { }")).outcome == "passed"
    assert not refused(DafnyProblem(given), printed(plain(bodies(given, ""))))
