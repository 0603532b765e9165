"""Bits a character of gold answers: what they are, that other tokenizers and batches change nothing, and where they go."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from completions import completion

from rlvr_exp.config.architecture import Scratch
from rlvr_exp.config.model import Model
from rlvr_exp.core.measures import BITS
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.evaluation import bits
from rlvr_exp.evaluation.arms import arms
from rlvr_exp.evaluation.bits import gold_costs, with_gold_costs
from rlvr_exp.evaluation.metrics import rates_from, task_values
from rlvr_exp.evaluation.paired import difference_over_seeds, paired
from rlvr_exp.evaluation.saved import save
from rlvr_exp.models.policy import load_policy
from rlvr_exp.models.random_weights import build_tokenizer
from rlvr_exp.records.rollout_files import EvalSample, read_evaluation

SMALL = {"layers": 1, "hidden": 32, "heads": 2, "head_dim": 16}
DOMAIN = Arc(limit=12)
TASKS = DOMAIN.splits()["dev"][:6]


@pytest.fixture(scope="module", params=["", "bytes"])
def policy(request: pytest.FixtureRequest):
    options = Scratch(**SMALL, tokenizer=request.param)
    made = build_tokenizer(options, []) if request.param else None
    return load_policy(Model(from_scratch=True, scratch=options), seed=0, own_tokenizer=made)


def test_they_are_the_negative_log_likelihood_of_the_gold_and_its_end_over_its_characters(policy) -> None:
    found = gold_costs(policy, DOMAIN, TASKS)
    assert list(found) == sorted(found, key=lambda task: found[task].prompt_tokens + found[task].tokens)
    for task in TASKS:
        prompt, answer = policy.encode_prompt(DOMAIN.task_prompt(task)), policy.encode_completion(task.gold)
        with torch.no_grad():
            scores = policy.model(input_ids=torch.tensor([prompt + answer])).logits[0].log_softmax(-1)
        nats = -sum(scores[len(prompt) - 1 + place, token].item() for place, token in enumerate(answer))
        cost = found[task.id]
        assert cost.bits == pytest.approx(nats / math.log(2), rel=1e-4)
        assert (cost.characters, cost.tokens, cost.prompt_tokens) == (len(task.gold), len(answer), len(prompt))


def test_batches_change_nothing_and_what_the_policy_cannot_take_is_absent(policy, monkeypatch) -> None:
    together = gold_costs(policy, DOMAIN, TASKS)
    monkeypatch.setattr(bits, "HELD", 1)
    apart = gold_costs(policy, DOMAIN, TASKS)
    assert apart.keys() == together.keys()
    assert [one.bits for one in apart.values()] == pytest.approx([one.bits for one in together.values()], rel=1e-5)
    longest = max(one.prompt_tokens + one.tokens for one in together.values())
    less = gold_costs(replace(policy, max_tokens=longest - 1), DOMAIN, TASKS)
    assert len(less) < len(together) and less.keys() < together.keys()
    assert gold_costs(policy, DOMAIN, [replace(task, gold=None) for task in TASKS]) == {}


def test_a_policy_that_puts_all_chance_on_the_gold_pays_nothing(policy) -> None:
    uniform = gold_costs(policy, DOMAIN, TASKS[:1])[TASKS[0].id]
    rows = policy.model.get_input_embeddings().num_embeddings
    assert uniform.bits == pytest.approx(uniform.tokens * math.log2(rows), rel=0.05), (
        "random weights are nearly uniform"
    )


def samples(costs: dict[str, tuple[float, int]]) -> list[EvalSample]:
    """An evaluation with the bits and characters of each task."""
    return [
        EvalSample(completion(task), "sampled", "p", {"gold": {"bits": cost, "characters": characters}})
        for task, (cost, characters) in costs.items()
    ]


def test_it_is_a_metric_of_an_evaluation_that_less_is_better_of_and_1_does_not_bound(tmp_path: Path) -> None:
    before, after = samples({"a": (60.0, 10), "b": (50.0, 20)}), samples({"a": (30.0, 10), "b": (40.0, 20)})
    assert task_values(after, BITS) == {"a": 3.0, "b": 2.0}
    rate = rates_from(after, (BITS,))[BITS]
    assert (rate.value, rate.n) == (2.5, 2) and rate.high > 1
    change = paired(before, after, BITS)
    assert (change.value, change.won, change.lost) == (-1.75, 2, 0) and change.low < -1.75
    for when, of in (("before", before), ("after", after)):
        assert save(tmp_path, when, of, (BITS,))[BITS].n == 2
    assert task_values(read_evaluation(tmp_path, "after"), BITS) == {"a": 3.0, "b": 2.0}
    (arm,) = arms(["arm"], [0], [tmp_path])
    assert arm.rates[f"after/{BITS}"]["value"] == 2.5 and arm.change[BITS]["value"] == -1.75


def test_samples_of_tasks_without_a_cost_stay_as_they_are() -> None:
    one, other = (EvalSample(completion(task), "greedy", "p") for task in "ab")
    marked = with_gold_costs([one, other], {"a": bits.GoldCost(8.0, 4, 3, 9)})
    assert marked[1] is other and marked[0].about == {
        "gold": {"bits": 8.0, "characters": 4, "tokens": 3, "prompt_tokens": 9}
    }


def test_differences_beyond_1_are_kept_and_equal_ones_find_nothing() -> None:
    from rlvr_exp.core.measures import scale_of

    first, second = [[2.0, 4.0, 6.0], [2.5, 4.0, 6.5]], [[4.5, 7.0, 8.0], [5.0, 6.5, 9.5]]
    found = difference_over_seeds(first, second, scale_of(BITS))
    assert found.value == pytest.approx(2.5833, abs=1e-3) and found.high > 2.6 and (found.won, found.lost) == (0, 3)
    same = difference_over_seeds(first, first, scale_of(BITS))
    assert (same.value, same.low, same.high, same.p) == (0.0, 0.0, 0.0, 1.0)
    apart = difference_over_seeds([[1.0]], [[9.0]], scale_of(BITS))
    assert apart.p == 1.0, "one task tells of no other"
