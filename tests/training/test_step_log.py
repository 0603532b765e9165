"""The sample accounting of a step: each side is counted from its own source, and a mismatch stops the run."""

import json
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries

from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.episodes.types import Completion, TokenSample
from rlvr_exp.records.rollout_files import to_row
from rlvr_exp.rewards.compose import RewardBreakdown
from rlvr_exp.rollouts.groups import Group, Groups
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.training.step_log import SampleAccounting, StepLog, rollout_rows
from rlvr_exp.verifiers.base import Verdict

PROMPTS, SIZE = 3, 3
rewards = st.tuples(*[st.sampled_from([None, 0.0, 0.5, 1.0])] * SIZE)
pools = st.lists(rewards, min_size=PROMPTS, max_size=PROMPTS + 3)
methods = st.sampled_from(
    ["dr_grpo", "gspo", "grpo", "rloo", "reinforce", "rloo algorithm.baseline=batch algorithm.kl_coef=0"]
)


@cache
def algorithm(name: str, mode: str) -> Algorithm:
    words = [f"algorithm.prompts_per_step={PROMPTS}", f"algorithm.group_size={SIZE}", f"algorithm.zero_variance={mode}"]
    return build(
        compose(["+stage=grpo", *f"algorithm={name}".split(), *words]).config.algorithm, max_completion_tokens=8
    )


def group(place: int, row, step: int = 0) -> Group:
    task = SimpleNamespace(id=f"task{place}", family="f", difficulty=float(place))
    verdicts = [_verdict(reward) for reward in row]
    drawn = [TokenSample((3, 4, 1)[: 1 + i % 3], (-0.1,) * (1 + i % 3), False) for i in range(SIZE)]
    answers = [Completion(task, i, drawn[i], "text", Candidate("x"), verdicts[i]) for i in range(SIZE)]
    prompts, ids = ("ask",) * SIZE, ((5, 6),) * SIZE
    return Group(step, place, prompts, ids, tuple(answers), tuple(RewardBreakdown(r, r, {}) for r in row), tuple(row))


def _verdict(reward: float | None) -> Verdict:
    if reward is None:
        return Verdict("no_verdict", log="broke")
    return Verdict("passed") if reward == 1.0 else Verdict("failed", bucket="wrong_answer")


def step_of(who: Algorithm, pool, waited: int, step: int = 1) -> Groups:
    """The first `waited` groups were sampled a step earlier; the first batch is learned from, the rest waits."""
    made = [group(place, row, step - (place < waited)) for place, row in enumerate(pool)]
    dead = {one.id: kind for one in made if (kind := who.group_filter().zero_variance_kind(one))}
    early, fresh = tuple(made[:waited]), tuple(made[waited:])
    return Groups(step, tuple(made[:PROMPTS]), fresh, early, tuple(made[PROMPTS:]), dead, {"generate": 0.5})


def logged(who: Algorithm, groups: Groups) -> dict[str, float]:
    log = StepLog(who.regularised, who.group_filter().mode != "keep")
    log.record(groups, who.experience(groups, 0))
    return dict(log.metrics())


@settings(deadline=None, max_examples=tries(80))
@given(methods, st.sampled_from(["keep", "mask"]), pools, st.integers(0, PROMPTS))
def test_sampled_is_trained_filtered_pending_and_silent(name, mode, pool, waited):
    row = logged(who := algorithm(name, mode), groups := step_of(who, pool, waited))
    parts = [row[f"samples/{part}"] for part in ("trained", "filtered", "pending", "no_verdict")]
    assert sum(parts) == row["samples/sampled"] == SIZE * (len(pool) - waited)
    assert row["samples/no_verdict"] == sum(one.n_no_verdict for one in groups.batch)
    assert row["samples/pending"] == SIZE * (len(pool) - PROMPTS - waited)


