"""The trainer of every RL stage: TRL's GRPOTrainer, fed by one call that returns a step's experience.

Seams used of the pinned TRL (private methods; tests/algorithms hold them):
- `_prepare_inputs` returns the next micro-batch of whole groups, asking `collect` for experience once a step;
- `_get_per_token_logps_and_entropies` computes each group's prompt once (rlvr_exp.algorithms.packing);
- advantages of shape (N, T) and a float `tool_mask` as the per-token weights of the loss.
Sampling, judging and advantages are not this class's business.
"""

from collections.abc import Callable, Sequence

import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from rlvr_exp.algorithms.experience import Experience
from rlvr_exp.algorithms.packing import pack_groups, unpack
from rlvr_exp.models.policy import Policy

Collect = Callable[[int], Experience]


class PolicyTrainer(GRPOTrainer):
    """Updates `policy` on what `collect(step)` returns, step counted from 0."""

    def __init__(
        self,
        policy: Policy,
        args: GRPOConfig,
        optimizer: torch.optim.Optimizer,
        entropy_coef: float,
        collect: Collect,
        callbacks: Sequence[TrainerCallback],
    ):
        prompts = args.generation_batch_size // args.num_generations
        super().__init__(
            model=policy.model,
            reward_funcs=[_judged_elsewhere],
            args=args,
            # The curriculum chooses tasks; this only gives TRL's sampler something to count.
            train_dataset=Dataset.from_dict({"prompt": [""] * prompts}),
            processing_class=policy.tokenizer,
            callbacks=list(callbacks),
            optimizers=(optimizer, None),
        )
        self.remove_callback(PrinterCallback)
        if self.ref_model is not None:
            # The reference is the policy as it starts, wherever its weights came from; TRL loads it anew by name.
            self.ref_model.load_state_dict(self.model.state_dict())
        self._entropy_coef = entropy_coef
        self._collect = collect
        self._micro_batches: list[dict] = []

    def _prepare_inputs(self, generation_batch):
        every = self.args.steps_per_generation * self.num_iterations
        if self._step % every == 0:
            experience = self._collect(self.state.global_step)
            self._micro_batches = [self._inputs(experience, part) for part in self._parts(experience)]
        return self._micro_batches[self._step % self.args.steps_per_generation]

    def _parts(self, experience: Experience) -> list[list[int]]:
        """Groups of each micro-batch. Groups whose gradient is exactly zero are left out."""
        count = self.args.steps_per_generation
        groups = list(range(experience.groups))
        live = experience.live().tolist()
        if self.beta == 0.0 and self._entropy_coef == 0.0:
            groups = [group for group in groups if live[group]]
        lengths = experience.completion_mask.view(experience.groups, -1).sum(1)
        groups.sort(key=lambda group: int(lengths[group]))
        bounds = [round(i * len(groups) / count) for i in range(count + 1)]
        # A micro-batch cannot be empty; where one would be, a group was left out, and it adds exactly nothing.
        return [groups[a:b] or [live.index(False)] for a, b in zip(bounds, bounds[1:], strict=False)]

    def _inputs(self, experience: Experience, groups: list[int]) -> dict:
        tokens = experience.completion_mask.sum().clamp(min=1).float()
        part = experience.select(groups)
        device = self.accelerator.device
        inputs = {
            "prompt_ids": part.prompt_ids,
            "prompt_mask": part.prompt_mask,
            "completion_ids": part.completion_ids,
            "completion_mask": part.completion_mask,
            "advantages": part.advantages,
            # TRL divides by the number of items: scaled so that weights of a token average to one over the step.
            "tool_mask": part.weights * tokens,
            "num_items_in_batch": tokens,
        }
        if self.num_iterations > 1:
            inputs["old_per_token_logps"] = part.sampling_logprobs
        inputs = {name: value.to(device) for name, value in inputs.items()}
        if self.beta != 0.0:
            inputs["ref_per_token_logps"] = self._reference_logprobs(inputs)
        return inputs

    def _compute_loss(self, model, inputs):
        """TRL's loss, and the entropy bonus under the same weights as everything else.

        TRL's own bonus is a mean over each micro-batch, so that it would change with their number.
        """
        loss = super()._compute_loss(model, inputs)
        if self._entropy_coef:
            bonus = (inputs["tool_mask"] * self._entropies).sum() / inputs["num_items_in_batch"]
            loss = loss - self._entropy_coef * bonus
        return loss

    def _reference_logprobs(self, inputs: dict) -> torch.Tensor:
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1)
        mask = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1)
        with torch.no_grad():
            logprobs, _, _ = self._get_per_token_logps_and_entropies(
                self.ref_model, ids, mask, inputs["completion_ids"].shape[1]
            )
        return logprobs

    def _get_per_token_logps_and_entropies(
        self, model, input_ids, attention_mask, logits_to_keep, batch_size=None, compute_entropy=False, **_
    ):
        group = self.num_generations
        packed = pack_groups(input_ids, attention_mask, logits_to_keep, group, self.model.dtype)
        with self.accelerator.autocast():
            output = model(
                input_ids=packed.input_ids,
                attention_mask=packed.attention_mask,
                position_ids=packed.position_ids,
                shift_labels=packed.labels,
                fused_lm_head=True,
            )
        self._entropies = unpack(output.entropy, packed, group) if compute_entropy else None
        return unpack(output.log_probs, packed, group), self._entropies, None


def _judged_elsewhere(**_: object) -> list[float]:
    """TRL requires a reward function; `_prepare_inputs` never calls it."""
    raise RuntimeError("rewards come with the experience")
