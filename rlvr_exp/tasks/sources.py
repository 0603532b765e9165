"""Sources of tasks: the set of a file, mixtures of sets (`data.mix`), and the manifests of embedded corpora."""

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.base import Task
from rlvr_exp.tasks.rows import OTHER_NAMES, SPLITS

OF_SPLITS = frozenset({*SPLITS, *OTHER_NAMES, "training", "evaluation"})
"""Names of files and folders that name a split."""


def source_of(root: Path, names: Sequence[str]) -> str:
    """The set that a file of data belongs to: the first of its names that does not name a split.

    Args:
        root: the folder or file that `data.path` names, whose own name is the last choice.
        names: the file's folders below the root, and the file's own name if it holds a set.
    """
    words = (name.partition(".")[0] for name in (*names, root.resolve().name))
    return next((word for word in words if word and word not in OF_SPLITS), "data")


def by_source(tasks: Sequence[Task], mix: Mapping[str, float]) -> dict[str, list[Task]]:
    """The tasks of each source of a mixture, in their order.

    Raises:
        InputError: the tasks have no source, none has one that the mixture names, or two sources share an id.
    """
    counts = Counter(task.source for task in tasks if task.source)
    if absent := [source for source in mix if source not in counts]:
        raise InputError(_no_source(absent, counts) if counts else _no_sources(mix))
    found: dict[str, list[Task]] = {source: [] for source in mix}
    owner: dict[str, str] = {}
    for task in tasks:
        if task.source in found:
            found[task.source].append(task)
            if owner.setdefault(task.id, task.source) != task.source:
                raise InputError(_same_id(task, owner[task.id]))
    return found


def _no_source(absent: Sequence[str], counts: Counter[str]) -> InputProblem:
    allowed = ", ".join(f"{source} ({count} tasks)" for source, count in counts.most_common())
    remedy = "data.mix={SOURCE: SHARE, ...} of sources that are there"
    return InputProblem("data.mix", "no task to train on comes from there", ", ".join(absent), allowed, "", remedy)


def _no_sources(mix: Mapping[str, float]) -> InputProblem:
    what = "the tasks of these data do not say from which set they come"
    return InputProblem("data.mix", what, ", ".join(mix), "data whose tasks have a source", "", "drop it")


def _same_id(task: Task, other: str) -> InputProblem:
    remedy = "ids of their own, such as SOURCE/NUMBER"
    return InputProblem("data.mix", f"tasks of {other} and {task.source} have one id", task.id, "", "", remedy)


def embedded_sizes(corpus: Path, limit: int, each: int = 1) -> dict[str, int]:
    """Tasks of every split. `limit`: the most of a split, 0 for all; `each`: tasks of one row."""
    rows = {name: part["tasks"] if "tasks" in part else part["rows"] for name, part in _splits(corpus).items()}
    return {name: min(each * rows[name], limit or sys.maxsize) for name in SPLITS if name in rows}


@lru_cache
def _splits(corpus: Path) -> dict[str, dict[str, Any]]:
    return json.loads(corpus.with_name(f"{corpus.name}.manifest.json").read_bytes())["splits"]


@lru_cache
def embedded_content(corpus: Path, split: str) -> str | None:
    """The hash of a split's rows, from `CORPUS.manifest.json` next to the folder; None if its file differs from the
    manifest's."""
    recorded = _splits(corpus).get(split)
    file = corpus / f"{split}.jsonl.xz"
    if recorded is None or not file.is_file():
        return None
    return (
        recorded["content_sha256"] if hashlib.sha256(file.read_bytes()).hexdigest() == recorded["file_sha256"] else None
    )
