"""The training data of PPO: completions as episodes, with estimates for each of their tokens.

Collecting (`collected`) and estimating (`estimated`) are pure functions; neither runs a model.

The trainer of PPO: PolicyTrainer on a policy and its value as one module, with PPO's own loss.

Before a batch is split into mini-batches, every token's log-probability and value are computed once (`_prepared`); the
estimates and the losses themselves are pure functions (`collected`, `estimated`, algorithms.loss).

The replay buffer keeps recent groups. Their advantages are not kept: they are re-estimated with the current value, and a
token's weight corrects for the policy that sampled it (algorithms.loss).

Proximal Policy Optimization with a value for every token (Schulman et al. 2017, arXiv 1707.06347), as it is used on
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
- The KL coefficient is constant; Ziegler et al. adapt it; `kl_in=loss` makes it a term of the loss ("k3" estimate).
- Rewards are not whitened. The value starts at zero on the policy's trunk (`value_trunk=own`: on a copy of it);
  InstructGPT starts it from a reward model.
- No pretraining gradients are mixed in.
Beyond the papers: recent groups may be replayed, each token weighted by min(c, pi_old / pi_then) (decoupled PPO, Hilton et
al. 2021, with the truncation of IMPALA); their advantages are estimated with the current value, without a correction of
later tokens (no V-trace). A sample without a verdict leaves the loss. The baseline of a token is only its value: sampling
several completions of each prompt serves speed, not the baseline.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from trl import GRPOConfig
from trl.trainer.callbacks import SyncRefModelCallback

from rlvr_exp.algorithms import loss as ppo_loss
from rlvr_exp.algorithms.advantages import explained_variance, gae, token_rewards, whiten
from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.algorithms.gradients import NonFiniteGuard
from rlvr_exp.algorithms.loss import EntropyControl, importance_weights, token_weights
from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.algorithms.training_batch import TrainingBatch, collate, completion_mask, members_of, rewards_of
from rlvr_exp.config import algorithm as options
from rlvr_exp.config.parallel import BatchLimits
from rlvr_exp.core.errors import check_state
from rlvr_exp.core.seeds import stream
from rlvr_exp.models.adapters import adapters_off
from rlvr_exp.models.policy import Policy
from rlvr_exp.models.value_head import ActorCritic, with_value
from rlvr_exp.rollouts.collect import BatchPlan
from rlvr_exp.rollouts.groups import Group, Groups, group_from, group_state


@dataclass(frozen=True, kw_only=True)
class Trajectories(TrainingBatch):
    """Groups of a batch, freshly sampled groups before replayed groups."""

    recent: tuple[Group, ...]
    """The fresh groups as they were sampled."""
    rewards: torch.Tensor
    """(N,), NaN without a verdict"""
    old_logprobs: torch.Tensor
    """(N, T) under the policy before this batch's updates; the sampler's until `estimated`"""
    old_values: torch.Tensor
    """(N, T) V before each token, by the value model before this batch's updates; zero until `estimated`"""
    returns: torch.Tensor
    """(N, T) targets of the value; zero until `estimated`"""
    importance: torch.Tensor
    """(N, T) weight of each token in the policy's loss: 1 for fresh samples"""

    @property
    def fresh(self) -> int:
        """The number of fresh samples: the first rows."""
        return sum(len(group.completions) for group in self.recent)


def collected(groups: Sequence[Group], fresh: int, pad_id: int, settings: "PPO") -> Trajectories:
    """Groups as tensors, nothing estimated yet.

    Args:
        fresh: how many, from the first on, were sampled from the current policy.
    """
    rewards = rewards_of(groups)[members_of(groups)]
    mask = completion_mask(groups) * ~rewards.isnan()[:, None]
    weights = token_weights(mask, settings.loss, settings.max_completion_tokens)
    nothing = torch.zeros_like(weights)
    batch = collate(groups, pad_id, advantages=nothing, weights=weights, off_policy=fresh < len(groups))
    return Trajectories(
        **vars(batch),
        recent=tuple(groups[:fresh]),
        rewards=rewards,
        old_logprobs=batch.sampling_logprobs,
        old_values=nothing,
        returns=nothing,
        importance=torch.ones_like(weights),
    )


