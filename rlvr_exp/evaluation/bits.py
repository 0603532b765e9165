"""What gold answers cost under a policy, in bits: the negative log2-likelihood of a task's gold completion after its prompt,
with the token that ends it.

Over the characters of the gold it compares policies with other tokenizers: the bits are of the same text, whichever tokens
spell it (bits per character as in Al-Rfou et al. 2019, arXiv:1808.04444). The spelling is the tokenizer's own; others of the
same text, whose probability would count too, are left out, so that the figure is an upper bound.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import torch

from rlvr_exp.algorithms.logprobs import token_logprobs
from rlvr_exp.algorithms.packing import row_by_row
from rlvr_exp.models.parameters import gathered_weights
from rlvr_exp.models.policy import Policy
from rlvr_exp.records.rollout_files import EvalSample
from rlvr_exp.tasks.base import Domain, Task

HELD = 2**25
"""The most logits of a pass, rows x tokens x vocabulary; a single row is computed whatever it has."""


@dataclass(frozen=True)
class GoldCost:
    """Of one task."""

    bits: float
    """Of the gold completion and the end token."""
    characters: int
    """Of the gold completion."""
    tokens: int
    """Of the gold completion, with its end token."""
    prompt_tokens: int


@dataclass(frozen=True)
class _Gold:
    task: str
    characters: int
    prompt: list[int]
    answer: list[int]

    @property
    def length(self) -> int:
        return len(self.prompt) + len(self.answer)


def gold_costs(policy: Policy, domain: Domain, tasks: Sequence[Task]) -> dict[str, GoldCost]:
    """By task. Tasks without a gold, with an empty one, or longer than the policy takes, are absent.

    Every rank computes all of them: a sharded policy is gathered by all ranks together.
    """
    golds = sorted(_golds(policy, domain, tasks), key=lambda one: one.length)
    found: dict[str, GoldCost] = {}
    was_training = policy.model.training
    policy.model.eval()
    try:
        with gathered_weights(policy.model):
            for some in _batches(golds, policy.model.get_input_embeddings().num_embeddings):
                found |= _costs(policy, some)
    finally:
        policy.model.train(was_training)
    return found


def with_gold_costs(results: Sequence[EvalSample], costs: dict[str, GoldCost]) -> list[EvalSample]:
    """The samples; each of a task whose gold was measured has its cost under `gold`."""
    return [_marked(one, costs.get(one.completion.task.id)) for one in results]


def _marked(one: EvalSample, cost: GoldCost | None) -> EvalSample:
    return one if cost is None else replace(one, about={**(one.about or {}), "gold": asdict(cost)})


def _golds(policy: Policy, domain: Domain, tasks: Sequence[Task]) -> Iterator[_Gold]:
    for task in tasks:
        if gold := domain.gold_completion(task):
            prompt, answer = policy.encode_prompt(domain.task_prompt(task)), policy.encode_completion(gold)
            one = _Gold(task.id, len(gold), prompt, answer)
            if one.length <= policy.max_tokens:
                yield one


def _batches(golds: Sequence[_Gold], vocabulary: int) -> Iterator[list[_Gold]]:
    """Neighbours by length, as many as fit."""
    batch: list[_Gold] = []
    for one in golds:
        if batch and (len(batch) + 1) * one.length * vocabulary > HELD:
            yield batch
            batch = []
        batch.append(one)
    if batch:
        yield batch


@torch.no_grad()
def _costs(policy: Policy, golds: Sequence[_Gold]) -> dict[str, GoldCost]:
    width = max(len(one.answer) for one in golds)
    rows = row_by_row([one.prompt for one in golds], [one.answer for one in golds], width).to(policy.model.device)
    inputs = {"input_ids": rows.input_ids, "position_ids": rows.position_ids, "attention_mask": rows.attention_mask}
    logits = policy.model(**inputs, use_cache=False).logits.flatten(0, 1)[rows.scored]
    nats = -rows.placed(token_logprobs(logits, rows.labels, 1.0)[0]).double().sum(1)
    return {
        one.task: GoldCost(cost / math.log(2), one.characters, len(one.answer), len(one.prompt))
        for one, cost in zip(golds, nats.tolist(), strict=True)
    }
