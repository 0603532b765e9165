"""A program that a round of self-play found, and how it is imitated."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

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
    """What it teaches, one of rlvr_exp.config.self_play.KINDS; empty: nothing."""
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
