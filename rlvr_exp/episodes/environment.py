"""What can be learned in: an `Environment` says who is asked what, when an episode is over, what is compared with what
and who is credited with how much. It samples, verifies and trains nothing itself.

Everything else is shared by all environments: sampling in waves over all live episodes, verification, collecting,
learning, logging, checkpoints, evaluation, inference. rlvr_exp/docs/environments.md builds one step by step.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rlvr_exp.episodes.episode import POLICY, Draws, Episode, Judge, Request, Sample, Turn
from rlvr_exp.episodes.types import Completion, RewardBreakdown
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.verifiers.base import Verdict

Result = tuple[Sample, Sequence[Turn]] | tuple[Judge, Verdict]
"""A request with its answer: turns, or a verdict."""


class Environment(ABC):
    """Subclasses name their roles and implement `domain` and `asks`; every other method has a default."""

    name: str
    """Before the metrics of credit, where it has several roles; `metrics` writes names of its own."""
    roles: tuple[str, ...] = (POLICY,)
    keeps_outputs: bool = False
    """Its verdicts carry what a candidate made (rlvr_exp.verifiers.base), for the next request."""
    one_group: bool = False
    """Every episode gives exactly one group, so that groups can wait for later steps and be sampled anew."""

    @abstractmethod
    def domain(self, role: str) -> Domain:
        """The domain that words and parses a role's tasks."""

    def reset(self, task: Task, draws: Draws, samples: Sequence[int] = (0,)) -> Episode:
        """A new episode, without turns."""
        return Episode(task, draws, tuple(samples))

    @abstractmethod
    def asks(self, episode: Episode) -> Sequence[Request]:
        """What the episode needs next; empty: it is over. Depends on the episode alone."""

    def step(self, episode: Episode, results: Sequence[Result]) -> Episode:
        """The episode with the results of its last requests: sampled turns are added, verdicts replace those of their
        turns. An environment that judges what is no turn's says here what its verdict does."""
        for request, answer in results:
            if isinstance(answer, Verdict):
                episode = self._judged(episode, request, answer)
            else:
                episode = episode.add(answer)
        return episode

    @staticmethod
    def _judged(episode: Episode, request: Request, verdict: Verdict) -> Episode:
        if not isinstance(request, Judge) or request.turn is None:
            raise TypeError(f"{request}: only the verdict of a turn has its place; override step")
        turn = episode.turns[request.turn]
        return episode.put(request.turn, replace(turn, completion=replace(turn.completion, verdict=verdict)))

    def supplement(self, episodes: Sequence[Episode]) -> Sequence[Episode]:
        """Further episodes for a training step whose episodes leave a role without anything to learn from."""
        return ()

    def groups(self, episode: Episode) -> Sequence[Sequence[int]]:
        """Indices of turns whose rewards have a common baseline: by default completions of the same prompt. The members
        of a group have one role."""
        found: dict[tuple[str, int | None], list[int]] = {}
        for index, turn in enumerate(episode.turns):
            if turn.learn:
                found.setdefault((turn.role, turn.parent), []).append(index)
        return list(found.values())

    def rewarded(self, episode: Episode) -> Sequence[int]:
        """Indices of the turns whose completions earn a reward of their own."""
        return range(len(episode.turns))

    def credit(self, episode: Episode, rewards: Mapping[int, RewardBreakdown]) -> Mapping[int, RewardBreakdown]:
        """What each member of `groups` is credited with, from the rewards of `rewarded` turns; by default its own reward.
        `RewardBreakdown(value)` credits a turn that has earned none; a total of None: nothing is learned from the turn."""
        return rewards

    def shown(self, episode: Episode, index: int) -> Completion:
        """A turn's completion as rollout files and success rates show it."""
        return episode.turns[index].completion

    def about(self, episode: Episode, index: int) -> Mapping[str, Any] | None:
        """Fields that the rollout file logs of a turn besides its completion: by default its role, where there are several.
        None: none."""
        return {"role": episode.turns[index].role} if len(self.roles) > 1 else None

    def result(self, episode: Episode) -> Completion:
        """What the episode comes to, as an evaluation measures it: by default its last completion."""
        return episode.turns[-1].completion

    def outcome(self, episode: Episode) -> Mapping[str, Any] | None:
        """Fields that an evaluation's file logs of an episode besides its result; None: none."""
        return None

    def remember(self, episodes: Sequence[Episode]) -> None:
        """Keep of a training step's episodes what later ones begin with: by default nothing."""
        return

    @property
    def parts(self) -> Mapping[str, Any]:
        """Objects whose state belongs to a checkpoint, by name: all that it remembers."""
        return {}

    def metrics(self, episodes: Sequence[Episode]) -> dict[str, float]:
        """Metrics of a step's episodes besides those of its completions."""
        return {}
