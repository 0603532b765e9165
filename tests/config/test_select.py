"""When the best step is looked for without anybody's saying so: evenly over the run, at a tenth of its samples or less."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.config.compose import compose
from rlvr_exp.config.run import FEWEST, planned

GRPO = compose(["+stage=grpo"]).config


def of(*words: str):
    return planned(compose([*words]).config)


@given(
    steps=st.integers(1, 1000),
    prompts=st.integers(1, 64),
    group=st.integers(2, 16),
    times=st.integers(0, 30),
    samples=st.integers(1, 8),
    tasks=st.integers(1, 100),
    uses=st.integers(1, 4),
)
def test_measuring_costs_a_tenth_at_most(steps, prompts, group, times, samples, tasks, uses) -> None:
    algorithm, wanted = GRPO.algorithm, GRPO.run.select
    algorithm.max_steps, algorithm.prompts_per_step, algorithm.group_size = steps, prompts, group
    algorithm.iterations = uses
    wanted.times, wanted.samples, wanted.tasks = times, samples, tasks
    found = planned(GRPO)
    assert found.times == 0
    if not found.every_steps:
        assert not found.active and (
            times < 2 or steps < 2 or 20 * min(FEWEST, tasks) * (samples + 1) > steps * prompts * group / uses
        )
        return
    measured = -(-steps // found.every_steps)
    assert 2 <= measured <= times and min(FEWEST, tasks) <= found.tasks <= tasks
    assert measured * found.tasks * (samples + 1) <= 0.1 * steps * prompts * group / uses


@pytest.mark.parametrize(("stage", "every"), [("grpo", 36), ("ppo", 28), ("cascade", 4), ("sft", 50)])
def test_every_stage_that_trains_selects(stage: str, every: int) -> None:
    assert of(f"+stage={stage}").every_steps == every and of(f"+stage={stage}").active


def test_what_is_said_wins() -> None:
    assert of("+stage=grpo", "run.select.every_steps=7", "run.select.tasks=3").every_steps == 7
    assert not of("+stage=grpo", "run.select.times=0").active
    by_reward = of("+stage=grpo", "run.select.metric=reward/mean")
    assert by_reward.active and not by_reward.every_steps, "nothing is measured for it"
    assert of("+stage=sft", "run.select.every_steps=0", "run.select.times=3").every_steps == 50


def test_a_run_that_is_too_short_selects_nothing() -> None:
    assert not of("+stage=grpo", "+experiment=quick").active
