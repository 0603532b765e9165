"""Recent groups of completions, kept for replay. Holds samples and rewards but no advantages: those are re-estimated with
the current value, and a token's weight corrects for the policy that sampled it (algorithms.ppo_loss).
"""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.seeds import stream
from rlvr_exp.rollouts.sampler import TokenSample
from rlvr_exp.rollouts.saved_groups import plain_sample, sample_from_plain


@dataclass(frozen=True)
class Recent:
    """A group as it was sampled and rewarded."""

    id: int
    prompt: tuple[int, ...]
    samples: tuple[TokenSample, ...]
    """With the log-probabilities of the policy that sampled them."""
    rewards: tuple[float, ...]
    """The reward of each sample, NaN without a verdict."""


class ReplayBuffer:
    """The groups of the last `steps` batches.

    Args:
        prompts: groups drawn each time, fewer while the buffer has fewer.
        seed: draws depend only on it and the step.
    """

    def __init__(self, steps: int, prompts: int, seed: int):
        self._prompts, self._seed = prompts, seed
        self._kept: deque[list[Recent]] = deque(maxlen=steps)

    def exchange(self, step: int, fresh: Sequence[Recent]) -> list[Recent]:
        """Groups of earlier batches, drawn without replacement; then `fresh` is kept and the oldest batch dropped."""
        pool = [group for batch in self._kept for group in batch]
        drawn = stream(self._seed, "replay", step).sample(pool, min(self._prompts, len(pool)))
        self._kept.append(list(fresh))
        return drawn

    def metrics(self) -> dict[str, float]:
        return {"groups": float(sum(len(batch) for batch in self._kept))}

    def state_dict(self) -> dict[str, Any]:
        """Plain values: a missing verdict is None."""
        return {"batches": [[_plain(group) for group in batch] for batch in self._kept]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Raises InputError for unknown or missing keys."""
        if set(state) != {"batches"}:
            got = ", ".join(sorted(state)) or "no keys"
            raise InputError(InputProblem("state of ReplayBuffer", "has other keys", got, "batches"))
        self._kept.clear()
        self._kept.extend([_group(group) for group in batch] for batch in state["batches"])


def _plain(group: Recent) -> dict[str, Any]:
    samples = tuple(plain_sample(one) for one in group.samples)
    rewards = [None if math.isnan(reward) else reward for reward in group.rewards]
    return {**asdict(group), "samples": samples, "rewards": rewards}


def _group(state: Mapping[str, Any]) -> Recent:
    samples = [sample_from_plain(one) for one in state["samples"]]
    rewards = [math.nan if reward is None else reward for reward in state["rewards"]]
    return Recent(state["id"], tuple(state["prompt"]), tuple(samples), tuple(rewards))