def estimated(
    given: Trajectories,
    logprobs: torch.Tensor,
    values: torch.Tensor,
    reference: torch.Tensor | None,
    settings: "PPO",
) -> Trajectories:
    """Advantages, returns and importance weights of every token.

    Args:
        logprobs: (N, T) under the policy before this batch's updates.
        values: (N, T) by the value before this batch's updates.
        reference: (N, T) log-probabilities of the reference if the KL penalty is part of the reward; None: no penalty.
    """
    mask = given.completion_mask
    penalty = torch.zeros_like(values) if reference is None else settings.kl_coef * (logprobs - reference)
    rewards = token_rewards(given.rewards.nan_to_num(0.0), mask, penalty)
    advantages, returns = gae(rewards, values, mask, settings.gamma, settings.gae_lambda)
    learned = given.weights > 0
    advantages = whiten(advantages, learned) if settings.whiten_advantages else advantages * learned
    fresh = given.fresh
    importance = importance_weights(logprobs, given.sampling_logprobs, settings.replay_max_weight)
    importance[:fresh] = 1.0
    return replace(
        given, advantages=advantages, old_logprobs=logprobs, old_values=values, returns=returns, importance=importance
    )


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
        check_state(self, state, ("batches",))
        self._kept.clear()
        self._kept.extend([group_from(group) for group in batch] for batch in state["batches"])


ESTIMATES = ("old_logprobs", "old_values", "returns", "importance")
"""Fields of Trajectories that the loss reads besides the advantages."""


