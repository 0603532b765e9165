"""Training tasks whose tests cannot judge are left out: a gold that does not pass, a stub program that does."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.stages.shared.reference_checks import WEAK, unfit
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.verifiers.suite.verifier import PytestSuite

GOLD = "def f(x):\n    return x + 1\n"
TEST = "from solution import f\ndef test_f(): assert {}\n"


def task(name: str, test: str, gold: str = GOLD) -> Task:
    return Task(name, "family", 0.5, None, PytestProblem(TEST.format(test), reference=gold), gold)


TASKS = [
    task("fine", "f(1) == 2"),
    task("weak", "f(1) is None or f(1) == 2"),
    task("wrong gold", "f(1) == 3"),
    task(
        "looks at frames",
        "f(1) == 2 and __import__('inspect').stack()[0].function == 'test_f' and f.__globals__ is None",
    ),
    Task("cases", "family", 0.5, None, PythonProblem("f", (Case((1,), 3),)), GOLD),
]


@pytest.fixture(scope="module")
def verifier():
    sandbox = {"cpu_s": 2.0, "wall_s": 20.0, "memory_mb": 512, "output_kb": 64, "level": "auto", "require": ""}
    with PytestSuite(SimpleNamespace(workers=2, **sandbox), cpu_s=0.0, wall_s=0.0, memory_mb=0) as verifier:
        yield verifier


def screened(verifier: PytestSuite, keep_weak: bool) -> tuple[dict[str, str], list[tuple[int, int]]]:
    told: list[tuple[int, int]] = []
    context = SimpleNamespace(progress=lambda kind, name, done, total: told.append((done, total)))
    domain = SimpleNamespace(parse=lambda text, task: Candidate(text))
    return unfit(domain, verifier, TASKS, keep_weak, context), told


def test_what_is_left_out_and_why(verifier):
    found, told = screened(verifier, keep_weak=False)
    assert found.keys() == {"weak", "wrong gold", "looks at frames"}
    assert found["weak"] == WEAK and found["wrong gold"].startswith("failed (wrong_answer)")
    assert told[0][0] == 0 and told[-1][0] == told[-1][1] > len(TASKS)


def test_weak_tasks_can_be_kept(verifier):
    assert screened(verifier, keep_weak=True)[0].keys() == {"wrong gold", "looks at frames"}


def test_tasks_that_no_tests_judge_are_none_of_its_business(verifier):
    context = SimpleNamespace(progress=lambda **_: pytest.fail("nothing to report"))
    assert unfit(SimpleNamespace(), verifier, TASKS[-1:], False, context) == {}


BEFORE = "def f(x):\n    return 0\n"


def edit(name: str, test: str, answer: str = "action", proved: bool = False) -> Task:
    problem = AstGrepProblem("python", BEFORE, GOLD, TEST.format(test), answer=answer, proved=proved)
    return Task(name, "family", 0.5, None, problem, "{}" if answer == "action" else GOLD)


def test_tests_of_edits_are_looked_at_as_those_of_programs_are():
    pytest.importorskip("ast_grep_py")
    from rlvr_exp.domains.edits.verifier import AstGrep

    weak, wrong = "f(1) is None or f(1) == 2", "f(1) == 3"
    tasks = [edit("fine", "f(1) == 2"), edit("weak", weak), edit("weak text", weak, "text"), edit("wrong", wrong)]
    tasks += [edit("proved", weak, proved=True), edit("no tests", "")]
    tasks[-1] = replace(tasks[-1], problem=replace(tasks[-1].problem, tests=""))
    context = SimpleNamespace(progress=lambda kind, name, done, total: None)
    with AstGrep(Sandbox(workers=1)) as verifier:
        found = unfit(SimpleNamespace(), verifier, tasks, False, context)
        kept = unfit(SimpleNamespace(), verifier, tasks, True, context)
    assert found.keys() == {"weak", "weak text", "wrong"} and found["weak"] == WEAK
    assert kept.keys() == {"wrong"}
