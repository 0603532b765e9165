"""Rules of every diagnosis: no cause without an effect, nothing said without power, and no false alarm that was met before."""

import math
from dataclasses import replace

import pytest
from sick_world import World, changed
from sicknesses import failing

from rlvr_exp.report.data import count_step
from rlvr_exp.report.diagnosis import diagnose, diagnosis_section
from rlvr_exp.report.evidence import Power


def causes(seen):
    return [one.cause for one in diagnose(seen).findings]


def around(value, half, tasks=100):
    return {"pass_at_1": {"value": value, "low": value - half, "high": value + half, "n": tasks}}


HEART = {"gain": 0.6, "rate": 0.1, "change_held_out": around(0.0, 0.03)}


def repeated(row):
    return {"task": f"few{row.group}", "prompt": f"prompt of few{row.group}"}


@pytest.mark.parametrize(
    "config",
    [
        {"curriculum": {"_target_": "rlvr_exp.curriculum.difficulty_bands.Staged"}},
        {"environment": {"_target_": "rlvr_exp.domains.problems.reasoning.Reasoning"}},
        {"reasoning": {"start": "code"}},
    ],
)
def test_success_on_other_tasks_or_stages_is_no_overfitting(config):
    """Steps of a curriculum or of stages of reasoning differ in difficulty."""
    assert causes(World(change=repeated, **HEART).evidence()) == ["overfit"]
    assert causes(World(change=repeated, config=config, **HEART).evidence()) == []


def test_training_tasks_that_are_seen_once_are_no_overfitting():
    assert causes(World(**HEART).evidence()) == []


def test_a_random_policy_is_named_with_a_single_held_out_task():
    cut = failing("truncated", truncated=True, completion="][ 7 def")
    seen = World(change=cut, row=lambda step: {"entropy": 7.3}, change_held_out=around(0.0, 1.0, 1)).evidence()
    one = [changed(row, cut) for row in seen.measured[:4]]
    assert causes(replace(seen, measured=one, before=count_step(0, one)))[0] == "random_policy"


def test_advantages_of_one_sign_are_named():
    positive = World(change=lambda row: {"advantage": 5.0 + row.reward}, gain=0.0).evidence()
    assert causes(positive) == ["advantages"] and "positive" in diagnose(positive).headline
    passed_alone = World(change=lambda row: {"advantage": float(row.outcome == "passed")}, gain=0.0)
    assert causes(passed_alone.evidence()) == []


def test_a_cause_of_a_run_that_learned_is_a_note():
    stop = {"config": {"algorithm": {"stop": ["wrong"]}}}
    assert causes(World(gain=0.0, **stop).evidence()) == ["stop"]
    found = diagnose(World(change_held_out=around(0.1, 0.04), **stop).evidence())
    assert found.findings == () and [one.cause for one in found.notes] == ["stop"]


def test_a_leak_is_no_note_although_success_rose():
    gold = "def solve(g):\n    return [row[::-1] for row in g]"
    world = World(change=lambda row: {"prompt": f"{gold}\n{row.prompt}"}, gold=gold, change_held_out=around(0.1, 0.04))
    assert causes(world.evidence()) == ["leak"]


def test_too_few_held_out_tasks_say_nothing():
    """A fall on three tasks names no cause; on a hundred it does."""
    few, many = (World(gain=0.0, change_held_out=around(-0.3, 0.1, tasks)).evidence() for tasks in (3, 100))
    assert causes(many) == ["worse"] and causes(few) == []
    level = diagnose(World(gain=0.0, change_held_out=around(0.0, 0.4, 3)).evidence())
    assert level.power.startswith(
        "Nothing can be said about learning: 3 held-out tasks with 1 sample each are too few."
    )


def test_the_box_is_neutral_unless_success_rose():
    level = diagnose(World(gain=0.0, change_held_out=around(0.0, 0.1)).evidence())
    rose = diagnose(World(change_held_out=around(0.1, 0.05)).evidence())
    assert "could have shown a change of 14.3 points or more (95% confidence, 80% power)" in level.power
    assert 'class="neutral"' in diagnosis_section(level, True) and 'class="well"' not in diagnosis_section(level, True)
    assert 'class="well"' in diagnosis_section(rose, True) and rose.power == "" and rose.next_steps == ()


def test_power_is_that_of_the_paired_difference():
    power = Power(tasks=40, samples=4, width=0.12)
    assert power.detectable == pytest.approx(0.06 / 2.023 * (2.023 + 0.851), rel=1e-3)
    assert power.tasks_for(power.detectable) in (40, 41) and not power.blind
    single = Power(tasks=1, samples=4, width=2.0)
    assert single.blind and math.isinf(single.detectable) and single.tasks_for(0.05) == 393


def test_larger_effects_come_first():
    """Three in ten answers are cut, and all rewards are equal."""
    both = World(
        change=lambda row: {
            **(failing("truncated", truncated=True)(row) if row.sample < 3 else {}), "reward": 0.5, "terms": {},
        },
        gain=0.0,
    )  # fmt: skip
    found = diagnose(both.evidence()).findings
    assert [one.cause for one in found][:2] == ["constant_reward", "truncation"] and found[0].effect > found[1].effect
