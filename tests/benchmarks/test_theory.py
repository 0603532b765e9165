"""Known results hold of our own functions, and each check finds the function that breaks it."""

import math

import pytest
import torch

from rlvr_exp.algorithms import advantages
from rlvr_exp.algorithms import loss as ppo_loss
from rlvr_exp.benchmarks import theory
from rlvr_exp.benchmarks.theory import ANY, COMPLETIONS, Check, deviation_factor, measure, random_tree, rows_of
from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.core.statistics import mean_p_value
from rlvr_exp.records.context import RunContext

WORDS = ["+stage=benchmark", "benchmark=theory", "+experiment=quick"]


def run(tmp_path, *words):
    return measure(compose([*WORDS, *words]).config, RunContext(tmp_path, lambda event: None))


@pytest.mark.parametrize("seed", [0, 1])
def test_every_result_holds(tmp_path, seed):
    text, found = run(tmp_path, f"seed={seed}")
    assert len(found) == 19 and text.count("holds") == 19 and "outside" not in text
    assert found["mean of the group, itself in it: share of the gradient"]["exact"] == 0.75
    k1, k3 = found["KL by k1: variance"], found["KL by k3 (ours): variance"]
    assert k3["exact"] < 0.1 * k1["exact"], "of near distributions"


def own_mean(rewards, baseline, eps=1e-6):
    return rewards - rewards.mean(1, keepdim=True)


def unclipped(logprobs, old, given, low, high):
    return -((logprobs - old).exp() * given)


def other_way(logprobs, old, given, low, high):
    ratio = (logprobs - old).exp()
    return -torch.max(ratio * given, ratio.clamp(1 - low, 1 + high) * given)


def no_discount(rewards, values, mask, gamma, lam):
    return advantages.gae(rewards, values, mask, 1.0, lam)


def k2(logprobs, other):
    return 3 * (logprobs - other).square()


def population(rewards, scale, eps=1e-6):
    return advantages.group_advantages(rewards, scale, eps) * math.sqrt(4 / 3 if scale == "group" else 1)


@pytest.mark.parametrize(
    ("module", "name", "broken", "what"),
    [
        (theory, "reinforce_advantages", own_mean, "REINFORCE, baseline group"),
        (theory, "group_advantages", population, "divided by the deviation"),
        (theory, "surrogate_loss", unclipped, "gradient of what counts as clipped"),
        (theory, "surrogate_loss", other_way, "clipped objective above the unclipped"),
        (theory, "gae", no_discount, "GAE with lambda 0 less the TD error"),
        (theory, "kl_estimate", k2, r"KL by k3 \(ours\): mean"),
    ],
)
def test_a_function_that_breaks_a_result_ends_the_run(tmp_path, monkeypatch, module, name, broken, what):
    monkeypatch.setattr(module, name, broken)
    with pytest.raises(GuardStop, match=rf"known results do not hold: (.*; )?{what}"):
        run(tmp_path)


def test_the_exact_gradient_is_that_of_small_differences():
    tree = random_tree(0, ANY)
    assert float(tree.chances.sum()) == pytest.approx(1) and len(COMPLETIONS) == 7
    p = tree.logits.softmax(1)
    by_hand = torch.cat([p[0, :1], (p[0, 1] * p[1]), (p[0, 2] * p[2])])
    assert torch.allclose(tree.chances, by_hand, atol=1e-6)
    assert tree.value == pytest.approx(float(by_hand @ ANY.double()), abs=1e-6)
    step = torch.zeros(9, dtype=torch.double)
    step[4] = 1e-2
    ahead, behind = (type(tree)(tree.logits + sign * step.view(3, 3), ANY).value for sign in (1, -1))
    assert (ahead - behind) / 2e-2 == pytest.approx(float(tree.gradient()[4]), abs=1e-4)


def test_dividing_by_the_deviation_goes_to_the_known_limit_in_large_groups():
    for p in (0.1, 0.5):
        assert deviation_factor(p, 4000) == pytest.approx(1 / math.sqrt(p * (1 - p)), rel=1e-2)
    assert deviation_factor(0.05, 4) < deviation_factor(0.05, 4000), "most small groups have no spread then"


def test_the_level_is_that_of_all_components_together():
    draw = torch.Generator().manual_seed(0)
    noise = torch.randn(200, 50, generator=draw, dtype=torch.double)
    (row,) = rows_of([Check("true", [0.0] * 50, noise)], 0.05)
    assert row.verdict == "holds" and min(Check("", [0.0] * 50, noise).p_values()) < 0.05
    (row,) = rows_of([Check("hidden", [0.0] * 50, noise + torch.eye(50)[7])], 0.05)
    assert row.verdict == "outside", "a component that is not shown"


def test_what_is_no_number_does_not_hold():
    noise = torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
    noise[3, 1] = math.nan
    ill = [Check("a draw", [0.0, 0.0], noise), Check("exact", [math.nan], noise[:, :1])]
    assert [row.verdict for row in rows_of(ill, 0.05)] == ["outside", "outside"]


def test_equal_values_are_the_expected_one_or_not():
    assert (mean_p_value([2.0, 2.0], 2.0), mean_p_value([2.0, 2.0], 2.1)) == (1.0, 0.0)
    assert mean_p_value([1.0, 2.0, 3.0], 2.0) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="allowed 2 and more"):
        mean_p_value([1.0], 1.0)
    assert ppo_loss.kl_estimate(torch.zeros(1), torch.zeros(1)) == 0
