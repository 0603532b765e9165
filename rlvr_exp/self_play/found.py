"""A program that a round of self-play found, how it is imitated, and the files that keep the rows of the rounds.

`self_play/round_001.jsonl.gz` in the run directory holds what a resumed run needs of a round. A file is written whole or not
at all; equal rounds give equal bytes.
"""

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlvr_exp.config.solutions import KINDS
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import replacing
from rlvr_exp.records.directory import writing
from rlvr_exp.solutions.record import Operator, Solution, from_row, output_hash, to_row
from rlvr_exp.tasks.base import Domain, RelabelsTasks, Task
from rlvr_exp.verifiers.base import Verdict


@dataclass(frozen=True)
class Found:
    """A program with the task whose inputs it was run on."""

    solution: Solution
    host: Task
    outputs: tuple[Any, ...] = ()
    """What it returned on the host's cases."""
    relabelled: Task | None = None
    """The task that it solves in hindsight, without a gold; None: it is imitated on its host."""
    text: str = ""
    """The completion that it was read from; empty: it was not sampled."""
    kind: str = ""
    """What it teaches, one of rlvr_exp.config.solutions.KINDS; empty: nothing."""
    previous: str = ""
    """Of a refined answer the completion before it."""
    feedback: str = ""
    """The verifier's words of that."""

    @property
    def solved(self) -> Task:
        """The task that it is the gold of, with that gold."""
        return replace(self.relabelled or self.host, gold=self.solution.program)

    @property
    def correct(self) -> bool:
        return self.solution.correct

    @property
    def accuracy(self) -> float:
        """The share of the host's pairs that it has right."""
        return self.solution.verdict.score


def found(
    host: Task,
    program: str,
    verdict: Verdict,
    outputs: tuple[Any, ...],
    operator: Operator,
    text: str = "",
    **known: Any,
) -> Found:
    """A program that was run on its host.

    Args:
        outputs: of each case of the host's problem.
        known: further fields of the solution.
    """
    names = tuple(map(output_hash, outputs))
    own = {"family": host.family, "difficulty": host.difficulty, "operator": operator}
    return Found(Solution(host.id, program, verdict, names, **{**own, **known}), host, outputs, text=text)


def solving(one: Found, task: Task, kind: str) -> Found:
    """The same program as the gold of the task that it solves in hindsight."""
    total = len(one.outputs)
    verdict = Verdict("passed", passed=total, total=total, seconds=one.solution.verdict.seconds)
    parent = one.solution.key if one.solution.operator in ("sampled", "refined") else ""
    solution = replace(
        one.solution, task=task.id, verdict=verdict, difficulty=task.difficulty, operator="relabelled", parent=parent
    )
    return replace(one, solution=solution, relabelled=task, kind=kind)


def to_line(one: Found) -> dict[str, Any]:
    """As JSON: what a later round and a resumed run need of it."""
    words = {"kind": one.kind, "previous": one.previous, "feedback": one.feedback}
    outputs = [] if one.relabelled is None else list(one.outputs)
    return {"host": one.host.id, "outputs": outputs, **words, "solution": to_row(one.solution)}


def from_line(line: Mapping[str, Any], tasks: Mapping[str, Task], domain: Domain) -> Found:
    """From JSON. Raises KeyError where the host is none of the tasks, ValueError where it holds no solution."""
    words = {name: line[name] for name in ("kind", "previous", "feedback")}
    host, outputs = tasks[line["host"]], tuple(line["outputs"])
    task = domain.relabelled(host, outputs) if outputs and isinstance(domain, RelabelsTasks) else None
    if isinstance(task, str):
        raise ValueError(f"outputs that make no task: {task}")
    return Found(from_row(line["solution"]), host, outputs, task, **words)


Rows = Mapping[str, Sequence[Found]]
"""By kind."""


def round_path(run_dir: Path, number: int) -> Path:
    """Of a round, counted from 0."""
    return run_dir / "self_play" / f"round_{number + 1:03d}.jsonl.gz"


def write_rows(run_dir: Path, number: int, rows: Rows) -> None:
    lines = [json.dumps(to_line(one), allow_nan=False) + "\n" for kind in KINDS for one in rows[kind]]
    path = round_path(run_dir, number)
    with writing(path), replacing(path) as temporary:
        temporary.write_bytes(gzip.compress("".join(lines).encode("ascii"), 6, mtime=0))


def read_rows(run_dir: Path, number: int, tasks: Mapping[str, Task], domain: Domain) -> dict[str, list[Found]]:
    """The rows of a round that was written.

    Args:
        tasks: the training tasks, by id.

    Raises:
        InputError: the file is missing or damaged, or holds a task that is no longer there.
    """
    path = round_path(run_dir, number)
    rows: dict[str, list[Found]] = {kind: [] for kind in KINDS}
    try:
        with gzip.open(path, "rt", encoding="ascii") as lines:
            for line in lines:
                one = from_line(json.loads(line), tasks, domain)
                rows[one.kind].append(one)
    except (OSError, EOFError, ValueError, KeyError) as fault:
        what, remedy = "cannot be read as a round of self-play", "start the run again in another directory"
        raise InputError(InputProblem(str(path), what, f"{type(fault).__name__}: {fault}", "", "", remedy)) from fault
    return rows
