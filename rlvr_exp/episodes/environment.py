"""An environment defines one episode: which role answers which prompt, when the episode ends, and how rewards are assigned to
turns. It samples, verifies and trains nothing itself.

Everything else is shared by all environments: sampling in waves over all live episodes, verification, collecting,
learning, logging, checkpoints, evaluation, inference. rlvr_exp/docs/environments.md builds one step by step.
"""

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rlvr_exp.episodes.episode import POLICY, Draws, Episode, Request, Turn
from rlvr_exp.episodes.types import Completion, RewardBreakdown, rank
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.tasks.tools import Tool
from rlvr_exp.verifiers.base import PROMPT_TOO_LONG

Run = Generator[Sequence[Request], list[Any], None]
"""Yields requests that can be answered together, and receives their answers in the same order."""


class Environment(ABC):
    """Subclasses name their roles and implement `domain` and `run`. Every other method has a default."""

    name: str
    """Prefix of the credit metrics if there are several roles. `metrics` chooses its own names."""
    roles: tuple[str, ...] = (POLICY,)
    keeps_outputs: bool = False
    """Whether verdicts keep the outputs of a candidate (rlvr_exp.verifiers.base) for the next request."""
    tools: Sequence[Tool] = ()
    """Tools that first prompts describe."""
    stops: tuple[str, ...] = ()
    """Texts that end a turn, besides those of the options."""
    one_group: bool = False
    """Whether every episode has exactly one group, so that groups can wait for later steps and be resampled."""

    @abstractmethod
    def domain(self, role: str) -> Domain:
        """The domain that writes the prompts of a role's tasks and parses the completions."""

    def reset(self, task: Task, draws: Draws, samples: Sequence[int] = (0,)) -> Episode:
        """A new episode, without turns."""
        return Episode(task, draws, tuple(samples))

    @abstractmethod
    def run(self, episode: Episode) -> Run:
        """Play an episode: yield a list of requests (`episode.ask`, `Judge`), receive their answers, and repeat until
        the end. Before an answer arrives, its turns and the verdicts of judged turns are added to `episode.turns`.
        Requests depend on the episode only."""

    def supplement(self, episodes: Sequence[Episode]) -> Sequence[Episode]:
        """Further episodes for a training step if a role has nothing to learn from in the episodes of the step."""
        return ()

    def groups(self, episode: Episode) -> Sequence[Sequence[int]]:
        """Indices of turns whose rewards have a common baseline: by default completions of the same prompt. The members
        of a group have the same role."""
        found: dict[tuple[str, int | None], list[int]] = {}
        for index, turn in enumerate(episode.turns):
            if turn.learn:
                found.setdefault((turn.role, turn.parent), []).append(index)
        return list(found.values())

    def rewarded(self, episode: Episode) -> Sequence[int]:
        """Indices of the turns whose completions earn a reward themselves."""
        return range(len(episode.turns))

    def credit(self, episode: Episode, rewards: Mapping[int, RewardBreakdown]) -> Mapping[int, RewardBreakdown]:
        """The credit of each member of `groups`, from the rewards of `rewarded` turns. By default a turn gets its own
        reward. `RewardBreakdown(value)` credits a turn that has earned no reward. With a total of None, nothing is
        learned from the turn."""
        return rewards

    def shown(self, episode: Episode, index: int) -> Completion:
        """A turn's completion as rollout files and success rates show it."""
        return episode.turns[index].completion

    def about(self, episode: Episode, index: int) -> Mapping[str, Any] | None:
        """Further fields of a turn for the rollout file, besides its completion. By default the role, if there are
        several. None: no fields."""
        return {"role": episode.turns[index].role} if len(self.roles) > 1 else None

    def result(self, episode: Episode) -> Completion:
        """The completion that an evaluation measures for the episode: by default the last one."""
        return episode.turns[-1].completion

    def outcome(self, episode: Episode) -> Mapping[str, Any] | None:
        """Further fields of an episode for an evaluation's file, besides its result. None: no fields."""
        return None

    def answers(self, episode: Episode) -> list[tuple[int, Turn]]:
        """Turns that inference reports, each with the number of its attempt, counted from 1. By default those of the
        best branch. None if the first prompt is too long."""
        turns, found = episode.turns, list[tuple[int, Turn]]()
        ends = [
            at
            for at, turn in enumerate(turns)
            if not episode.children(at) and turn.completion.verdict.bucket != PROMPT_TOO_LONG
        ]
        at = max(ends, key=lambda end: rank(turns[end].completion), default=None)
        while at is not None:
            found.insert(0, (episode.depth(at) + 1, turns[at]))
            at = turns[at].parent
        return found

    def pick(self, answers: Sequence[tuple[int, Turn]]) -> tuple[int, Turn]:
        """The answer of a task among its `answers`: by default the last."""
        return answers[-1]

    def solution(self, found: Any, episode: Episode, judged: bool) -> Any:
        """The result of a task (rlvr_exp.inference.solution) as inference reports it. By default it has the text that a
        candidate has made, if verdicts keep that text.

        Args:
            judged: verdicts come from a verifier.
        """
        made = found.completion.verdict.outputs if self.keeps_outputs else None
        return replace(found, edited=made[0]) if made else found

    def read(self, row: Mapping[str, Any], judged: bool) -> Task | None:
        """Read the task of a row. None if rows have their own format."""
        return None

    def remember(self, episodes: Sequence[Episode]) -> None:
        """Keep parts of a training step's episodes for the start of later ones. By default nothing is kept."""
        return

    @property
    def parts(self) -> Mapping[str, Any]:
        """Objects with state for a checkpoint, by name: everything that the environment remembers."""
        return {}

    def metrics(self, episodes: Sequence[Episode]) -> dict[str, float]:
        """Metrics of a step's episodes besides those of its completions."""
        return {}
