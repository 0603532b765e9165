"""Options of the `algorithm` group: how the policy learns. A batch is described by what a person decides."""

from dataclasses import dataclass, field
from typing import Any

from rlvr_exp.config.options import configures, option
from rlvr_exp.config.sampling import Drawing
from rlvr_exp.config.trl_names import trl_problems
from rlvr_exp.core.errors import Problem


@dataclass
class ReinforcementLearning(Drawing):
    """What every algorithm that samples and is rewarded has; a user's own schema derives from it."""

    max_steps: int = option(360, low=1)
    """Update steps."""
    prompts_per_step: int = option(32, low=1)
    """Tasks asked in one step."""
    group_size: int = option(8, low=1)
    """Completions sampled for each task."""
    max_tokens_per_device: int = option(16384, low=1)
    """Tokens of one forward and backward pass; micro-batches and accumulation follow from it."""
    rollout_batch_size: int = option(512, low=1, outside=True)
    """Completions sampled at once, in whole groups; what is drawn does not depend on it."""

    def problems(self) -> list[Problem]:
        found = self.drawing_problems()
        if self.top_k == 1 or self.min_p == 1:
            name = "top_k" if self.top_k == 1 else "min_p"
            what = "leaves one token to draw from: all completions of a group would be the same"
            found.append(Problem(name, what, str(getattr(self, name)), remedy=f"algorithm.{name} off, or wider"))
        return found


@configures("rlvr_exp.algorithms.grpo.GRPO")
@dataclass
class GRPO(ReinforcementLearning):
    """Group-relative policy optimisation."""

    clip_low: float = option(0.2, low=0, high=1)
    """The ratio is clipped below 1 minus this."""
    clip_high: float = option(0.2, low=0)
    """The ratio is clipped above 1 plus this."""
    kl_coef: float = option(0.0, low=0)
    """Weight of the KL penalty to the reference; 0: no reference is kept."""
    reference_sync_steps: int = option(0, low=0)
    """The reference becomes the policy every N steps; 0: never."""
    loss: str = option("grpo", choices=("grpo", "dapo", "dr_grpo"))
    """How token losses are aggregated."""
    advantage_scale: str = option("group", choices=("group", "batch", "none"))
    """Over what the standard deviation that divides advantages is taken."""
    iterations: int = option(1, low=1)
    """Updates on each batch of rollouts."""
    zero_variance: str = option("keep", choices=("keep", "mask"))
    """Groups whose rewards are all equal: keep them in the loss's denominators, or mask them out."""
    entropy_coef: float = option(0.0, low=0)
    """Weight of the entropy bonus."""
    trl: dict[str, Any] = field(default_factory=dict)
    """Further fields of the trainer's GRPOConfig, by their own names."""

    def problems(self) -> list[Problem]:
        found = super().problems() + trl_problems("GRPOConfig", self.trl)
        if self.group_size < 2:
            remedy = "algorithm.group_size=2 or more"
            found.append(
                Problem(
                    "group_size",
                    "a group of one has no advantage over itself",
                    str(self.group_size),
                    "2 or more",
                    "",
                    remedy,
                )
            )
        if self.reference_sync_steps and not self.kl_coef:
            found.append(
                Problem(
                    "reference_sync_steps",
                    "without a KL penalty there is no reference to renew",
                    str(self.reference_sync_steps),
                    "0 while algorithm.kl_coef=0",
                    remedy="set algorithm.kl_coef above 0, or drop it",
                )
            )
        return found


@configures("rlvr_exp.algorithms.sft.SFT")
@dataclass
class SFT:
    """Imitation of gold completions; the prompt is masked."""

    max_steps: int = option(150, low=1)
    """Update steps; fewer when held-out loss stops falling."""
    batch_size: int = option(64, low=1)
    """Sequences in one step."""
    max_tokens_per_device: int = option(16384, low=1)
    """Tokens of one forward and backward pass; micro-batches and accumulation follow from it."""
    max_sequence_tokens: int = option(1024, low=1)
    """Longest prompt with its completion; longer ones are left out and counted."""
    eval_every_steps: int = option(50, low=1)
    """Steps between measurements of held-out loss."""
    patience: int = option(5, low=1)
    """Measurements without a better held-out loss after which training stops."""
    trl: dict[str, Any] = field(default_factory=dict)
    """Further fields of the trainer's SFTConfig, by their own names."""

    def problems(self) -> list[Problem]:
        return trl_problems("SFTConfig", self.trl)
