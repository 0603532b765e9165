"""The reward of supervised reinforcement learning: likeness of an action to a teacher's (Deng et al. 2025, arXiv 2510.25992).

The scores are the verifier's (rlvr_exp.domains.edits.measures). They say nothing of right and wrong: a reward of these
terms has `ordered: false`.
"""

from typing import ClassVar

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.domains.edits import options
from rlvr_exp.episodes.types import Completion
from rlvr_exp.rewards.base import Term, ValueRange

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
