"""Which role is credited with how much of a cascade's reward: pure functions of one task's rewards.

R(b, a) is the reward of body b annotated by a. One task has G bodies with H annotations each; None is no verdict.

The annotator is always credited with R(b, a). Its group is one body, so its baseline, the mean over the annotations of
that body, is COMA's counterfactual one: its own action varies, the writer's stays as it is (Foerster et al. 2018,
"Counterfactual Multi-Agent Policy Gradients", arXiv 1705.08926, eq. 4).

The writer is credited with
- `shared`: Q(b) = mean over a of R(b, a), the reward of the cascades that b is part of;
- `counterfactual`: D(b) = V(b) - mean over the other bodies b' of V(b'). V(b) is R of b under an annotator that is not
  trained on it: the gold's annotations, grafted onto b, or newly sampled annotations. This removes the luck of the
  annotator with b, and the difficulty of the task. It is a difference reward (Wolpert and Tumer 2001, "Optimal Payoff
  Functions for Members of Collectives", section 3): the team's reward less its reward had this member acted otherwise,
  here as its own policy acts, which is COMA's baseline estimated from the group.
"""

from collections.abc import Sequence
from statistics import fmean

OptionalReward = float | None


def mean(rewards: Sequence[OptionalReward]) -> OptionalReward:
    """The mean of the rewards with a verdict; None without any."""
    judged = [reward for reward in rewards if reward is not None]
    return fmean(judged) if judged else None


def shared(rewards: Sequence[Sequence[OptionalReward]]) -> list[OptionalReward]:
    """(G, H) rewards of cascades -> (G,) the writer's credits."""
    return [mean(of_body) for of_body in rewards]


def counterfactual(values: Sequence[Sequence[OptionalReward]]) -> list[OptionalReward]:
    """(G, K) rewards of each body under the other annotator -> (G,) differences from the other bodies of the task."""
    own = shared(values)
    return [None if value is None else value - (_of_others(own, place) or 0.0) for place, value in enumerate(own)]


def _of_others(values: Sequence[OptionalReward], place: int) -> OptionalReward:
    """The only verified body of a task has no others: its value is its credit, and its group has zero variance anyway."""
    return mean([*values[:place], *values[place + 1 :]])
