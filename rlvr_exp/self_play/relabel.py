"""Relabelling in hindsight: a program that fails its task is the gold of the task that it does solve.

CodeIt (Butt et al. 2024, arXiv 2402.04858) and SOAR (Pourcel et al. 2025, arXiv 2507.14172). The programs are those of the
policy that failed their own task, and golds tried on other tasks. A kept task holds no part of a held-out task: a policy that
makes its own tasks could else be shown what it is measured on. A program runs a second time before it is kept: if it returns
other outputs then, it is no gold of anything.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from rlvr_exp.core.seeds import stream
from rlvr_exp.self_play.found import Found, found, solving
from rlvr_exp.tasks.base import Candidate, Domain, RelabelsTasks, Task
from rlvr_exp.verifiers.base import Executor, Request

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
    """Of each failed program the task that it solves, where there is one."""
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
