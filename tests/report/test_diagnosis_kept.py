"""Sicknesses that were met in real runs of 15 steps, kept as numbers, and in memory those that need no run."""

import random
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kept_runs import KEPT, kept
from sick_world import World
from sicknesses import failing, one_text
from thinning import thinned, tries

from rlvr_exp.report.diagnosis import Diagnosis, diagnose
from rlvr_exp.report.evidence import Evidence, evidence

CAUSES = {
    "never_readable": ["parse"],
    "kl_weight_10": ["kl_holds"],
    "pairs_of_hard_tasks": ["dead_failed"],
    "harder_than_held_out": ["other_tasks"],
    "no_end_token": ["no_end"],
    "entropy_bonus_1": ["entropy_bonus"],
    "sft_from_scratch": ["untaught"],
    "rate_too_high": ["exploding"],
    "long_prompts": ["parse", "prompts_too_long"],
    "one_step": [],
}
"""By run: all that is found, the first cause first."""
FELL = {"pass_at_1": {"value": -0.2, "low": -0.3, "high": -0.1}}


def causes(found: Diagnosis) -> list[str]:
    return [one.cause for one in found.findings]


@pytest.mark.parametrize("name", thinned(sorted(CAUSES)))
def test_a_real_run(name):
    assert causes(diagnose(kept(KEPT / f"{name}.json"))) == CAUSES[name]


def test_a_fall_says_what_it_did_to_the_answers():
    found = diagnose(World(change_held_out=FELL, gain=0.0).evidence())
    assert causes(found) == ["worse"] and found.outcome == "fell"
    assert "pass_at_1 changed by -20.0 points (95% CI -30.0 to -10.0)" in found.headline


@settings(max_examples=tries(40), deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rate=st.floats(0.0, 1.0),
    steps=st.integers(1, 20),
    high=st.floats(-0.5, -0.001),
    metric=st.sampled_from(["pass_at_1", "pass_at_1_greedy", "pass_at_8"]),
)
def test_a_run_whose_held_out_rate_fell_never_says_that_nothing_is_wrong(seed, rate, steps, high, metric):
    fell = {metric: {"value": high - 0.1, "low": high - 0.2, "high": high}}
    assert diagnose(World(seed=seed, rate=rate, steps=steps, gain=0.0, change_held_out=fell).evidence()).findings


def test_a_cause_of_the_fall_is_said_in_its_place():
    penalty = {"config": {"algorithm": {"kl_coef": 100.0}}, "row": lambda step: {"kl": 0.02}}
    assert causes(diagnose(World(change_held_out=FELL, gain=0.0, **penalty).evidence())) == ["kl_holds"]


def test_collapse_of_one_group_in_three_is_none():
    sunk = {"row": lambda step: {"entropy": 0.4 if step < 2 else 0.001}, "groups": 3}
    one, all_three = (
        World(change=lambda row, least=least: one_text(row) if row.group < least else {}, **sunk) for least in (1, 3)
    )
    assert "entropy_collapse" not in causes(diagnose(one.evidence()))
    assert causes(diagnose(all_three.evidence()))[0] == "entropy_collapse"


def test_a_collapse_explains_the_dead_groups_that_follow_it_and_no_earlier_ones():
    dead = {"reward": 0.0, "terms": {}, "outcome": "failed", "bucket": "wrong_answer"}
    late = World(change=lambda row: {**(one_text(row) if row.step > 10 else {}), **dead}, gain=0.0)
    assert causes(diagnose(late.evidence()))[0] == "dead_failed"
    assert "dead_failed" not in causes(diagnose(World(change=one_text, row=lambda step: {"entropy": 1e-4}).evidence()))


@pytest.mark.parametrize(("many", "found"), [(-0.045, ["sharpening"]), (-0.01, []), (0.02, [])])
def test_a_policy_sharpens_where_the_first_answer_gains_on_the_best_of_several(many, found):
    """Neither interval is wholly on its side; only the larger gap is beyond both together."""

    def around(value):
        return {"value": value, "low": value - 0.05, "high": value + 0.05}

    change = {"pass_at_1": around(0.03), "pass_at_4": around(0.0), "pass_at_8": around(many)}
    assert causes(diagnose(World(gain=0.0, change_held_out=change).evidence())) == found


def test_steps_without_anything_to_learn_from_are_no_lost_gradient():
    idle = World(row=lambda step: {"grad_norm": 0.0, "samples/trained": 0.0} if step > 1 else {})
    assert "no_gradient" not in causes(diagnose(idle.evidence()))


@pytest.mark.parametrize(("size", "found"), [(0.01, []), (3.0, ["reward_noise"])])
def test_noise_counts_by_what_a_pass_is_worth(size, found):
    def jitter(row):
        chance = random.Random(f"{row.step} {row.group} {row.sample} paid").random()
        text = f"{row.outcome} {row.sample % 3}"
        return {"completion": text, "tokens": 9, "reward": (row.outcome == "passed") + size * chance, "terms": {}}

    assert causes(diagnose(World(change=jitter, gain=0.0).evidence())) == found


def test_a_rate_is_held_against_the_size_of_the_model():
    """At 1e-3 a small model learns and one of seven billion parameters breaks."""
    fell = {"config": {"optimizer": {"lr": 1e-3}}, "row": lambda step: {"learning_rate": 1e-3}, "change_held_out": FELL}
    small, large = (World(gain=0.0, manifest={"model": {"total": size}}, **fell) for size in (10**6, 7 * 10**9))
    assert [causes(diagnose(one.evidence()))[0] for one in (small, large)] == ["worse", "exploding"]


def test_the_metrics_of_a_role_are_evidence():
    """A cascade names them by role; the completions that are counted are those of the last."""
    rows = [{"step": step, "writer/learning_rate": 1e-4, "annotator/learning_rate": 0.0} for step in range(1, 7)]
    config = {"stage": "cascade", "algorithm": {}, "optimizer": {"lr": 0.0}}
    run = SimpleNamespace(
        metrics=rows, step_counts=[], rollouts=[], answers={}, numbers={}, config=config, summary={}, manifest={}
    )
    assert causes(diagnose(evidence(run, {}))) == ["learning_rate"]


def test_a_run_that_took_no_step_has_no_option_to_blame():
    cold = {"stage": "grpo", "algorithm": {"temperature": 0.01}}
    assert diagnose(Evidence(config=cold, summary={"status": "failed", "steps": 0})).findings == ()


def test_prompts_that_never_reach_the_policy_are_no_empty_answers_and_no_failures_alike():
    unasked = World(garbled=failing("prompt_too_long", completion="")).evidence()
    measured_alone = replace(unasked, metrics=[], step_counts=[], rollouts=[], change={})
    assert causes(diagnose(measured_alone)) == ["prompts_too_long"]
