"""Programs that a round of self-play found, the files of their rows, and relabelling.

`self_play/round_001.jsonl.gz` in the run directory holds the rows that a resumed run needs of a round. A file is written
whole or not at all; equal rounds give equal bytes.

Relabelling in hindsight makes a program that fails its task the reference answer of the task that it does solve: CodeIt (Butt
et al. 2024, arXiv 2402.04858) and SOAR (Pourcel et al. 2025, arXiv 2507.14172). The programs are those of the policy that failed
their own task, and reference answers tried on other tasks. A kept task has no part of a held-out task: otherwise a policy that
makes its own tasks could be shown the tasks that measure it. A program runs a second time before it is kept: if it returns
other outputs then, it is refused.
"""

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlvr_exp.config.solutions import KINDS
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import replacing
from rlvr_exp.core.seeds import stream
from rlvr_exp.records.directory import writing
from rlvr_exp.solutions.record import Operator, Solution, from_row, output_hash, to_row
from rlvr_exp.tasks.base import Candidate, Domain, RelabelsTasks, Task
from rlvr_exp.verifiers.base import Executor, Request, Verdict


@dataclass(frozen=True)
class Found:
    """A program with the task whose inputs it was run on."""

    solution: Solution
    host: Task
    outputs: tuple[Any, ...] = ()
    """Its results on the host's cases."""
    relabelled: Task | None = None
    """The task that it solves in hindsight, without a gold; None: it is imitated on its host."""
    text: str = ""
    """The completion that it was read from; empty: it was not sampled."""
    kind: str = ""
    """The kind of its lesson, one of rlvr_exp.config.solutions.KINDS; empty: nothing."""
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
    """As JSON, for a later round and a resumed run."""
    words = {"kind": one.kind, "previous": one.previous, "feedback": one.feedback}
    outputs = [] if one.relabelled is None else list(one.outputs)
    return {"host": one.host.id, "outputs": outputs, **words, "solution": to_row(one.solution)}


def from_line(line: Mapping[str, Any], tasks: Mapping[str, Task], domain: Domain) -> Found:
    """From JSON. Raises KeyError if the host is none of the tasks, ValueError if it holds no solution."""
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


LEAK, KNOWN = "leak", "known"
"""Why a task is not kept: a part of it is in a held-out one; it was made before."""


class Hindsight:
    """
    Args:
        held_out: tasks of which no part may be in a relabelled one.
        per_behaviour: how often a task may be kept; 0: any number.
    """

    def __init__(self, domain: RelabelsTasks, held_out: Iterable[Task], per_behaviour: int = 1):
        self._domain, self._per_behaviour = domain, per_behaviour
        self._held_out = {part for task in held_out for part in domain.fragments(task)}
        self._kept: Counter[str] = Counter()
        self._this_round: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        """Outputs of the round that made no task, by reason."""

    def begin(self) -> None:
        """A new round."""
        self._this_round.clear()
        self.refused.clear()

    def keep(self, names: Iterable[str]) -> None:
        """Relabelled tasks that are not made again."""
        self._kept.update(names)

    def task(self, host: Task, outputs: Sequence[Any]) -> Task | None:
        """The task on the host's inputs that has these outputs; None: there is none, and `refused` says why."""
        found = self._domain.relabelled(host, outputs)
        if isinstance(found, str):
            reason = found
        elif not self._held_out.isdisjoint(self._domain.fragments(found)):
            reason = LEAK
        elif self._per_behaviour and self._kept[found.id] + self._this_round[found.id] >= self._per_behaviour:
            reason = KNOWN
        else:
            self._this_round[found.id] += 1
            return found
        self.refused[reason] += 1
        return None


UNSTABLE = "unstable"
"""Other outputs in a second run."""


def relabelled(failed: Iterable[Found], hindsight: Hindsight, kind: str) -> list[Found]:
    """Of each failed program the task that it solves, if there is one."""
    pairs = ((one, hindsight.task(one.host, one.outputs)) for one in failed)
    return [solving(one, task, kind) for one, task in pairs if task is not None]


def deterministic(rows: Sequence[Found], executor: Executor, hindsight: Hindsight) -> list[Found]:
    """The rows whose programs return the same outputs again."""
    again = [executor.execute(Request(one.host.problem, Candidate(one.solution.program))) for one in rows]
    stable = [one for one, run in zip(rows, again, strict=True) if run.result().outputs == one.outputs]
    hindsight.refused[UNSTABLE] += len(rows) - len(stable)
    return stable


class Transfer:
    """Golds of kindred tasks.

    Args:
        tasks: those with a gold take part.
    """

    def __init__(self, domain: Domain, tasks: Sequence[Task], executor: Executor, seed: int):
        self._domain, self._executor, self._seed = domain, executor, seed
        self._golds: dict[Hashable, list[tuple[str, Candidate]]] = defaultdict(list)
        for task in tasks:
            gold = domain.gold_completion(task)
            if gold is not None:
                self._golds[domain.kin(task)].append((task.id, domain.parse(gold, task)))

    def tried(self, hosts: Sequence[Task], each: int, number: int, **known: Any) -> list[Found]:
        """Golds run on each host, at most `each`, that a draw from (seed, round's number, host) picks; those that fail.

        Args:
            known: further fields of their solutions.
        """
        drawn = [(host, one) for host in hosts for one in self._drawn(host, each, number)]
        runs = [self._executor.execute(Request(host.problem, one)) for host, one in drawn]
        pairs = ((host, one, run.result()) for (host, one), run in zip(drawn, runs, strict=True))
        made = [
            found(host, one.text or "", replace(run.verdict, outputs=None), run.outputs, "gold", **known)
            for host, one, run in pairs
            if run.verdict.outcome == "failed" and run.outputs
        ]
        return made

    def _drawn(self, host: Task, each: int, number: int) -> list[Candidate]:
        others = [one for name, one in self._golds[self._domain.kin(host)] if name != host.id and one.text is not None]
        rng = stream(self._seed, "self_play", "transfer", number, host.id)
        return rng.sample(others, min(each, len(others)))
