"""The trainer of PPO: PolicyTrainer on a policy and its value as one module, with PPO's own loss.

Before a batch is split into mini-batches, every token's log-probability and value are computed once (`_prepared`); the
estimates and the losses themselves are pure functions (algorithms.trajectories, algorithms.loss).

The replay buffer keeps recent groups. Their advantages are not kept: they are re-estimated with the current value, and a
token's weight corrects for the policy that sampled it (algorithms.loss).
"""

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from trl.trainer.callbacks import SyncRefModelCallback

from rlvr_exp.algorithms import loss as ppo_loss
from rlvr_exp.algorithms.advantages import explained_variance
from rlvr_exp.algorithms.loss import EntropyControl
from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.algorithms.trajectories import Trajectories, collected, estimated
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.seeds import stream
from rlvr_exp.models.adapters import adapters_off
from rlvr_exp.models.value_head import ActorCritic
from rlvr_exp.rollouts.groups import Group, group_from, group_state


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

    def __init__(self, algorithm, critic: ActorCritic, replay: ReplayBuffer | None, **common: Any):
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

    def _prepared(self, experience: Trajectories) -> Trajectories:
        """The batch with replayed groups, and with all estimates."""
        if self._replay is not None:
            drawn = self._replay.exchange(self.state.global_step, experience.recent)
            experience = collected([*experience.recent, *drawn], len(experience.recent), self._pad_id, self._ppo)
        self.model.eval()  # As the sampler ran: without dropout.
        logprobs, values, *reference = self._of_all(experience, self._now)
        self.model.train()
        given = estimated(experience, logprobs, values, reference[0] if reference else None, self._ppo)
        self._note_estimates(given, reference)
        return given

    def _now(self, inputs: dict) -> list[torch.Tensor]:
        """(samples, T) each: log-probabilities, values and, where it is part of the reward, the reference."""
        rows = inputs["rows"]
        scores = self._score(self.model, rows, inputs.get("support"))
        found = [rows.placed(scores.logprobs), rows.unpacked(scores.output["value"])]
        return found + ([self._reference_logprobs(inputs)] if self._reference_in_reward else [])

    def _reference_logprobs(self, inputs: dict) -> torch.Tensor:
        """The reference of a policy with an adapter is its base, also for a policy with a value."""
        with adapters_off(self._critic.policy):
            return super()._reference_logprobs(inputs)

    def _inputs(self, experience: Trajectories, prompts: Sequence[int]) -> dict:
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

    def _compute_loss(self, model, inputs):
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
