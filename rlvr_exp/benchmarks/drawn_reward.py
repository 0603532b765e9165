"""A reward for policies that solve nothing: random weights would leave every group without a signal to learn from."""

from collections.abc import Sequence
from dataclasses import dataclass

from rlvr_exp.core.seeds import uniform
from rlvr_exp.episodes.types import Completion, RewardBreakdown
from rlvr_exp.rewards.compose import Reward
from rlvr_exp.rewards.normalize import Identity


@dataclass
class DrawnReward(Reward):
    """0 or 1, drawn from the task and the text alone: both sides of a comparison pay a completion alike."""

    def __post_init__(self) -> None:
        self.terms, self.normalizer, self._nonfinite = {}, Identity(), []

    def __call__(self, completions: Sequence[Completion]) -> list[RewardBreakdown]:
        drawn = [float(uniform("drawn reward", one.task.id, one.text) < 0.5) for one in completions]
        return [RewardBreakdown(value, value, {"drawn": value}) for value in drawn]
