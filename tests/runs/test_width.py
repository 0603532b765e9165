"""Held-out loss falls with width at equal tokens (property 37), by real training on the embedded corpus."""

import pytest
import torch

from rlvr_exp.algorithms.sft import IGNORED, example
from rlvr_exp.config.architecture import Scratch
from rlvr_exp.config.model import Model
from rlvr_exp.core.statistics import rank_correlation
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.evaluation.bits import gold_costs
from rlvr_exp.models.policy import load_policy

STEPS, BATCH, LONGEST = 24, 8, 128


def held_out_bits(width: int, seed: int, domain: Arc) -> float:
    """Bits a character of golds of `dev` after some steps of imitation, on the same examples for every width."""
    heads = width // 16
    shape = Scratch(layers=2, hidden=width, heads=heads, kv_heads=heads, head_dim=16, intermediate=3 * width)
    policy = load_policy(Model(from_scratch=True, scratch=shape), seed)
    tasks = domain.splits()["train"]
    examples = [example(policy, domain.task_prompt(task), task.gold) for task in tasks]
    fitting = [one for one in examples if len(one["input_ids"]) <= LONGEST]
    order = torch.randperm(len(fitting), generator=torch.Generator().manual_seed(seed)).tolist()
    optimizer = torch.optim.AdamW(policy.model.parameters(), lr=1e-3)
    policy.model.train()
    for step in range(STEPS):
        rows = [fitting[place] for place in order[step * BATCH : (step + 1) * BATCH]]
        ids, labels = torch.zeros((BATCH, LONGEST), dtype=torch.long), torch.full((BATCH, LONGEST), IGNORED)
        for row, one in enumerate(rows):
            ids[row, : len(one["input_ids"])] = torch.tensor(one["input_ids"])
            labels[row, : len(one["labels"])] = torch.tensor(one["labels"])
        policy.model(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    costs = gold_costs(policy, domain, domain.splits()["dev"][:40])
    return sum(one.bits / one.characters for one in costs.values()) / len(costs)


@pytest.mark.slow
@pytest.mark.property(37)
def test_held_out_loss_falls_with_width_at_equal_tokens_in_three_seeds() -> None:
    domain = Arc(limit=400)
    points = [(width, held_out_bits(width, seed, domain)) for width in (16, 32, 64) for seed in range(3)]
    correlation, chance = rank_correlation([width for width, _ in points], [bits for _, bits in points])
    assert correlation < 0 and chance < 0.05, points
