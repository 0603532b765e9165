"""Coding problems in stages: rows of one's own with their faults, prompts, golds of every stage, stages of one's own."""

from pathlib import Path

import pytest
from own_problems import ROW, STAGES, written

from rlvr_exp.config.compose import compose_lenient
from rlvr_exp.config.load import build
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.problems.options import ProblemPrompt, ReasoningStage
from rlvr_exp.domains.problems.tasks import Problems
from rlvr_exp.launch.preflight import data_problems
from rlvr_exp.tasks.calls import CallsProblem
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case


def others(count: int) -> list[dict]:
    return [
        ROW
        | {
            "id": f"own/{number}",
            "text": f"Write add_{number}(x).",
            "entry_point": f"add_{number}",
            "solution": f"def add_{number}(x):\n    return x + {number}\n",
        }
        for number in range(count)
    ]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "train.jsonl"])
def test_problems_of_ones_own_are_read_with_splits_that_follow_their_content(name, tmp_path: Path) -> None:
    domain = Problems(path=written(tmp_path, *others(40), name=name), reasoning=STAGES)
    sizes = domain.sizes()
    assert sum(sizes.values()) == 40 and set(sizes) == (
        {"train"} if name.startswith("train") else {"train", "dev", "test"}
    )
    again = Problems(path=written(tmp_path, *reversed(others(40)), name=name), reasoning=STAGES)
    ids = [{split: {task.id for task in tasks} for split, tasks in one.splits().items()} for one in (domain, again)]
    assert ids[0] == ids[1]
    task = next(iter(domain.splits()["train"]))
    assert task.family == "own" and task.difficulty == 0.25 and task.problem.cases[0] == Case((3,), 6)
    assert task.problem.entry_point == task.inputs.row.entry_point


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"text": None}, "text"),
        ({"entry_point": "no name"}, "entry_point: no name of a function"),
        ({"solution": "def f(:\n"}, "solution: no Python"),
        ({"tests": []}, "tests: a problem is judged by tests"),
        ({"tests": "def test_it(:\n"}, "tests: cannot be read as Python"),
        ({"tests": 3}, "tests: no calls"),
        ({"solution": "twice = 3\n", "entry_point": None}, "entry_point: no name of a function"),
        ({"tests": [{"args": 3, "expected": 6}]}, r"tests\[0\].args: no arguments"),
        ({"tests": [[3, 6]]}, "tests: no calls"),
        ({"atol": "x"}, "atol: got"),
        ({"shown": "f(3)"}, "shown: no calls"),
        ({"stages": {"plan": 3}}, "stages: no outputs"),
        ({"difficulty": "hard"}, "difficulty: not a number"),
        ({"wrong": "x"}, "wrong"),
    ],
)
def test_a_faulty_row_is_named_by_file_line_and_key(change, found, tmp_path: Path) -> None:
    row = {key: value for key, value in (ROW | change).items() if value is not None}
    path = written(tmp_path, ROW, row)
    with pytest.raises(InputError, match=f"{path}, line 2, {found}"):
        Problems(path=path, reasoning=STAGES).splits()


def test_calls_have_the_tolerances_of_their_row(tmp_path: Path) -> None:
    splits = Problems(path=written(tmp_path, ROW | {"atol": 0.1, "rtol": 0.01}), reasoning=STAGES).splits()
    assert [task.problem.comparison for tasks in splits.values() for task in tasks] == [(False, 0.1, 0.01)]


SUITE = "import pytest\nfrom solution import twice\n\n\ndef test_it():\n    assert twice(3) == 6\n"


