"""TrainingBatch as tensors: every field follows its sample through a selection; kept token ids are padded per token."""

import dataclasses

import pytest
import torch
from fixed_batch import PROMPTS, algorithm, drawn_from, groups, policy

from rlvr_exp.algorithms.training_batch import TrainingBatch, collate_kept_token_ids
from rlvr_exp.episodes.types import TokenSample


@pytest.fixture(scope="module")
def learned(tmp_path_factory) -> TrainingBatch:
    who = algorithm("dr_grpo")
    recorded = drawn_from(policy(tmp_path_factory.mktemp("policy")).model, 0.1)
    made = who.experience(groups(who, recorded), 0)
    kept = torch.arange(made.completion_ids.numel() * 2).view(*made.completion_ids.shape, 2)
    return dataclasses.replace(made, kept_token_ids=kept)


def test_a_selection_takes_every_field_of_its_samples_along(learned):
    chosen = learned.select([2, 0])
    assert chosen.group_ids.tolist() == [*learned.group_ids[6:9].tolist(), *learned.group_ids[:3].tolist()]
    width = chosen.completion_ids.shape[1]
    rows = [6, 7, 8, 0, 1, 2]
    for name in ("completion_ids", "sampling_logprobs", "advantages", "weights", "kept_token_ids"):
        assert torch.equal(getattr(chosen, name), getattr(learned, name)[rows, :width]), name
    assert chosen.prompt_ids.shape[1] == max(len(PROMPTS[2]), len(PROMPTS[0]))
    assert chosen.off_policy == learned.off_policy and chosen.sizes == (3, 3)


def test_samples_keep_what_was_recorded_of_them(learned):
    assert learned.off_policy, "they were drawn a step earlier"
    tokens = learned.completion_mask.sum(1).tolist()
    assert tokens == [3, 1, 6, 4, 2, 2, 5, 6, 3]
    assert (learned.sampling_logprobs[learned.completion_mask == 0] == 0).all()


def test_kept_token_ids_are_padded_for_each_token():
    samples = [
        TokenSample((4, 5), (-0.1, -0.2), False, ((4,), (5, 6, 7))),
        TokenSample((3,), (-0.3,), False, ((3, 9),)),
    ]
    assert collate_kept_token_ids(samples).tolist() == [[[4, -1, -1], [5, 6, 7]], [[3, 9, -1], [-1, -1, -1]]]
    assert collate_kept_token_ids([TokenSample((4,), (-0.1,), False)]) is None


def test_samples_with_and_without_kept_token_ids_do_not_mix():
    with pytest.raises(ValueError, match="1 of 2 samples came without"):
        collate_kept_token_ids([TokenSample((4,), (-0.1,), False, ((4,),)), TokenSample((4,), (-0.1,), False)])


@pytest.mark.parametrize(("name", "kept"), [("dr_grpo", True), ("ssd", False)])
def test_only_ssd_learns_without_the_filters_that_its_samples_were_drawn_with(tmp_path, name, kept):
    who = algorithm(name)
    drawn = groups(who, drawn_from(policy(tmp_path).model, 0.1))

    def filtered(one):
        sampled = dataclasses.replace(one.sampled, kept_token_ids=tuple((token,) for token in one.sampled.ids))
        return dataclasses.replace(one, sampled=sampled)

    batch = [dataclasses.replace(one, completions=tuple(map(filtered, one.completions))) for one in drawn.batch]
    made = who.experience(dataclasses.replace(drawn, batch=tuple(batch)), 0)
    assert (made.kept_token_ids is not None) == kept == made.off_policy


def test_the_initial_policy_samples_all_that_ssd_imitates():
    plan = algorithm("ssd", "algorithm.max_steps=40").plan()
    assert plan.groups_needed(0) == 40 * plan.prompts_per_step