class PPOTrainer(PolicyTrainer):
    """Updates a policy and its value.

    Args:
        algorithm: the PPO that builds this trainer.
        critic: the policy's model with its value; the optimizer has the weights of both.
        replay: groups of earlier batches; None: no replay.
        common: the arguments of PolicyTrainer.
    """

    def __init__(self, algorithm: "PPO", critic: ActorCritic, replay: ReplayBuffer | None, **common: Any):
        super().__init__(entropy=EntropyControl(algorithm.entropy_coef), **common)
        self._ppo, self._critic, self._replay = algorithm, critic, replay
        self._pad_id = common["policy"].pad_id
        # TRL has put its fused head on the inner language model; the trained model is this wrapper.
        self.model = self.model_wrapped = critic
        self._reference_in_reward = self.beta != 0.0 and algorithm.kl_in == "reward"
        if self._reference_in_reward:
            self.beta = 0.0  # TRL has built the reference; the penalty is in the reward of each token.
        for callback in self.callback_handler.callbacks:
            if isinstance(callback, SyncRefModelCallback):
                callback.sync_target_model = _sync_policy

    @property
    def checkpoint_parts(self) -> Mapping[str, Any]:
        replay = {} if self._replay is None else {"replay": self._replay}
        return {**super().checkpoint_parts, "value": self._critic.value, **replay}

    @property
    def _steps_per_experience(self) -> int:
        return self._ppo.iterations * self._ppo.minibatches

    @property
    def _joins(self) -> bool:
        """Not here: mini-batches are drawn from prompts."""
        return False

    def _minibatches(self, experience: TrainingBatch) -> list[Sequence[int]]:
        """Prompts in an order that depends only on the seed and the step, split into parts of equal size (give or take 1)."""
        prompts = list(range(experience.prompts))
        stream(self.args.seed, "minibatches", self.state.global_step).shuffle(prompts)
        count = self._ppo.minibatches
        bounds = [round(part * len(prompts) / count) for part in range(count + 1)]
        return [prompts[a:b] for a, b in pairwise(bounds)]

    def _counted(self, experience: TrainingBatch) -> torch.Tensor:
        return (experience.weights != 0).any(1)

    def _prepared(self, experience: Trajectories) -> Trajectories:  # type: ignore[override]
        """The batch with replayed groups, and with all estimates."""
        if self._replay is not None:
            drawn = self._replay.exchange(self.state.global_step, experience.recent)
            experience = collected([*experience.recent, *drawn], len(experience.recent), self._pad_id, self._ppo)
        self.model.eval()  # As the sampler ran: without dropout.
        logprobs, values, *reference = self._of_all(experience, self._now)
        self.model.train()
        given = estimated(experience, logprobs, values, reference[0] if reference else None, self._ppo)
        if self.correction.active:
            fresh = given.fresh
            counted = (given.weights * given.completion_mask != 0)[:fresh]
            weights = self.correction.weights(logprobs[:fresh], given.sampling_logprobs[:fresh], counted)
            given.importance[:fresh] = weights
        self._note_estimates(given, reference)
        return given

    def _now(self, inputs: dict) -> list[torch.Tensor]:
        """(samples, T) each: log-probabilities, values and, if it is part of the reward, the reference."""
        rows = inputs["rows"]
        scores = self._score(self.model, rows, inputs.get("support"))
        found = [rows.placed(scores.logprobs), rows.unpacked(scores.output["value"])]
        return found + ([self._reference_logprobs(inputs)] if self._reference_in_reward else [])

    def _reference_logprobs(self, inputs: dict) -> torch.Tensor:
        """The reference of a policy with an adapter is its base, also for a policy with a value."""
        with adapters_off(self._critic.policy):
            return super()._reference_logprobs(inputs)

    def _inputs(self, experience: Trajectories, prompts: Sequence[int]) -> dict:  # type: ignore[override]
        inputs = super()._inputs(experience, prompts)
        part = experience.select(prompts)
        return inputs | {name: getattr(part, name).to(self.accelerator.device) for name in ESTIMATES}

    def gradient(self) -> torch.Tensor:
        """While the value warms up, only its own weights take a gradient."""
        warming = self._critic.value_alone = self.state.global_step < self._ppo.value_warmup_steps
        loss = super().gradient()
        if warming:
            for weight in self._critic.policy.parameters():
                weight.grad = None
        return loss

    def _compute_loss(self, model: torch.nn.Module, inputs: dict) -> torch.Tensor:
        """Sum of weight * loss over the tokens of the pass (algorithms.loss)."""
        rows, ppo = inputs["rows"], self._ppo
        scores = self._score(model, rows, inputs.get("support"), entropy=ppo.entropy_coef != 0.0)
        logprobs, values = rows.placed(scores.logprobs), rows.unpacked(scores.output["value"])
        entropies = None if scores.entropies is None else rows.placed(scores.entropies)
        reference = inputs["ref_per_token_logps"] if self.beta else None
        policy = ppo_loss.policy_loss(logprobs, entropies, reference, inputs, ppo)
        value = ppo_loss.value_loss(values, inputs["old_values"], inputs["returns"], ppo.value_clip)
        self._token_means.add(
            inputs["tool_mask"] / inputs["num_items_in_batch"],
            {
                "policy/loss": policy,
                "value/loss": value,
                **ppo_loss.token_metrics(logprobs, values, reference, inputs, ppo),
            },
        )
        # A factor of zero, not a branch: every weight takes part in every pass, as parallel strategies require.
        loss = (0.0 if self._critic.value_alone else 1.0) * policy + ppo.value_coef * value
        # Gradients are averaged over processes; the step's loss is the sum of theirs.
        scale = ppo.minibatches * self.accelerator.num_processes / inputs["num_items_in_batch"]
        return (loss * inputs["tool_mask"]).sum() * scale

    def _note_estimates(self, given: Trajectories, reference: Sequence[torch.Tensor]) -> None:
        """Log once per batch: how good the value was, how far the reference is, how much was replayed."""
        learned = given.weights > 0
        metrics = self._metrics["train"]
        metrics["value/explained_variance"].append(explained_variance(given.old_values, given.returns, learned))
        if reference:
            kl = ppo_loss.kl_estimate(given.old_logprobs, reference[0])
            metrics["kl"].append(float((given.weights * kl).sum() / given.weights.sum().clamp(min=1e-12)))
        if self._replay is not None:
            old = learned.clone()
            old[: given.fresh] = False
            metrics["replay/groups"].append(float(len(given.group_ids.unique()) - len(given.recent)))
            metrics["replay/weight"].append(float(given.importance[old].mean()))


def _sync_policy(critic: ActorCritic, reference: torch.nn.Module, share: float) -> None:
    """Copy only the policy into the reference, which has no value."""
    SyncRefModelCallback.sync_target_model(critic.policy, reference, share)


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
    """Give the optimizer the value's own weights, at their own rate if `lr` is not 0. Matrices of a trunk decay as the
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
