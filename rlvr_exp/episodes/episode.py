"""An episode: everything sampled for one task in one step, as a tree of turns, and what an environment asks for next.

Plain frozen data, torch-free. Environments grow episodes (rlvr_exp.episodes.environment), rlvr_exp.rollouts.run_episodes
answers their requests.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlvr_exp.episodes.types import Completion
from rlvr_exp.tasks.base import Candidate, Task

SampleKey = tuple[Any, ...] | None
"""What a completion's random numbers are derived from; None: greedy."""
POLICY = "policy"
"""The role of a policy that acts alone."""


@dataclass(frozen=True)
class Draws:
    """The random keys of an episode: numbers depend on them alone, not on batches or on other episodes."""

    seed: int
    purpose: str
    """What the episode is for: training, evaluation and inference draw other numbers."""
    place: tuple[Any, ...] = ()
    """Where it stands in the run, e.g. (step, index in the step)."""
    greedy: bool = False

    def key(self, task: Task, *path: Any, label: str = "") -> SampleKey:
        """Args:
        path: the sample's indices from the root of the tree.
        label: tells apart samples at the same path, e.g. of several roles.
        """
        return None if self.greedy else (self.seed, self.purpose, *filter(None, [label]), *self.place, task.id, *path)


@dataclass(frozen=True)
class Turn:
    """A sampled completion in its place in an episode."""

    role: str
    prompt: str
    prompt_ids: tuple[int, ...]
    completion: Completion
    """Its task is the turn's own, which may be derived from the episode's."""
    key: SampleKey
    parent: int | None = None
    """Index of the turn that its prompt builds on; None: the task alone."""
    learn: bool = True
    """Its role may learn from it."""
    note: Any = None
    """The environment's own; lives no longer than the episode."""


@dataclass(frozen=True)
class Episode:
    """The tree of turns grown from a task."""

    task: Task
    draws: Draws
    samples: tuple[int, ...] = (0,)
    """Indices of the completions that its first prompt is sampled for."""
    turns: tuple[Turn, ...] = ()
    given: Any = None
    """The environment's own, beside the turns: what the episode began with."""

    def add(self, turns: Sequence[Turn]) -> "Episode":
        return replace(self, turns=(*self.turns, *turns))

    def put(self, index: int, turn: Turn) -> "Episode":
        """The episode with another turn at an index."""
        return replace(self, turns=(*self.turns[:index], turn, *self.turns[index + 1 :]))

    def children(self, index: int | None) -> list[int]:
        """Indices of the turns that build on a turn; None: of the first turns."""
        return [place for place, turn in enumerate(self.turns) if turn.parent == index]

    def depth(self, index: int) -> int:
        """Turns before a turn on its branch."""
        parent = self.turns[index].parent
        return 0 if parent is None else 1 + self.depth(parent)


@dataclass(frozen=True)
class Sample:
    """A request for completions of one prompt by a role. A prompt longer than the role's policy takes is never cut: its
    completions fail with bucket `prompt_too_long`."""

    role: str
    task: Task
    prompt: str
    keys: tuple[SampleKey, ...]
    parent: int | None = None
    learn: bool = True
    pending: bool = False
    """Candidates are not verified yet, and wait for a `Judge`; completions without a candidate fail at once."""


@dataclass(frozen=True)
class Judge:
    """A request for the verdict on a candidate that no request samples: of an earlier turn, or made by the environment,
    such as a program run on another's tests."""

    role: str
    """Whose seconds of verification it counts among."""
    task: Task
    candidate: Candidate
    turn: int | None = None
    """Index of the turn whose verdict it takes the place of; None: `step` of the environment uses it."""
    label: Any = None
    """What the environment knows it by."""


Request = Sample | Judge
