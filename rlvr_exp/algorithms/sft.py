"""Supervised fine-tuning on gold completions, on TRL's SFTTrainer. The loss is only on the completion."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from datasets import Dataset
from trl import SFTConfig, SFTTrainer
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

from rlvr_exp.algorithms.examples import Example, Examples, length
from rlvr_exp.algorithms.nonfinite_guard import NonFiniteGuard
from rlvr_exp.algorithms.stepped import Stepped
from rlvr_exp.config import algorithm as options
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.models.adapters import kept_precise
from rlvr_exp.models.policy import Policy
from rlvr_exp.tasks.base import Domain, Task


class SFT(options.SFT):
    def examples(self, policy: Policy, domain: Domain, tasks: Sequence[Task], required: bool = True) -> Examples:
        """Raises InputError where no task can be imitated and some are required."""
        found = Examples(policy, domain, tasks, self.max_sequence_tokens)
        if required and not len(found):
            remedy = "data with gold answers, or a higher limit"
            raise InputError(InputProblem("data", "no task can be imitated", str(found.left_out), remedy=remedy))
        return found

    def trl_arguments(self) -> Mapping[str, Any]:
        return {
            "max_steps": self.max_steps,
            "max_length": None,
            **self.trl,
        }


class ImitationTrainer(Stepped, SFTTrainer):
    """Imitates tokenised examples.

    Args:
        train: examples whose columns those to imitate have.
        args: an update's examples on this process are cut into passes of `per_device_train_batch_size`.
    """

    def __init__(
        self,
        policy: Policy,
        args: SFTConfig,
        optimizer: torch.optim.Optimizer,
        train: Dataset,
        held_out: Dataset | None,
        guard: NonFiniteGuard,
    ):
        with kept_precise(policy.model):
            super().__init__(
                model=policy.model,
                args=args,
                train_dataset=train,
                eval_dataset=held_out,
                processing_class=policy.tokenizer,
                data_collator=DataCollatorForLanguageModeling(pad_token_id=policy.pad_id),
                optimizer=optimizer,
                guard=guard,
            )
        self._examples: Sequence[Example] = ()

    def take(self, examples: Sequence[Example]) -> Sequence[Example]:
        self._examples = examples
        return examples

    def passes(self) -> tuple[list[Mapping[str, Any]], Any]:
        size = self.args.per_device_train_batch_size
        ordered = sorted(self._examples, key=length)  # Examples of similar length are computed together.
        parts = [ordered[start : start + size] for start in range(0, len(ordered), size)]
        batches = (self.data_collator(list(part)) for part in parts)
        inputs, items = self.get_batch_samples(batches, len(parts), self.args.device)
        self.current_gradient_accumulation_steps = len(parts)
        return inputs, items

    def trainer_state(self) -> Mapping[str, Any]:
        return {"tokens": self._total_train_tokens}

    def load_trainer_state(self, state: Mapping[str, Any]) -> None:
        self._total_train_tokens = state["tokens"]
