"""A tester's view of problems: tests, critiques of outputs that fit and of others, and the words that those miss."""

from dataclasses import replace
from pathlib import Path

import pytest
from own_problems import ROW, STAGES, written

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.domains.problems import tasks as roles
from rlvr_exp.domains.problems.options import ProblemPrompt
from rlvr_exp.domains.problems.rows import ProblemRow
from rlvr_exp.domains.problems.tasks import Problems
from rlvr_exp.tasks.calls import CallsProblem
from rlvr_exp.tasks.formats.python_io import PythonProblem

ONE = ProblemRow(
    "a",
    "Write f(x). It returns x plus 3, sorted.",
    "f",
    "def f(x):\n    return x + 3",
    PythonProblem("f", ()),
    family="plus",
)
OTHER = replace(
    ONE,
    id="b",
    text="Write g(y). It returns y plus 7, sorted.",
    entry_point="g",
    solution="def g(y):\n    return y + 7",
)


def test_what_an_output_misses_is_told_in_the_problems_own_names() -> None:
    assert roles.in_names_of(ONE, OTHER, "g(y) adds 7 to y, of big yy") == "f(x) adds 7 to x, of big yy"
    assert roles.missed(ONE, OTHER) == "3, sorted" and roles.missed(ONE, replace(ONE, id="c")) == ""
    assert roles.sibling(ONE, [ONE, OTHER, replace(ONE, id="c")]) == OTHER and roles.sibling(ONE, [ONE]) is None


def test_names_that_change_places_are_kept_apart() -> None:
    row = replace(ONE, text="Write f(a, b).", solution="def f(a, b):\n    return a - b")
    turned = replace(OTHER, text="Write f(b, a).", entry_point="f", solution="def f(b, a):\n    return b - a")
    assert roles.in_names_of(row, turned, "return b - a") == "return a - b"


@pytest.fixture(scope="module")
def embedded() -> Problems:
    return build(compose(["+stage=sft", "data=problems", "role=tester", "data.limit=60"]).config.data)


def test_a_tester_is_shown_an_attempt_and_asked_for_calls(embedded: Problems) -> None:
    task = embedded.splits()["test"][0]
    prompt, row = embedded.task_prompt(task), task.inputs.row
    assert prompt.startswith(row.text) and prompt.endswith(f"[code]\n{row.wrong[0].strip()}\n[tests]\n")
    assert isinstance(task.problem, CallsProblem) and task.problem.programs == row.wrong
    assert embedded.gold_completion(task).count("\n") == len(row.good_tests) - 1
    assert "".join(map(repr, row.tests.cases[0].args)) not in prompt or row.tests.cases[0] in row.shown


def test_imitation_sees_tests_and_critiques_of_both_kinds(embedded: Problems) -> None:
    golds = []
    for task in embedded.splits()["train"]:
        tests, *critiques = embedded.demonstrations(task)
        assert tests is task and 1 <= len(critiques) <= 2
        for one in critiques:
            ((stage, text),) = one.inputs.chain.items()
            known = {**one.inputs.row.stages, "code": one.inputs.row.solution.strip("\n")}
            gold = embedded.gold_completion(one)
            assert embedded.task_prompt(one).endswith(f"[{stage}]\n{text}\n[{stage}?]\n")
            assert (text == known[stage]) is (gold == roles.FITS)
            golds.append(gold)
            if gold != roles.FITS:
                words = gold.removeprefix(roles.MISSES)
                assert words and words.strip(".,") in one.inputs.row.text
    assert {gold == roles.FITS for gold in golds} == {True, False}


def test_a_critique_in_training_shows_nothing_of_a_problem_that_is_held_out(tmp_path: Path) -> None:
    rows = [
        ROW
        | {
            "id": f"{number}",
            "text": f"Write f{number}(x). It returns x plus {number}.",
            "entry_point": f"f{number}",
            "solution": f"def f{number}(x):\n    return x + {number}\n",
        }
        for number in range(100, 140)
    ]
    domain = Problems(path=written(tmp_path, *rows), reasoning=STAGES, role="tester", test_fraction=0.3)
    splits = domain.splits()
    held_out = {task.id for name in ("dev", "test") for task in splits[name]}
    shown = " ".join(domain.task_prompt(one) for task in splits["train"] for one in domain.demonstrations(task))
    assert len(held_out) > 10 and len(splits["train"]) > 10
    assert not [number for number in held_out if f"x + {number}" in shown]


@pytest.mark.slow
def test_the_same_problems_have_the_same_demonstrations(embedded: Problems) -> None:
    again = build(compose(["+stage=sft", "data=problems", "role=tester", "data.limit=60"]).config.data)
    shown = [
        [
            (one.task_prompt(part), one.gold_completion(part))
            for task in one.splits()["train"]
            for part in one.demonstrations(task)
        ]
        for one in (embedded, again)
    ]
    assert shown[0] == shown[1]


def test_a_problem_without_stages_and_tests_has_nothing_for_a_tester_to_imitate_but_its_code(tmp_path: Path) -> None:
    domain = Problems(path=written(tmp_path, ROW | {"split": "train"}), reasoning=STAGES, role="tester")
    (task,) = domain.splits()["train"]
    assert domain.gold_completion(task) is None
    assert [domain.gold_completion(one) for one in domain.demonstrations(task)] == [None, roles.FITS]
    in_words = Problems(path=domain.path, reasoning=STAGES, role="tester", prompt=ProblemPrompt("instruct"))
    assert "a line each" in in_words.task_prompt(in_words.splits()["train"][0])
