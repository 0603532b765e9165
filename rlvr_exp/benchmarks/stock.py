"""The other side of `benchmark=training`: `trl.GRPOTrainer` as it comes, with clocks around its phases.

Same model, tasks, verifier, reward, batch, seed, lengths and optimizer; its micro-batches hold as many tokens as ours may.
It is overridden only to read the time, and to take stored rollouts where gradients are compared.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from datasets import Dataset
from transformers import PrinterCallback
from trl import GRPOConfig, GRPOTrainer

from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.benchmarks.clock import Clock
from rlvr_exp.config.parallel import derive
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.episodes.types import Completion, TokenCount
from rlvr_exp.models.policy import Policy
from rlvr_exp.rewards.compose import Reward
from rlvr_exp.rollouts.run_episodes import verified
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.verifiers.base import Verifier

LOSSES = {"grpo": "grpo", "dr_grpo": "dr_grpo", "token": "dapo"}
"""Our aggregation of token losses -> TRL's `loss_type` that is the same."""
NEUTRAL: Mapping[str, Any] = {
    "entropy_coef": 0.0,
    "entropy_target": 0.0,
    "pass_k": 1,
    "unlikeliness": 0.0,
    "positive_weight": 1.0,
    "zero_variance": "keep",
    "rollout_steps": 1,
    "iterations": 1,
    "stop": [],
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
}
"""Options whose other values TRL's trainer has not, or not in the same way: it does not renormalise over kept tokens."""


def method(options: Any) -> Mapping[str, Any]:
    """The fields of GRPOConfig with which TRL's own loss equals that of the `algorithm` node.

    Raises:
        InputError: TRL has no such algorithm.
    """
    if not hasattr(options, "advantage_scale"):
        target = options._target_
        raise InputError(
            InputProblem("algorithm", "trl.GRPOTrainer has nothing to compare it with", target, "algorithm=grpo")
        )
    found = [
        InputProblem(
            f"algorithm.{name}", "trl.GRPOTrainer does not do the same", str(getattr(options, name)), str(value)
        )
        for name, value in NEUTRAL.items()
        if getattr(options, name) != value
    ]
    if options.loss not in LOSSES:
        found.append(
            InputProblem("algorithm.loss", "trl.GRPOTrainer does not do the same", options.loss, ", ".join(LOSSES))
        )
    if found:
        raise InputError(*found)
    return {"loss_type": LOSSES[options.loss], "scale_rewards": options.advantage_scale}


class Stock(GRPOTrainer):
    """TRL's trainer for one turn.

    Args:
        tasks: the tasks of its steps, in order.
        common: fields of GRPOConfig that both sides share.
        tokens: tokens of one forward and backward pass.
        stored: rollouts to learn from in place of its own.
    """

    def __init__(
        self,
        policy: Policy,
        domain: Domain,
        tasks: Sequence[Task],
        reward_function: "RewardFunction",
        common: Mapping[str, Any],
        tokens: int,
        optimizer: torch.optim.Optimizer,
        clock: Clock,
        stored: TrainingBatch | None = None,
    ):
        self._clock, self._stored = clock, stored
        texts = [domain.task_prompt(task) for task in tasks]
        longest = max(len(policy.encode_prompt(text)) for text in texts) + common["max_completion_length"]
        prompts = len(tasks) // common["max_steps"]
        plan = derive(prompts * common["num_generations"], longest, tokens)
        args = GRPOConfig(
            **common,
            per_device_train_batch_size=plan.micro_batch,
            gradient_accumulation_steps=plan.accumulation,
            steps_per_generation=plan.accumulation,
            shuffle_dataset=False,
            chat_template_kwargs={"enable_thinking": policy.thinking} if policy.chat else {},
        )
        worded = [[{"role": "user", "content": text}] for text in texts] if policy.chat else texts
        super().__init__(
            model=policy.model,
            reward_funcs=[reward_function],
            args=args,
            train_dataset=Dataset.from_dict({"prompt": worded, "place": list(range(len(tasks)))}),
            processing_class=policy.tokenizer,
            callbacks=[clock],
            optimizers=(optimizer, None),
        )
        self.remove_callback(PrinterCallback)

    def _generate(self, prompts: Any) -> Any:
        with self._clock.phase("generate"):
            generated = super()._generate(prompts)
        return generated

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> Any:
        self._clock.count(len(completion_ids_list), sum(map(len, completion_ids_list)))
        with self._clock.phase("verify"):
            return super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        if self._stored is not None:
            return self._given(self._stored)
        began = time.perf_counter()
        scored = super()._generate_and_score_completions(inputs)
        self._clock.collected(time.perf_counter() - began)
        return scored

    def _given(self, stored: TrainingBatch) -> dict[str, torch.Tensor]:
        """The stored rollouts in TRL's form."""
        names = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "advantages")
        given = {name: getattr(stored, name).to(self.accelerator.device) for name in names}
        ids = torch.cat([given["prompt_ids"], given["completion_ids"]], dim=1)
        mask = torch.cat([given["prompt_mask"], given["completion_mask"]], dim=1)
        if self.beta != 0.0:
            with torch.no_grad():
                kept = given["completion_ids"].shape[1]
                size = self.args.per_device_train_batch_size
                reference, *_ = self._get_per_token_logps_and_entropies(
                    self.ref_model, ids, mask, kept, batch_size=size
                )
            given["ref_per_token_logps"] = reference
        return {**given, "num_items_in_batch": given["completion_mask"].sum()}


class RewardFunction:
    """Our verifier and reward as a reward function of TRL's."""

    __name__ = "verified"

    def __init__(self, policy: Policy, domain: Domain, tasks: Sequence[Task], verifier: Verifier, reward: Reward):
        self._policy, self._domain, self._tasks = policy, domain, tasks
        self._verifier, self._reward = verifier, reward

    def __call__(self, completions: Any, completion_ids: Any, place: Any, **_: Any) -> list[float | None]:
        tasks = [self._tasks[index] for index in place]
        texts = [one if isinstance(one, str) else one[0]["content"] for one in completions]
        drawn = [
            Completion(task, i, TokenCount(len(ids), not self._ended(ids)), text, self._domain.parse(text, task))
            for i, (task, text, ids) in enumerate(zip(tasks, texts, completion_ids, strict=True))
        ]
        return [paid.total for paid in self._reward(verified(self._verifier, drawn))]

    def _ended(self, ids: Sequence[int]) -> bool:
        return any(token in self._policy.eos_ids for token in ids)
