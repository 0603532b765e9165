"""A completion that does not pass is followed by another, whose prompt shows it with the verifier's feedback."""

from collections.abc import Sequence
from typing import Any

from rlvr_exp.config import data as options
from rlvr_exp.episodes.environment import Environment
from rlvr_exp.episodes.episode import POLICY, Episode, Sample
from rlvr_exp.episodes.types import Completion
from rlvr_exp.tasks.base import Domain
from rlvr_exp.tasks.completion import without_thoughts
from rlvr_exp.verifiers.base import PROMPT_TOO_LONG, Verdict

FAILED = ("failed", "rejected")


class Retry(Environment, options.Retry):
    """
    Args:
        best: only the best completion of an attempt is followed, by as many as the first prompt is sampled for; otherwise
            each that does not pass, by one.
    """

    name = "retry"

    def __init__(self, domain: Domain, best: bool = False, **given: Any):
        super().__init__(**given)
        self._domain, self._best = domain, best

    def domain(self, role: str) -> Domain:
        return self._domain

    def asks(self, episode: Episode) -> Sequence[Sample]:
        if not episode.turns:
            keys = [episode.draws.key(episode.task, *self._first(index)) for index in episode.samples]
            return [Sample(POLICY, episode.task, self._domain.task_prompt(episode.task), tuple(keys))]
        depth = max(map(episode.depth, range(len(episode.turns))))
        if depth + 1 >= self.attempts:
            return ()
        last = [index for index in range(len(episode.turns)) if episode.depth(index) == depth]
        if self._best:
            last = [max(last, key=lambda index: rank(episode.turns[index].completion))]
        return [self._retry(episode, index, depth + 1) for index in last if follows(episode.turns[index].completion)]

    def _first(self, index: int) -> tuple[int, ...]:
        return (1, index) if self._best else (index,)

    def _retry(self, episode: Episode, index: int, attempt: int) -> Sample:
        turn, task = episode.turns[index], episode.task
        previous = without_thoughts(turn.completion.text)
        prompt = self._domain.retry_prompt(task, previous, feedback(turn.completion.verdict))
        if self._best:
            keys = tuple(episode.draws.key(task, attempt + 1, sample) for sample in episode.samples)
        else:
            keys = (retried(turn.key, attempt),)
        return Sample(POLICY, task, prompt, keys, parent=index)

    def groups(self, episode: Episode) -> Sequence[Sequence[int]]:
        """The completions of each attempt: those of a retry have prompts of their own, and one task's difficulty."""
        found: dict[int, list[int]] = {}
        for index in range(len(episode.turns)):
            if not too_long(episode.turns[index].completion):
                found.setdefault(episode.depth(index), []).append(index)
        return list(found.values())

    def result(self, episode: Episode) -> Completion:
        """The first of the best completions."""
        drawn = [turn.completion for turn in episode.turns if not too_long(turn.completion)]
        return max(drawn or [episode.turns[0].completion], key=rank)


def follows(completion: Completion) -> bool:
    """Whether another attempt may follow: not after a pass, without a verdict, or where the prompt was too long."""
    return completion.verdict.outcome in FAILED and not too_long(completion)


def too_long(completion: Completion) -> bool:
    return completion.verdict.bucket == PROMPT_TOO_LONG


def retried(key: tuple | None, attempt: int) -> tuple | None:
    """The key of a retry of the completion with this key; `attempt` is 1 for the first retry."""
    return None if key is None else (*key, "again", attempt)


def rank(completion: Completion) -> tuple[int, float]:
    """Orders completions: one that passed, then the others by score, then one without a verdict."""
    return {"passed": 2, "no_verdict": 0}.get(completion.verdict.outcome, 1), completion.verdict.score


def feedback(verdict: Verdict) -> str:
    """The feedback of a verdict for the next prompt."""
    return f"{verdict.reason}: {verdict.log}" if verdict.log else verdict.reason
