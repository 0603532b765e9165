"""Edits in steps, and the reward of supervised reinforcement learning (Deng et al. 2025, arXiv 2510.25992).

In an episode the policy sees the text that its last action made, until it answers `done`. The last text decides success.

The reward is the likeness of an action to a teacher's. The scores are the verifier's (rlvr_exp.domains.edits.measures). They say
nothing of right and wrong: a reward of these terms has `ordered: false`.
"""

from collections.abc import Sequence
from typing import ClassVar

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.domains.edits import options
from rlvr_exp.episodes.environment import Run
from rlvr_exp.episodes.environments import LastAnswerPays
from rlvr_exp.episodes.episode import Episode, Turn, all_turns
from rlvr_exp.episodes.types import Completion
from rlvr_exp.rewards.base import Term, ValueRange
from rlvr_exp.tasks.base import ContinuesEdits, Domain


class Edits(LastAnswerPays, options.EditSteps):
    """An answer that makes no text ends an episode. Every action has the credit of the last one of its branch: the
    paper's trajectories have one outcome, and steps have none of their own.

    Raises:
        InputError: the domain's tasks cannot be done in steps.
    """

    name = "edits"
    keeps_outputs = True

    def __init__(self, domain: Domain, **given: int):
        super().__init__(**given)
        if not isinstance(domain, ContinuesEdits):
            raise InputError(
                InputProblem("environment", "these tasks are not done in steps", domain.name, "data=edits")
            )
        self._domain = domain

    def domain(self, role: str) -> Domain:
        return self._domain

    def run(self, episode: Episode) -> Run:
        [turns] = yield [episode.ask(self._domain.task_prompt(episode.task))]
        for step in range(1, self.steps):
            going = [turn for turn in turns if turn.completion.verdict.outputs and not self._is_done(turn)]
            tasks = [
                self._domain.after_step(one.task, one.verdict.outputs[0], one.text)
                for one in (turn.completion for turn in going)
            ]
            answers = yield [
                episode.ask(self._domain.task_prompt(task), task=task, parent=turn, path=("step", step))
                for turn, task in zip(going, tasks, strict=True)
            ]
            turns = all_turns(answers)

    def metrics(self, episodes: Sequence[Episode]) -> dict[str, float]:
        """Actions of an episode's branch on average, and the share of branches that ended by `done`."""
        ends = [(episode, index) for episode in episodes for index in self.rewarded(episode)]
        if not ends:
            return {}
        depths = [episode.depth(index) + 1 for episode, index in ends]
        done = [self._is_done(episode.turns[index]) for episode, index in ends]
        return {"episode/steps": sum(depths) / len(ends), "episode/done": sum(done) / len(ends)}

    def _is_done(self, turn: Turn) -> bool:
        return self._domain.is_last(turn.completion.text, turn.completion.task)


SHARE = ValueRange(0.0, 1.0)


def is_valid(completion: Completion) -> bool:
    """Whether an answer is an action that ast-grep takes."""
    return completion.verdict.measures.get("valid", 0.0) == 1.0


def score(completion: Completion, name: str) -> float:
    """A score of a valid action, else 0. Raises InputError if the task has no teacher's action."""
    if not is_valid(completion):
        return 0.0
    if name not in completion.verdict.measures:
        what, remedy = "a task has no action of a teacher", "data=edits with rows that have an `action`"
        raise InputError(InputProblem("reward", what, completion.task.id, remedy=remedy))
    return completion.verdict.measures[name]


class FieldSimilarity(Term, options.FieldSimilarity):
    """Share of the fields of the two actions that match; 0 for an invalid action."""

    when_correct: ClassVar[ValueRange] = SHARE
    when_wrong: ClassVar[ValueRange] = SHARE

    def __call__(self, completion: Completion) -> float:
        return score(completion, "field_similarity")


class StringSimilarity(Term, options.StringSimilarity):
    """Matching characters of the two actions as YAML; 0 for an invalid action."""

    when_correct: ClassVar[ValueRange] = SHARE
    when_wrong: ClassVar[ValueRange] = SHARE

    def __call__(self, completion: Completion) -> float:
        return score(completion, "string_similarity")


class InvalidAction(Term, options.InvalidAction):
    """-1 for an answer that is no action, or none that ast-grep takes; else 0."""

    when_correct: ClassVar[ValueRange] = ValueRange(0.0, 0.0)
    when_wrong: ClassVar[ValueRange] = ValueRange(-1.0, 0.0)

    def __call__(self, completion: Completion) -> float:
        return 0.0 if is_valid(completion) else -1.0
