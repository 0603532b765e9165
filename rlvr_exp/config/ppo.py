"""Options of `algorithm=ppo`: a policy and its value estimate, learned together."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rlvr_exp.config.algorithm import ReinforcementLearning
from rlvr_exp.config.options import configures, option
from rlvr_exp.config.trl_names import trl_problems
from rlvr_exp.core.errors import InputProblem

OF_GROUP_LOSS = (
    "delta",
    "importance_sampling_level",
    "off_policy_mask_threshold",
    "use_bias_correction_kl",
)
"""Fields of GRPOConfig that only the group methods' loss reads."""


@configures("rlvr_exp.algorithms.ppo.PPO")
@dataclass
class PPO(ReinforcementLearning):
    """Proximal policy optimisation with a value for every token."""

    clip_low: float = option(0.2, low=0, high=1)
    """The ratio is clipped below 1 minus this."""
    clip_high: float = option(0.2, low=0)
    """The ratio is clipped above 1 plus this."""
    gamma: float = option(1.0, low=0, high=1)
    """Discount of what comes a token later."""
    gae_lambda: float = option(0.95, low=0, high=1)
    """Advantages: 1 trusts the reward alone, 0 the value of the next token alone."""
    whiten_advantages: bool = option(True)
    """Bring the advantages of a batch to mean 0 and deviation 1."""
    iterations: int = option(4, low=1)
    """Passes over each batch of rollouts."""
    minibatches: int = option(1, low=1)
    """Parts that a batch is cut into, each with an update of its own."""
    value_trunk: str = option("shared", choices=("shared", "own"))
    """What the value reads: the policy's hidden states, which its loss then shapes as well, or a copy of its decoder."""
    value_coef: float = option(0.1, above=0)
    """Weight of the value's loss."""
    value_clip: float = option(0.2, low=0)
    """A value moves at most so far from its old estimate before its gradient stops; 0: no limit."""
    value_lr: float = option(0.0, low=0)
    """Learning rate of the value's own weights; 0: the optimizer's."""
    value_warmup_steps: int = option(0, low=0)
    """Updates at the start that train the value's own weights alone."""
    kl_coef: float = option(0.05, low=0)
    """Weight of the KL penalty to the reference; 0: no reference is kept."""
    kl_in: str = option("reward", choices=("reward", "loss"))
    """Where the penalty acts: in each token's reward, or as a term of the loss."""
    reference_sync_steps: int = option(0, low=0)
    """The reference becomes the policy every N steps; 0: never."""
    loss: str = option("token", choices=("token", "grpo", "dr_grpo"))
    """How token losses are aggregated; token: the mean over all tokens of a batch."""
    entropy_coef: float = option(0.0, low=0)
    """Weight of the entropy bonus."""
    replay_steps: int = option(0, low=0)
    """Batches of rollouts that are kept for replay; 0: none."""
    replay_prompts: int = option(0, low=0)
    """Groups drawn from those kept and added to each batch."""
    replay_max_weight: float = option(1.0, above=0)
    """Where the importance weight of a replayed token is cut off."""
    trl: dict[str, Any] = field(default_factory=dict)
    """Further fields of the trainer's GRPOConfig, by their own names."""

    def problems(self) -> list[InputProblem]:
        found = [*super().problems(), *trl_problems("GRPOConfig", self.trl)]
        return [*found, *self._of_group_loss(), *self._reference(), *self._replay(), *self._size()]

    def _of_group_loss(self) -> Iterator[InputProblem]:
        for name in self.trl:
            if name in OF_GROUP_LOSS:
                yield InputProblem(
                    f"trl.{name}", "read by the loss of the group methods alone", str(self.trl[name]), remedy="drop it"
                )

    def _size(self) -> Iterator[InputProblem]:
        if self.group_size < 2:
            what = "completions of a prompt are computed together, two or more"
            yield InputProblem("group_size", what, str(self.group_size), "2 or more", "", "algorithm.group_size=2")

    def _reference(self) -> Iterator[InputProblem]:
        if self.kl_coef:
            return
        remedy = "set algorithm.kl_coef above 0, or drop it"
        if self.reference_sync_steps:
            what = "without a KL penalty there is no reference to renew"
            yield InputProblem(
                "reference_sync_steps", what, str(self.reference_sync_steps), "0 while algorithm.kl_coef=0", "", remedy
            )
        if self.kl_in != "reward":
            yield InputProblem(
                "kl_in",
                "without a KL penalty it acts nowhere",
                self.kl_in,
                "reward while algorithm.kl_coef=0",
                "",
                remedy,
            )

    def _replay(self) -> Iterator[InputProblem]:
        if self.replay_steps and self.replay_prompts:
            return
        given = {"replay_steps": self.replay_steps, "replay_prompts": self.replay_prompts}
        remedy = "set algorithm.replay_steps and algorithm.replay_prompts both, or neither"
        for name, value in given.items():
            if value:
                yield InputProblem(name, "nothing is replayed without the other", str(value), "0", "", remedy)
        if self.replay_max_weight != 1.0:
            yield InputProblem(
                "replay_max_weight", "nothing is replayed", str(self.replay_max_weight), "1.0", "", remedy
            )
