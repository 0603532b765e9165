"""Recent groups, kept for replay. Their advantages are not kept: they are re-estimated with the current value, and a
token's weight corrects for the policy that sampled it (algorithms.ppo_loss).
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.seeds import stream
from rlvr_exp.rollouts.groups import Group
from rlvr_exp.rollouts.saved_groups import group_from, group_state


class ReplayBuffer:
    """The groups of the last `steps` batches.

    Args:
        prompts: groups drawn each time, fewer while the buffer has fewer.
        seed: draws depend only on it and the step.
    """

    def __init__(self, steps: int, prompts: int, seed: int):
        self._prompts, self._seed = prompts, seed
        self._kept: deque[list[Group]] = deque(maxlen=steps)

    def exchange(self, step: int, fresh: Sequence[Group]) -> list[Group]:
        """Groups of earlier batches, drawn without replacement; then `fresh` is kept and the oldest batch dropped."""
        pool = [group for batch in self._kept for group in batch]
        drawn = stream(self._seed, "replay", step).sample(pool, min(self._prompts, len(pool)))
        self._kept.append(list(fresh))
        return drawn

    def metrics(self) -> dict[str, float]:
        return {"groups": float(sum(len(batch) for batch in self._kept))}

    def state_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"batches": [[group_state(group) for group in batch] for batch in self._kept]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Raises InputError for unknown or missing keys."""
        if set(state) != {"batches"}:
            got = ", ".join(sorted(state)) or "no keys"
            raise InputError(InputProblem("state of ReplayBuffer", "has other keys", got, "batches"))
        self._kept.clear()
        self._kept.extend([group_from(group) for group in batch] for batch in state["batches"])