def test_hidden_tests_may_be_a_pytest_file(tmp_path: Path) -> None:
    given = {"solution": "def add(x, y):\n    return x + y\n\n\ndef twice(x):\n    return add(x, x)\n", "tests": SUITE}
    row = {key: value for key, value in (ROW | given | {"split": "train"}).items() if key != "entry_point"}
    listed = row | {"id": "own/2", "tests": ["assert add(1, 2) == 3", "assert add(2, 2) == 4"]}
    domain = Problems(path=written(tmp_path, row, listed), reasoning=STAGES)
    whole, of_asserts = domain.splits()["train"]
    assert whole.problem == PytestProblem(SUITE, reference=given["solution"])
    assert whole.inputs.row.entry_point == "twice", "the suite takes it from the solution"
    assert of_asserts.inputs.row.entry_point == "add" and "from solution import add" in of_asserts.problem.tests
    asked = domain.testing(whole, given["solution"], ())
    assert isinstance(asked.problem, CallsProblem) and asked.problem.entry_point == "twice"


def test_a_tester_is_held_to_the_arguments_of_the_problems_calls(tmp_path: Path) -> None:
    """Of hidden tests, as calls or as a file, and of shown ones."""
    file = (
        f"from solution import {ROW['entry_point']}\n\n\ndef test_it():\n    assert {ROW['entry_point']}(-7) == -14\n"
    )
    shown = {"shown": [{"args": [5], "expected": 10}]}
    path = written(
        tmp_path, ROW | shown | {"id": "calls"}, ROW | shown | {"id": "file", "tests": file}, name="train.json"
    )
    domain = Problems(path=path, reasoning=STAGES, role="tester")
    known = {task.id: task.problem.known for task in domain.splits()["train"]}
    assert known["calls"][0] == (3,) and (5,) in known["calls"] and known["file"] == ((5,), (-7,))
    task = domain.splits()["train"][0]
    assert domain.testing(task, "", ()).problem.known == task.problem.known


def test_an_id_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ids that stand twice(.|\n)*own/1"):
        Problems(path=written(tmp_path, ROW, ROW | {"text": "other"}), reasoning=STAGES).splits()


def test_a_fingerprint_follows_content_and_not_the_place_of_the_file(tmp_path: Path) -> None:
    found = []
    for name, change in (("a", {}), ("b", {}), ("c", {"tests": SUITE}), ("d", {"shown": ROW["tests"][:1]})):
        (tmp_path / name).mkdir()
        path = written(tmp_path / name, ROW | {"split": "test"} | change)
        found.append(Problems(path=path, reasoning=STAGES).fingerprint("test"))
    assert found[0] == found[1] and len(set(found)) == 3


def test_a_single_problem_is_trained_on_and_others_are_held_out(tmp_path: Path) -> None:
    path, other = written(tmp_path, ROW, name="one.json"), written(tmp_path, *others(3), name="train.jsonl")
    alone = Problems(path=path, reasoning=STAGES).sizes()
    assert sum(alone.values()) == 1
    domain = Problems(path=path, held_out="embedded", reasoning=STAGES, limit=5)
    assert domain.sizes() == {"train": 1, "test": 5} and domain.splits()["test"][0].id.startswith("test-")
    assert Problems(path=path, held_out=other, reasoning=STAGES).sizes() == {"train": 1, "test": 3}
    (problem,) = Problems(held_out=other, reasoning=STAGES).problems()
    assert "held_out" in str(problem)
    given = ["+stage=grpo", "data=problems", "environment=reasoning", f"data.path={path}", "run.select.times=0"]
    (missing,) = data_problems(compose_lenient([*given, "data.test_fraction=0"]).config)
    assert "no tasks in split 'test'" in str(missing) and "data.held_out=embedded" in str(missing)
    assert not [*data_problems(compose_lenient([*given, "data.held_out=embedded"]).config)]


