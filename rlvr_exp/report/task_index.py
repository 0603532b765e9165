"""The index of the held-out tasks for the report and the diagnosis: difficulty and gold answer of each.

An evaluation writes it to evaluation/tasks.json. Tasks of a run without that file are looked up in its data; data that
no longer exists, or has changed, is no fault: a task counts as known only where its prompt is the one that was
answered.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rlvr_exp.config.load import build, load
from rlvr_exp.core.errors import InputError
from rlvr_exp.core.files import write_json
from rlvr_exp.tasks.base import Domain, Task

NAME = "evaluation/tasks.json"


@dataclass(frozen=True)
class TaskInfo:
    difficulty: float
    """By the domain's own measure; larger is harder."""
    gold: str | None


def save_task_index(run_dir: Path, tasks: Sequence[Task]) -> None:
    """Write the index of the tasks of an evaluation of this run."""
    write_json(run_dir / NAME, {task.id: asdict(_info(task)) for task in tasks})


def load_task_index(run_dir: Path, prompts: Mapping[str, str]) -> dict[str, TaskInfo]:
    """The index by task id.

    Args:
        prompts: the answered prompts, by task.
    """
    noted = run_dir / NAME
    if noted.is_file():
        return {task: TaskInfo(**known) for task, known in json.loads(noted.read_text(encoding="utf-8")).items()}
    if not prompts or not (run_dir / "config.yaml").is_file():
        return {}
    try:
        domain: Domain = build(load(run_dir / "config.yaml").data)
        return dict(_found(domain, prompts))
    except InputError:
        return {}


def _found(domain: Domain, prompts: Mapping[str, str]) -> Iterable[tuple[str, TaskInfo]]:
    for tasks in domain.splits().values():
        for task in tasks:
            if task.id in prompts and domain.task_prompt(task) == prompts[task.id]:
                yield task.id, _info(task)


def _info(task: Task) -> TaskInfo:
    return TaskInfo(float(task.difficulty), task.gold)
