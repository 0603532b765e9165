"""Rewards that pay for variety, against the papers' definitions evaluated over every subset in float64."""

import math
from itertools import combinations
from statistics import fmean, stdev
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.algorithms.advantages import normalized_terms, rewards_at_k, unlikeliness
from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.episodes.episode import POLICY
from rlvr_exp.episodes.types import Completion, RewardBreakdown, TokenSample
from rlvr_exp.stages.shared.training import algorithm_of
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Verdict

reward = st.floats(-2, 2, width=32) | st.sampled_from([0.0, 1.0])
groups = st.lists(reward, min_size=2, max_size=7)


def maxima(values, members, k):
    """The largest reward of every subset of k of the members."""
    return [max(values[place] for place in subset) for subset in combinations(members, k)]


@given(groups, st.data())
def test_a_reward_is_the_mean_largest_of_the_subsets_with_it(values, data):
    k = data.draw(st.integers(1, len(values)))
    for place, got in enumerate(rewards_at_k(values, k)):
        others = [other for other in range(len(values)) if other != place]
        wanted = [
            max(values[place], *(values[o] for o in rest)) if rest else values[place]
            for rest in combinations(others, k - 1)
        ]
        assert got == pytest.approx(fmean(wanted), abs=1e-12)


@given(groups.filter(lambda values: len(values) > 2), st.data())
def test_centred_it_is_pkpos_leave_one_out_estimator(values, data):
    """ "sloo": subsets with the member less subsets without it; (1 - k/n) of that is the reward less the group's mean."""
    n = len(values)
    k = data.draw(st.integers(1, n - 1))
    changed = rewards_at_k(values, k)
    for place in range(n):
        others = [other for other in range(n) if other != place]
        with_it = fmean(max([values[place], *(values[o] for o in rest)]) for rest in combinations(others, k - 1))
        without = fmean(maxima(values, others, k))
        assert changed[place] - fmean(changed) == pytest.approx((1 - k / n) * (with_it - without), abs=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_its_expectation_is_the_gradient_of_the_expected_maximum(k):
    """A policy over three answers by softmax of logits, groups of four enumerated: E[sum_i A_i grad log p(x_i)] is the
    gradient of E[max of k draws], times the constants that centring and the mean over the group bring."""
    logits, paid, n = [0.3, -0.5, 0.1], [0.0, 0.4, 1.0], 4

    def policy(shifted):
        total = sum(map(math.exp, shifted))
        return [math.exp(one) / total for one in shifted]

    def expected(shifted):
        p = policy(shifted)
        draws = list(_product(range(3), k))
        return sum(math.prod(p[x] for x in draw) * max(paid[x] for x in draw) for draw in draws)

    p = policy(logits)
    for weight in range(3):
        found = 0.0
        for group in _product(range(3), n):
            changed = rewards_at_k([paid[x] for x in group], k)
            advantages = [one - fmean(changed) for one in changed]
            score = sum(a * ((x == weight) - p[weight]) for a, x in zip(advantages, group, strict=True))
            found += math.prod(p[x] for x in group) * score
        step = [1e-6 * (place == weight) for place in range(3)]
        up, down = ([one + sign * h for one, h in zip(logits, step, strict=True)] for sign in (1, -1))
        slope = (expected(up) - expected(down)) / 2e-6
        assert found == pytest.approx((1 - k / n) * n / k * slope, abs=1e-8)


def _product(values, times):
    return [()] if times == 0 else [(*rest, one) for rest in _product(values, times - 1) for one in values]


@given(groups, st.data())
def test_a_completion_without_a_verdict_belongs_to_no_subset(values, data):
    k, place = data.draw(st.integers(1, 4)), data.draw(st.integers(0, len(values)))
    got = rewards_at_k([*values[:place], None, *values[place:]], k)
    assert got[place] is None
    assert [one for one in got if one is not None] == list(rewards_at_k(values, k))


@given(groups, st.integers(1, 6), st.floats(0.1, 1))
def test_the_weight_mixes_it_with_the_plain_reward(values, k, weight):
    for got, plain, changed in zip(rewards_at_k(values, k, weight), values, rewards_at_k(values, k), strict=True):
        assert got == pytest.approx((1 - weight) * plain + weight * changed, abs=1e-12)


@given(groups)
def test_the_best_of_the_entire_group_has_no_advantages(values):
    for k in (len(values), len(values) + 3):
        assert set(rewards_at_k(values, k)) == {max(values)}


def completions(*rows):
    """(probabilities of the tokens, correct) each; completions of equal probabilities are the same text."""
    task, texts = SimpleNamespace(id="t"), [row[0] for row in rows]
    return [
        Completion(
            task,
            place,
            TokenSample(tuple([3 + texts.index(p)] * len(p)), tuple(map(math.log, p)), False),
            "",
            Candidate(""),
            Verdict("passed") if correct else Verdict("failed", bucket="wrong_answer"),
        )
        for place, (p, correct) in enumerate(rows)
    ]


def test_of_correct_completions_the_less_probable_earns_more():
    """He et al. 2025: r (1 - beta (G - rank) / G), rank 0 for the most probable of the group."""
    group = completions(((0.5, 0.5), True), ((0.9,), False), ((0.1,), True), ((0.3,), True))
    got = unlikeliness([1.0, 0.2, 1.0, 2.0], group, 0.5)
    # In order of probability: 0.9 (rank 0), 0.3, 0.25, 0.1 (rank 3).
    assert got == pytest.approx((1 - 0.5 * 2 / 4, 0.2, 1 - 0.5 * 1 / 4, 2 * (1 - 0.5 * 3 / 4)))


def test_equal_completions_share_a_rank_whatever_rounding_did():
    group = completions(((0.5,), True), ((0.5,), True), ((0.2,), True))
    off = SimpleNamespace(**{**vars(group[1].sampled), "logprobs": (math.log(0.5) - 1e-7,)})
    object.__setattr__(group[1], "sampled", off)
    got = unlikeliness([1.0, 1.0, 1.0], group, 0.3)
    assert got == pytest.approx((0.7, 0.7, 1 - 0.3 / 3))


def test_a_completion_without_a_verdict_has_no_rank():
    group = completions(((0.9,), True), ((0.5,), True), ((0.2,), True))
    assert unlikeliness([None, 1.0, 1.0], group, 0.4) == pytest.approx((None, 0.6, 0.8))


terms = st.fixed_dictionaries({"passed": st.sampled_from([0.0, 1.0]), "short": st.floats(-1, 1, width=32)})


@given(st.lists(terms, min_size=2, max_size=6), st.floats(-2, 2, width=32))
def test_terms_are_normalized_before_the_weighted_sum(group, weight):
    """GDPO; the breakdown holds terms times their weight, and one member has no verdict."""
    weights = {"passed": 1.0, "short": weight}
    paid = [{name: weights[name] * value for name, value in one.items()} for one in group]
    rewarded = [RewardBreakdown(sum(one.values()), None, one) for one in paid] + [RewardBreakdown(None)]
    got = normalized_terms(rewarded, weights)
    wanted = [0.0] * len(group)
    for name, factor in weights.items():
        values = [one[name] for one in group]
        weighted = [factor * value for value in values]
        if max(weighted) - min(weighted) > 1e-6:
            scale = stdev(values) + 1e-6 / abs(factor)
            wanted = [a + factor * (b - fmean(values)) / scale for a, b in zip(wanted, values, strict=True)]
    assert got[:-1] == pytest.approx(wanted, abs=1e-6) and got[-1] is None


def test_equal_totals_of_other_terms_differ_and_a_reward_without_terms_is_one_term():
    pair = [RewardBreakdown(1.0, 1.0, {"a": 1.0, "b": 0.0}), RewardBreakdown(1.0, 1.0, {"a": 0.0, "b": 1.0})]
    first, second = normalized_terms(pair, {"a": 2.0})
    assert first == pytest.approx(math.sqrt(0.5), rel=1e-5) and second == -first
    plain = normalized_terms([RewardBreakdown(3.0), RewardBreakdown(1.0)], {})
    assert plain == pytest.approx((math.sqrt(0.5), -math.sqrt(0.5)), rel=1e-5)
    assert normalized_terms([RewardBreakdown(None)], {}) == (None,)


def test_maxrl_counts_a_negative_reward_as_0():
    config = compose(["+stage=grpo", "algorithm=maxrl"]).config
    made = build(config.algorithm, max_completion_tokens=4)
    paid = [RewardBreakdown(reward) for reward in (1.0, -0.5, None, 0.25)]
    tokens = [SimpleNamespace(tokens=1)] * 4
    assert made.shaped_group(paid, tokens) == (1.0, 0.0, None, 0.25)


def test_gdpo_has_the_weights_of_the_runs_own_terms():
    config = compose(["+stage=grpo", "algorithm=gdpo", "reward.terms.length.weight=0.3"]).config
    weights = algorithm_of(config, POLICY, (POLICY,)).term_weights
    assert weights == {"cases_passed": 0.2, "all_passed": 1.0, "syntax": 0.05, "length": 0.3, "severity": 0.1}
