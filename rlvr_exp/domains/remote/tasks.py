"""Tasks of an OpenEnv server: a reset with a seed is a task, and its first observation is the prompt.

The server is asked once, for all seeds in one session.
"""

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from rlvr_exp.domains.remote import options
from rlvr_exp.domains.remote.client import RemoteServer, canonical, not_reached
from rlvr_exp.tasks.base import Candidate, Domain, Task
from rlvr_exp.tasks.completion import without_thoughts

RESET_S = 60.0
"""Seconds for a reset."""


@dataclass(frozen=True)
class RemoteProblem:
    """A place in an episode on a server: the reset, and all answers before the one to judge."""

    seed: int
    seen: tuple[str, ...]
    """The observations so far (`canonical`). A replay has to give them again."""
    answers: tuple[str, ...] = ()
    """The answers between them."""
    earned: float = 0.0
    """Sum of the rewards so far."""


class RemoteTasks(Domain, options.RemoteTasks):
    """Raises InputError if the server cannot be reached or does not answer."""

    name = "remote"

    def splits(self) -> Mapping[str, Sequence[Task]]:
        chosen = {"train": self._tasks[: self.tasks], "test": self._tasks[self.tasks :]}
        return {name: found[: self.limit] if self.limit else found for name, found in chosen.items()}

    @property
    def splits_apart(self) -> bool:
        """Seeds differ between the splits. Whether episodes differ is up to the server."""
        return True

    def contents(self, task: Task) -> Sequence[Hashable]:
        return [task.problem.seed]

    def task_prompt(self, task: Task) -> str:
        return task.inputs

    def parse(self, completion: str, task: Task) -> Candidate:
        found = without_thoughts(completion).strip()
        return Candidate(found) if found else Candidate(None, "no answer in the text")

    def after(self, task: Task, answer: str, observation: str, earned: float) -> Task:
        """The task of the next answer. Its prompt continues the last one with the answer and the new observation."""
        place = task.problem
        moved = replace(place, seen=(*place.seen, observation), answers=(*place.answers, answer), earned=earned)
        return replace(task, inputs=f"{task.inputs}{answer}\n\n{self._shown(observation)}\n", problem=moved)

    @cached_property
    def _tasks(self) -> tuple[Task, ...]:
        try:
            with RemoteServer(self.url, self.api_key_env).session(RESET_S).sync() as session:
                seen = [canonical(session.reset(seed=seed).observation) for seed in range(self.tasks + self.held_out)]
        except Exception as fault:  # The package raises errors of its own and of its transports.
            raise not_reached(fault, self.url) from fault
        return tuple(
            Task(f"seed-{seed}", self.name, 0.0, f"{self._shown(one)}\n", RemoteProblem(seed, (one,)))
            for seed, one in enumerate(seen)
        )

    def _shown(self, observation: str) -> str:
        found: Any = json.loads(observation)
        name = self.field or "prompt"
        if isinstance(found, dict) and (self.field or isinstance(found.get(name), str)):
            value = found.get(name, "")
            return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).rstrip("\n")
        return observation
