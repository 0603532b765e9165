"""Proximal Policy Optimization with a value for every token (Schulman et al. 2017, arXiv 1707.06347), as it is used on
language models since Ziegler et al. 2019 (arXiv 1909.08593): a completion is an episode, a token an action.

Defaults are those of Ziegler et al. and of Huang et al. 2024 (arXiv 2403.17031): clip 0.2, gamma 1, lambda 0.95, four
passes, one mini-batch, value loss 0.1 with clip 0.2, the KL penalty in the reward, a value head on the policy's trunk.

Differences from PPO (Schulman et al. 2017):
- The entropy bonus is 0 by default; the paper's Atari experiments use 0.01.
- Advantages are whitened and the value loss is clipped, as in the authors' code (openai/baselines); the paper has neither.
- Advantages, and the split into mini-batches, are computed once for a batch and hold for all its passes.
Differences from GAE (Schulman et al. 2016):
- Episodes are never cut off: an episode that reaches the token limit ends there, with V = 0 after it, and keeps its reward.
Differences from token-level PPO (Ziegler et al. 2019; Ouyang et al. 2022, InstructGPT):
- The KL coefficient is constant, where Ziegler et al. adapt it; `kl_in=loss` makes it a term of the loss ("k3" estimate).
- Rewards are not whitened. The value starts at zero on the policy's trunk (`value_trunk=own`: on a copy of it), where
  InstructGPT starts it from a reward model.
- No pretraining gradients are mixed in.
Beyond the papers: recent groups may be replayed, each token weighted by min(c, pi_old / pi_then) (decoupled PPO, Hilton et
al. 2021, with the truncation of IMPALA); their advantages are estimated with the current value, without a correction of
later tokens (no V-trace). A sample without a verdict leaves the loss. The baseline of a token is only its value: sampling
several completions of each prompt serves speed, not the baseline.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from trl import GRPOConfig

from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.algorithms.nonfinite_guard import NonFiniteGuard
from rlvr_exp.algorithms.ppo_trainer import PPOTrainer, ReplayBuffer
from rlvr_exp.algorithms.trajectories import Trajectories, collected
from rlvr_exp.config import algorithm as options
from rlvr_exp.config.parallel import BatchLimits
from rlvr_exp.models.policy import Policy
from rlvr_exp.models.value_head import ActorCritic, with_value
from rlvr_exp.rollouts.collect import BatchPlan
from rlvr_exp.rollouts.groups import Groups


class PPO(Algorithm, options.PPO):
    @property
    def regularised(self) -> bool:
        """Every sample with a verdict is trained on: equal rewards of a group do not make the value's loss zero."""
        return True

    def plan(self) -> BatchPlan:
        return BatchPlan(self.prompts_per_step, self.group_size, self.max_steps, self.iterations * self.minibatches)

    def experience(self, groups: Groups, pad_id: int) -> Trajectories:
        """The groups as trajectories; the trainer, which has the value, estimates their advantages."""
        return collected(groups.batch, len(groups.batch), pad_id, self)

    def trl_arguments(self) -> Mapping[str, Any]:
        return {
            **super().trl_arguments(),
            # TRL builds the reference model where the coefficient is not 0.
            "beta": self.kl_coef,
            "sync_ref_model": self.reference_sync_steps > 0,
            "ref_model_sync_steps": max(1, self.reference_sync_steps),
            "ref_model_mixup_alpha": 1.0,
            "num_iterations": self.iterations,
            **self.trl,
        }

    def trainer(
        self,
        policy: Policy,
        args: GRPOConfig,
        optimizer: torch.optim.Optimizer,
        guard: NonFiniteGuard,
        limits: BatchLimits,
    ) -> PPOTrainer:
        """The trainer of the policy and its value, whose weights join the optimizer's."""
        critic = with_value(policy.model, self.value_trunk)
        if self.checkpoint:
            critic.value.load(Path(self.checkpoint))
        add_value_weights(optimizer, critic, self.value_lr)
        replay = ReplayBuffer(self.replay_steps, self.replay_prompts, args.seed) if self.replay_steps else None
        common = {"args": args, "optimizer": optimizer, "guard": guard, "limits": limits}
        return PPOTrainer(self, critic, replay, policy=policy, **common)


def add_value_weights(optimizer: torch.optim.Optimizer, critic: ActorCritic, lr: float) -> None:
    """Give the optimizer the value's own weights, at their own rate where `lr` is not 0. Matrices of a trunk decay as the
    policy's do; biases, norms and the output do not."""
    own = [value for value in critic.value.parameters() if value.requires_grad]
    output = {id(value) for value in critic.value.output.parameters()}
    decayed = [value for value in own if value.ndim >= 2 and id(value) not in output]
    plain = [value for value in own if value.ndim < 2 or id(value) in output]
    rate = {"lr": lr} if lr else {}
    decay = optimizer.param_groups[0].get("weight_decay", 0.0)
    for values, of_group in ((decayed, decay), (plain, 0.0)):
        if values:
            optimizer.add_param_group({"params": values, "weight_decay": of_group, **rate})
