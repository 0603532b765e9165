"""Environments of one role: one completion for each prompt, or retries with the verifier's feedback."""

from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_exp.config import data as options
from rlvr_exp.episodes.environment import Environment, Run
from rlvr_exp.episodes.episode import Episode, SampleKey, Turn, all_turns
from rlvr_exp.episodes.types import Completion, RewardBreakdown, rank
from rlvr_exp.tasks.base import Domain
from rlvr_exp.tasks.completion import without_thoughts
from rlvr_exp.verifiers.base import PROMPT_TOO_LONG


class LastAnswerPays(Environment):
    """Every turn has the credit of the last one of its branch, because the outcome is that of the episode."""

    def groups(self, episode: Episode) -> Sequence[Sequence[int]]:
        """The turns at each depth: prompts after the first differ, but the difficulty of their task is the same."""
        return _by_depth(episode)

    def rewarded(self, episode: Episode) -> Sequence[int]:
        return [index for index in range(len(episode.turns)) if not episode.children(index)]

    def credit(self, episode: Episode, rewards: Mapping[int, RewardBreakdown]) -> Mapping[int, RewardBreakdown]:
        credited = dict(rewards)
        for index in rewards:
            parent = episode.turns[index].parent
            while parent is not None:
                credited[parent] = RewardBreakdown(rewards[index].total)
                parent = episode.turns[parent].parent
        return credited


def _by_depth(episode: Episode) -> list[list[int]]:
    found: dict[int, list[int]] = {}
    for index in range(len(episode.turns)):
        if not too_long(episode.turns[index].completion):
            found.setdefault(episode.depth(index), []).append(index)
    return list(found.values())


FAILED = ("failed", "rejected")
AGAIN = "again"
"""Stands before the number of a retry in its random key."""


class SingleTurn(Environment, options.SingleTurn):
    """One prompt, one completion, one verdict."""

    name = "single_turn"
    one_group = True

    def __init__(self, domain: Domain):
        self._domain = domain

    def domain(self, role: str) -> Domain:
        return self._domain

    def run(self, episode: Episode) -> Run:
        yield [episode.ask(self._domain.task_prompt(episode.task))]


class Retry(Environment, options.Retry):
    """Attempts until a completion passes. The prompt of a retry shows the failed completion with the verifier's feedback.

    Args:
        best: retry only the best completion of an attempt, with as many samples as the first prompt. Otherwise retry
            each failed completion once.
    """

    name = "retry"

    def __init__(self, domain: Domain, best: bool = False, **given: Any):
        super().__init__(**given)
        self._domain, self._best = domain, best

    def domain(self, role: str) -> Domain:
        return self._domain

    def run(self, episode: Episode) -> Run:
        task = episode.task
        [turns] = yield [episode.ask(self._domain.task_prompt(task), keys=self._keys(episode, 1))]
        for attempt in range(1, self.attempts):
            followed = [max(turns, key=lambda turn: rank(turn.completion))] if self._best and turns else turns
            answers = yield [
                episode.ask(
                    self._domain.retry_prompt(
                        task,
                        without_thoughts(turn.completion.text),
                        self._domain.feedback(task, turn.completion.verdict),
                    ),
                    parent=turn,
                    path=(AGAIN, attempt),
                    keys=self._keys(episode, attempt + 1),
                )
                for turn in followed
                if follows(turn.completion)
            ]
            turns = all_turns(answers)

    def _keys(self, episode: Episode, attempt: int) -> list[SampleKey] | None:
        """Keys of an attempt that follows the best completion of the previous one. None: keys that follow from the
        turn."""
        if not self._best:
            return None
        return [episode.draws.key(episode.task, attempt, sample) for sample in episode.samples]

    def groups(self, episode: Episode) -> Sequence[Sequence[int]]:
        """The completions of each attempt. Prompts of retries differ, but the difficulty of their task is the same."""
        return _by_depth(episode)

    def answers(self, episode: Episode) -> list[tuple[int, Turn]]:
        """The first of the best completions of each attempt, if only the best is followed."""
        if not self._best:
            return super().answers(episode)
        found: dict[int, Turn] = {}
        for turn in episode.turns:
            attempt, one = episode.depth(turn.index) + 1, turn.completion
            best = found.get(attempt)
            if not too_long(one) and (best is None or rank(one) > rank(best.completion)):
                found[attempt] = turn
        return [*found.items()]

    def pick(self, answers: Sequence[tuple[int, Turn]]) -> tuple[int, Turn]:
        return max(answers, key=lambda one: rank(one[1].completion)) if self._best else super().pick(answers)

    def result(self, episode: Episode) -> Completion:
        """The first of the best completions."""
        drawn = [turn.completion for turn in episode.turns if not too_long(turn.completion)]
        return max(drawn or [episode.turns[0].completion], key=rank)


def follows(completion: Completion) -> bool:
    """Whether another attempt may follow. Completions that passed, have no verdict or had a prompt that was too long
    are not retried."""
    return completion.verdict.outcome in FAILED and not too_long(completion)


def too_long(completion: Completion) -> bool:
    return completion.verdict.bucket == PROMPT_TOO_LONG
