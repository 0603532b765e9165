"""Supervised fine-tuning on reference answers, on TRL's SFTTrainer.

An example is a prompt with its answer as token ids. The loss is only on the answer.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from random import Random
from typing import Any

import torch
from datasets import Dataset
from trl import SFTConfig, SFTTrainer
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling
from trl.trainer.utils import FusedCausalLMOutput

from rlvr_exp.algorithms.gradients import NonFiniteGuard
from rlvr_exp.algorithms.logprobs import score
from rlvr_exp.algorithms.packed_layers import Choice
from rlvr_exp.algorithms.packing import packed_examples
from rlvr_exp.algorithms.stepped import PackedTrainer, filled_on_cpu
from rlvr_exp.config import algorithm as options
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.models.adapters import kept_precise
from rlvr_exp.models.policy import Policy
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.tasks.tools import Tool

IGNORED = -100
"""The label of a token without a loss."""
Example = dict[str, list[int]]
"""`input_ids` and `labels`, equally long."""


def example(
    policy: Policy, prompt: str, answer: str, tools: Sequence[Tool] = (), calls: Sequence[tuple[str, str]] = ()
) -> Example:
    """A prompt and the answer to learn after it, with the calls of tools before the answer. Results of calls are given."""
    ids = policy.encode_prompt(prompt, tools)
    labels = [IGNORED] * len(ids)
    for call, result in calls:
        drawn = policy.encode_completion(call)
        kept, given = list(policy.after_call(drawn)), policy.encode_result(result, drawn)
        # In plain text the end of a call is drawn, and no part of what follows: it is not learned here.
        ids, labels = ids + kept + given, labels + kept + [IGNORED] * len(given)
    learned = policy.encode_completion(answer)
    return {"input_ids": ids + learned, "labels": labels + learned}


def length(one: Example) -> int:
    """In tokens."""
    return len(one["input_ids"])


class Examples:
    """An example of every demonstration of a task that has a gold and fits.

    Args:
        longest: tokens of the longest example; longer ones are left out.
        shown: share of variants whose prompt shows the answer.
    """

    def __init__(self, policy: Policy, domain: Domain, tasks: Sequence[Task], longest: int, shown: float = 0.0):
        self._policy, self._domain, self._longest, self._shown = policy, domain, longest, shown
        self._kept: list[tuple[Task, str, Example]] = []
        self._left_out = {"no gold answer": 0, "too long": 0}
        for task in (shown for one in tasks for shown in domain.demonstrations(one)):
            gold = domain.gold_completion(task)
            if gold is None:
                self._left_out["no gold answer"] += 1
                continue
            one = example(policy, domain.task_prompt(task), gold, domain.tools, domain.gold_turns(task))
            if length(one) > longest:
                self._left_out["too long"] += 1
                continue
            self._kept.append((task, gold, one))

    @property
    def left_out(self) -> dict[str, int]:
        """Tasks that are not imitated, by reason."""
        return {reason: count for reason, count in self._left_out.items() if count}

    @property
    def characters(self) -> int:
        """Of all reference answers together, without their end tokens."""
        return sum(len(gold) for _, gold, _ in self._kept)

    @property
    def dataset(self) -> Dataset:
        return Dataset.from_list([one for _, _, one in self._kept])

    def variant(self, index: int, rng: Random) -> Example:
        """An example in another form of its task (`Domain.variant`), or with the prompt of a teacher that has seen the answer;
        as it is if the other form is too long."""
        task, gold, one = self._kept[index]
        changed = self._domain.variant(task, rng)
        shown = rng.random() < self._shown
        if changed is task and not shown:
            return one
        prompt = self._domain.teacher_prompt(changed, gold, "", "") if shown else self._domain.task_prompt(changed)
        domain = self._domain
        other = example(self._policy, prompt, gold, domain.tools, () if shown else domain.gold_turns(changed))
        return other if length(other) <= self._longest else one

    def by(self, key: Callable[[Task], str]) -> dict[str, list[int]]:
        """The indices of examples by a property of their tasks."""
        found: dict[str, list[int]] = {}
        for place, (task, _, _) in enumerate(self._kept):
            found.setdefault(key(task), []).append(place)
        return found

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, index: int) -> Example:
        return self._kept[index][2]


class SFT(options.SFT):
    def examples(self, policy: Policy, domain: Domain, tasks: Sequence[Task], required: bool = True) -> Examples:
        """Raises InputError if no task can be imitated and some are required."""
        found = Examples(policy, domain, tasks, self.max_sequence_tokens, self.shown_answers)
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


class ImitationTrainer(PackedTrainer, SFTTrainer):
    """Imitates tokenised examples.

    Args:
        train: examples whose columns those to imitate have.
        args: an update's examples on this process are cut into passes of `per_device_train_batch_size`.
        longest: tokens of the longest example.
    """

    def __init__(
        self,
        policy: Policy,
        args: SFTConfig,
        optimizer: torch.optim.Optimizer,
        train: Dataset,
        held_out: Dataset | None,
        guard: NonFiniteGuard,
        longest: int,
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
                longest=longest,
            )
        self._examples: Sequence[Example] = ()

    def take(self, examples: Sequence[Example]) -> Sequence[Example]:
        if self._choice is None:
            self._begin(self.model_wrapped)
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

    def compute_loss(self, model: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        """TRL's loss, of packed examples if the model supports them."""
        if self._choice is None:  # A resumed run may measure before its first update.
            self._begin(model)
        fast = nullcontext() if torch.is_grad_enabled() else self.computing(model)
        with fast:
            return super().compute_loss(
                PackedHead(model, self._way, self._fused) if self._way else model, *args, **kwargs
            )

    def held_out_loss(self) -> tuple[float, int]:
        """The negative log-likelihood of all held-out tokens that are learned, in nats, and how many they are, however they
        are cut into batches."""
        held_out: Any = self.eval_dataset
        tokens = sum(learned(torch.tensor([row["labels"]])) for row in held_out)
        return float(self.evaluate()["eval_loss"]) * len(held_out), tokens

    def prediction_step(self, model: torch.nn.Module, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """With the sum over a batch's tokens, an equal part for each of its examples: Transformers averages over these."""
        loss, *others = super().prediction_step(model, inputs, *args, **kwargs)
        return (loss * learned(inputs["labels"]) / len(inputs["labels"]), *others)

    def _chosen(self, model: torch.nn.Module) -> Choice:
        if self.label_smoother is not None:
            return Choice(None, ("label smoothing needs the logits of every token",))
        return super()._chosen(model)

    def trainer_state(self) -> Mapping[str, Any]:
        return {**super().trainer_state(), "tokens": self._total_train_tokens}

    def load_trainer_state(self, state: Mapping[str, Any]) -> None:
        super().load_trainer_state(state)
        self._total_train_tokens = state["tokens"]


def learned(labels: torch.Tensor) -> int:
    """The tokens of (B, T) labels that have a loss: none is predicted at a row's beginning."""
    return int((labels[:, 1:] != IGNORED).sum())


class PackedHead:
    """A model with TRL's fused head, which it calls with padded examples: computed in one row, and only the head of tokens
    that are learned.

    Args:
        implementation: how a packed row is attended to.
        fused: as for `logprobs.score`.
    """

    def __init__(self, model: torch.nn.Module, implementation: str, fused: bool):
        self._model, self._implementation, self._fused = model, implementation, fused

    def __call__(
        self,
        *,
        input_ids: torch.Tensor,
        labels: torch.Tensor,
        attention_mask: torch.Tensor,
        use_cache: bool,
        fused_lm_head: bool,
        **options: Any,
    ) -> FusedCausalLMOutput:
        """The (m,) scores of the learned tokens."""
        device = input_ids.device
        given = zip(input_ids.tolist(), labels.tolist(), attention_mask.sum(1).tolist(), strict=True)
        examples = [(tokens[:count], learned) for tokens, learned, count in given]
        rows = filled_on_cpu(packed_examples(examples).to(device))
        scores = score(self._model, rows, 1.0, None, True, self._implementation, top=True, fused=self._fused, **options)
        return FusedCausalLMOutput(
            log_probs=scores.logprobs,
            entropy=scores.entropies,
            is_top1=scores.top,
            label_mask=torch.ones_like(rows.labels, dtype=torch.bool),
            aux_loss=getattr(scores.output, "aux_loss", None),
        )