def test_the_gold_of_every_stage_that_is_known_is_shown_to_imitation(tmp_path: Path) -> None:
    row = ROW | {"stages": {"plan": "1. double it"}, "split": "train", "shown": [{"args": [1], "expected": 2}]}
    path = written(tmp_path, row, ROW | {"id": "own/2", "text": "other", "split": "train"})
    domain = Problems(path=path, reasoning=STAGES)
    whole, bare = domain.splits()["train"]
    shown = domain.demonstrations(whole)
    assert [domain.gold_completion(one) for one in shown] == ["1. double it", ROW["solution"].strip()]
    assert domain.task_prompt(shown[1]) == (
        "Write twice(x). It returns two times x.\ntwice(1) == 2\n[plan]\n1. double it\n[code]\n"
    )
    assert [one.inputs.stage for one in domain.demonstrations(bare)] == ["code"], "its plan is not known"
    in_words = Problems(path=path, reasoning=STAGES, prompt=ProblemPrompt("instruct"))
    (one, other) = in_words.demonstrations(whole)
    assert "## plan\n\n1. double it" in in_words.task_prompt(other) and "`twice`" in in_words.task_prompt(one)
    of_own = {"code": ReasoningStage(purpose="the answer", solver="Write it.", form="code")}
    told = Problems(path=path, reasoning=of_own, prompt=ProblemPrompt("instruct"))
    assert "Next is the code: the answer. Write it." in told.task_prompt(told.splits()["train"][0])
    gold = in_words.gold_completion(other)
    assert gold.startswith("```python\n") and in_words.parse(gold, other).text == ROW["solution"]
    assert in_words.is_complete(gold) and not domain.is_complete(gold)
    assert in_words.splits() and in_words.is_complete(gold)
    assert not in_words.is_complete("```python\ndef helper(x):\n    return x\n```"), "the function may follow"
    plan = "<think>\n```python\ndef twice(x): ...\n```\n</think>\n\n1. double it\n"
    assert in_words.output(plan, shown[0]) == in_words.parse(plan, shown[0]).text == "1. double it"
    assert in_words.parse("<think>\n1. double it", shown[0]).text is None


OWN = """# @package _global_
data:
  reasoning:
    cases: {purpose: cases first, solver: Name the cases.}
    sketch: {purpose: a sketch, solver: Sketch it., sees: [cases]}
    code: {purpose: the answer, solver: Write it in Python., form: code, sees: [sketch]}
"""


def test_a_yaml_alone_adds_drops_and_reorders_stages(tmp_path: Path) -> None:
    """The how-to of docs/problems.md."""
    (tmp_path / "conf" / "reasoning").mkdir(parents=True)
    (tmp_path / "conf" / "reasoning" / "mine.yaml").write_text(OWN)
    path = written(tmp_path, ROW | {"split": "train", "stages": {"cases": "any x", "plan": "not a stage here"}})
    words = [f"hydra.searchpath=[{tmp_path / 'conf'}]", "+stage=sft", "data=problems", "reasoning=mine"]
    checked = compose_lenient([*words, f"data.path={path}"])
    assert not checked.problems, checked.problems
    domain = build(checked.config.data)
    assert list(domain.stages) == ["cases", "sketch", "code"]
    (task,) = domain.splits()["train"]
    assert [one.inputs.stage for one in domain.demonstrations(task)] == ["cases", "code"]
    last = domain.at_stage(task, "code", {"cases": "any x", "sketch": "2 * x"})
    assert domain.task_prompt(last).endswith("[sketch]\n2 * x\n[code]\n") and "any x" not in domain.task_prompt(last)


@pytest.mark.parametrize(
    ("stages", "found"),
    [
        ({}, "the last stage and no other is code"),
        ({"code": ReasoningStage(form="code"), "plan": ReasoningStage()}, "the last stage and no other is code"),
        ({"plan": ReasoningStage(sees=["code"]), "code": ReasoningStage(form="code")}, "names no earlier stage"),
    ],
)
def test_stages_that_cannot_work_are_refused(stages, found) -> None:
    assert [found in str(problem) for problem in Problems(reasoning=stages).problems()] == [True]


@pytest.mark.heavy
def test_the_embedded_problems_are_read() -> None:
    domain = build(compose_lenient(["+stage=sft", "data=problems", "data.limit=20"]).config.data)
    assert domain.sizes() == dict.fromkeys(("train", "practice", "dev", "test", "test_unseen"), 20)
    task = domain.splits()["test"][0]
    assert len(domain.demonstrations(task)) == 5 and task.negatives and task.gold
