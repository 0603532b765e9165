"""The cost of reference answers under a policy in bits: the negative log2-likelihood of a reference completion and its
end token, given the prompt.

Divided by the characters of the answer, the cost compares policies with different tokenizers, because it refers to the
same text (bits per character as in Al-Rfou et al. 2019, arXiv:1808.04444). It uses the tokenizer's own spelling of the
text. The probability of other spellings is left out, so the figure is an upper bound.
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
"""Maximum number of logits of a pass: rows x tokens x vocabulary. A single row may exceed it."""


@dataclass(frozen=True)
class GoldCost:
    """The cost of the reference answer of one task."""

    bits: float
    """Bits of the completion and the end token."""
    characters: int
    """Number of characters of the completion."""
    tokens: int
    """Number of tokens of the completion, with the end token."""
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
    """Return the costs by task. Tasks are absent if they have no reference answer, an empty one, or one that is longer
    than the limit of the policy.

    Every rank computes all costs, because all ranks gather a sharded policy together.
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
    """Return the samples. If the reference answer of a task was measured, its samples have the cost under `gold`."""
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
    """Group rows of similar length, as many as fit into a pass."""
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