@settings(deadline=None, max_examples=tries(40))
@given(pools, st.integers(0, PROMPTS))
def test_rows_of_rollouts_tell_the_same_story(pool, waited):
    who = algorithm("dr_grpo", "mask")
    groups = step_of(who, pool, waited)
    rows = rollout_rows(groups, who.experience(groups, 0), who.regularised)
    row, fates = logged(who, groups), [one.fate for one in rows]
    assert {name: float(fates.count(name)) for name in ("trained", "filtered", "no_verdict")} == {
        name: row[f"samples/{name}"] for name in ("trained", "filtered", "no_verdict")
    }
    assert fates.count("pending") == SIZE * len(groups.carried_over)
    assert [one.advantage is not None for one in rows] == [fate == "trained" for fate in fates]
    assert sum(one.waited == 1 for one in rows) == SIZE * waited and {one.step for one in rows} == {2}
    json.dumps([to_row(one) for one in rows])


def test_dead_groups_are_counted_apart():
    pool = [(1.0, 1.0, None), (0.0, 0.0, 0.0), (None, None, None), (0.0, 1.0, 0.5)]
    row = logged(who := algorithm("dr_grpo", "keep"), step_of(who, pool, 0))
    assert [row[f"dead/{kind}"] for kind in ("solved", "failed", "errored")] == [1, 1, 1]


@pytest.mark.parametrize("fault", ["lost", "twice", "weightless"])
def test_books_that_do_not_add_up_stop_the_run(fault):
    """A group lost between sampling and the update; one that waits and is trained on; samples that lost their weight."""
    who = algorithm("dr_grpo", "keep")
    pool = [(0.0, 1.0, 0.5)] * (PROMPTS + 1)
    groups = step_of(who, pool, 0)
    learned = who.experience(groups, 0)
    if fault == "lost":
        groups = replace(groups, carried_over=())
    elif fault == "twice":
        groups = replace(groups, carried_over=groups.sampled)
    else:
        learned = replace(learned, weights=learned.weights * (torch.arange(len(learned.weights)) > 0)[:, None])
    with pytest.raises(GuardStop, match="books do not add up"):
        StepLog(False, False).record(groups, learned)


def test_a_row_adds_counts_up_and_averages_the_rest_over_the_steps_that_have_it():
    who = algorithm("dr_grpo", "keep")
    log = StepLog(False, False)
    log.record(first := step_of(who, [(0.0, 1.0, 0.5)] * 6, 0), who.experience(first, 0))
    second = Groups(2, first.carried_over, (), first.carried_over, (), {}, {})
    log.record(second, who.experience(second, 0))
    row = log.metrics()
    assert (row["samples/sampled"], row["samples/trained"], row["samples/pending"]) == (18, 18, 0)
    assert row["reward/mean"] == pytest.approx(0.5) and row["time/generate"] == 0.5, "the second step sampled nothing"


def test_a_group_of_two_tasks_or_with_a_member_missing_is_refused():
    whole, other = group(0, (0.0, 1.0, 0.5)), group(1, (0.0, 1.0, 0.5))
    with pytest.raises(ValueError, match="2 tasks"):
        replace(whole, completions=(*whole.completions[:2], other.completions[2]))
    with pytest.raises(ValueError, match="2 completions"):
        replace(whole, completions=whole.completions[:2])


def test_an_experience_whose_groups_are_mixed_up_is_refused():
    who = algorithm("dr_grpo", "keep")
    learned = who.experience(step_of(who, [(0.0, 1.0, 0.5)] * PROMPTS, 0), 0)
    ids = learned.group_ids.clone()
    ids[0] = ids[-1]
    with pytest.raises(ValueError, match="no neighbours"):
        replace(learned, group_ids=ids)
    prompts = learned.prompt_ids.clone()
    prompts[0, 0] = 9
    with pytest.raises(ValueError, match="different prompts"):
        replace(learned, prompt_ids=prompts)


def test_the_line_of_the_books_names_every_count():
    with pytest.raises(GuardStop, match="sampled 5, trained 2, filtered 1, pending 0, no_verdict 1"):
        SampleAccounting(5, 2, 1, 0, 1).check(3)
