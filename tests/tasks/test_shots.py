"""Solved examples before a prompt, in every domain: of the train split, never the task, the same wherever it is asked."""

import json
import lzma
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_sets import first_of, own_rows

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.arc.options import Randomise
from rlvr_exp.domains.arc.tasks import EMBEDDED as ARC
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.domains.code.tasks import Code
from rlvr_exp.domains.dafny.tasks import EMBEDDED as DAFNY
from rlvr_exp.domains.dafny.tasks import DafnyDomain
from rlvr_exp.domains.edits.tasks import EMBEDDED as EDITS
from rlvr_exp.domains.edits.tasks import Edits
from rlvr_exp.domains.problems.options import ReasoningStage
from rlvr_exp.domains.problems.rows import EMBEDDED as PROBLEMS
from rlvr_exp.domains.problems.tasks import Problems
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.tasks.shots import chosen_shots

STAGES = {"plan": ReasoningStage(form="text"), "code": ReasoningStage(form="code")}
MAKERS: dict[str, Callable[[Path], Domain]] = {
    "arc": lambda folder: Arc(first_of(ARC, folder)),
    "dafny": lambda folder: DafnyDomain(first_of(DAFNY, folder)),
    "edits": lambda folder: Edits(first_of(EDITS, folder), instruction="both"),
    "edits_in_words": lambda folder: in_words(Edits(first_of(EDITS, folder), target="text")),
    "problems": lambda folder: Problems(first_of(PROBLEMS, folder), reasoning=STAGES),
    "code": lambda folder: Code(own_rows(folder)),
}


def in_words(domain: Any) -> Domain:
    return replace(domain, prompt=replace(domain.prompt, style="instruct"))


def with_shots(domain: Any, shots: int, **more: Any) -> Domain:
    return replace(domain, prompt=replace(domain.prompt, shots=shots), **more)


@pytest.fixture(scope="module", params=[*MAKERS])
def domain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Domain:
    return MAKERS[request.param](tmp_path_factory.mktemp("rows"))


def shown(domain: Domain, prompt: str, own: str) -> list[Task]:
    """The train tasks whose prompt and answer precede the task's own."""
    assert prompt.endswith(own)
    before = prompt.removesuffix(own)
    known = {task.id: task for task in domain.splits()["train"]}.values()
    return [
        one
        for one in known
        if all(text in before for text in (domain.task_prompt(one), domain.gold_completion(one) or "?"))
    ]


def test_examples_are_solved_tasks_of_the_train_split_and_never_the_task_itself(domain: Domain) -> None:
    asked = with_shots(domain, 2)
    for name in ("train", "test"):
        for task in asked.splits()[name][:6]:
            own, prompt = domain.task_prompt(task), asked.task_prompt(task)
            found = {one.id: one for one in shown(domain, prompt, own)}
            assert len(found) >= 2 and prompt.count(own) == 1
            assert task.id not in found
            assert not any(set(domain.contents(one)) & set(domain.contents(task)) for one in found.values())


def test_a_task_has_one_prompt_wherever_it_is_asked(domain: Domain) -> None:
    first, again, other = with_shots(domain, 2), with_shots(domain, 2), with_shots(domain, 2, seed=7)
    tasks = domain.splits()["test"][:6]
    prompts = [[of.task_prompt(task) for task in order] for of, order in ((first, tasks), (again, tasks[::-1]))]
    assert prompts[0] == prompts[1][::-1]
    assert len(set(prompts[0])) == len(tasks)
    assert prompts[0] != [other.task_prompt(task) for task in tasks]
    more = with_shots(domain, 3)
    assert all(len(more.task_prompt(task)) > len(prompt) for task, prompt in zip(tasks, prompts[0], strict=True))


def test_more_examples_than_there_are_are_refused(domain: Domain) -> None:
    asked = with_shots(domain, 5000)
    with pytest.raises(InputError, match=r"data\.prompt\.shots: only \d+ solved examples\n    got: 5000"):
        asked.task_prompt(asked.splits()["test"][0])


def test_alike_tasks_are_passed_over() -> None:
    tasks = [Task(str(number), "", 0.0, None, None, "gold") for number in range(6)]
    found = chosen_shots(tasks, tasks[2], 2, 0, lambda one, other: one.id == other.id or int(one.id) % 2 == 1)
    assert {one.id for one in found} == {"0", "4"}
    with pytest.raises(InputError, match="only 2 solved examples"):
        chosen_shots(tasks, tasks[2], 3, 0, lambda one, other: one.id == other.id or int(one.id) % 2 == 1)


def test_a_stage_of_reasoning_has_examples_of_that_stage(tmp_path: Path) -> None:
    plain = Problems(first_of(PROBLEMS, tmp_path), reasoning=STAGES)
    asked = with_shots(plain, 1)
    task = asked.at_stage(asked.splits()["test"][0], "plan", {})
    prompt = asked.task_prompt(task)
    assert prompt.count("[plan]\n") == 2 and "[code]" not in prompt
    assert [one.where for one in with_shots(plain, 1, role="tester").problems()] == ["prompt.shots"]


def test_the_same_puzzle_under_another_id_is_no_example_of_it(tmp_path: Path) -> None:
    with lzma.open(ARC / "train.jsonl.xz", "rt") as rows:
        first, *others = (json.loads(next(rows)) for _ in range(4))
    turned = {**first, "id": "turned", "train": first["train"][::-1]}
    for name, some in (("train", [first, *others]), ("test", [turned])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
    for more in ({}, {"randomise": Randomise(colours=True)}):
        asked = with_shots(Arc(str(tmp_path), dev_fraction=0), 3, **more)
        (task,) = asked.splits()["test"]
        assert first["program"].strip() not in asked.task_prompt(task)
        with pytest.raises(InputError, match="only 3 solved examples"):
            with_shots(asked, 4).task_prompt(task)


def test_a_file_named_validation_is_dev_and_leaves_test_whole(tmp_path: Path) -> None:
    with lzma.open(ARC / "train.jsonl.xz", "rt") as rows:
        some = [json.loads(next(rows)) for _ in range(30)]
    for number, name in enumerate(("train", "validation", "test")):
        part = some[10 * number : 10 * number + 10]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    splits = Arc(str(tmp_path)).splits()
    assert {name: len(tasks) for name, tasks in splits.items()} == {"train": 10, "dev": 10, "test": 10}
