"""The candidates of a validation: which kinds a task gets, and what answers they are."""

from types import SimpleNamespace

import pytest

from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.stages.validate import validation_candidates
from rlvr_exp.tasks.base import Candidate, Task

BEFORE, AFTER = "def f(x):\n    return x\n", "def f(x):\n    return x + 1\n"
TESTS = "from solution import f\n\ndef test_f():\n    assert f(1) == 2\n"
DOMAIN = SimpleNamespace(parse=lambda text, task: Candidate(text))


def candidates(gold: str | None, answer: str, tests: str, after: str = AFTER) -> list[tuple[str, str, str]]:
    """(kind, variant, form of the answer) of each."""
    task = Task("a", "family", 0.5, None, AstGrepProblem("python", BEFORE, after, tests, answer=answer), gold)
    return [(one.kind, one.variant, one.task.problem.answer) for one in validation_candidates(DOMAIN, task, 2)]


@pytest.mark.parametrize(("answer", "gold"), [("text", AFTER), ("action", "{}"), ("action", None)])
def test_edits_with_tests_have_stub_programs_and_mutants_as_edited_texts(answer, gold):
    found = candidates(gold, answer, TESTS)
    assert {("hollow", "return_none", "text"), ("hollow", "empty", "text")} <= set(found)
    assert sum(kind == "mutant" for kind, _, _ in found) == 2
    assert (("gold", "", answer) in found) == (gold is not None)


def test_edits_without_tests_have_the_empty_answer_alone():
    assert candidates("{}", "action", "") == [("gold", "", "action"), ("hollow", "empty", "action")]
    assert candidates("{}", "action", TESTS, after="") == [("gold", "", "action"), ("hollow", "empty", "action")]
