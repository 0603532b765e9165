"""Turns that follow from each other are one row, and the update is that of rows of their own."""

from tempfile import TemporaryDirectory

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_step import EVERYTHING, trainer

from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.algorithms.training_batch import TrainingBatch, collate_kept_token_ids, joined, pad_left, pad_right
from rlvr_exp.episodes.types import TokenSample

END = 1
Turn = tuple[list[int], list[int]]


def batch(groups: list[list[Turn]], kept: bool = False) -> TrainingBatch:
    """Groups of turns (prompt, completion) with random advantages; of equal prompts those that are neighbours share."""
    turns = [turn for group in groups for turn in group]
    prompt_ids, prompt_mask = pad_left([prompt for prompt, _ in turns], 0)
    ids, mask = pad_right([completion for _, completion in turns], 0)
    draw = torch.Generator().manual_seed(len(turns))
    sizes: list[int] = []
    for group in groups:
        for place, (prompt, _) in enumerate(group):
            if place and group[place - 1][0] == prompt:
                sizes[-1] += 1
            else:
                sizes.append(1)
    samples = [TokenSample(tuple(c), (0.0,) * len(c), False, tuple((t, 5, 6) for t in c)) for _, c in turns]
    return TrainingBatch(
        prompt_ids=prompt_ids,
        prompt_mask=prompt_mask,
        completion_ids=ids,
        completion_mask=mask,
        sampling_logprobs=-torch.rand(ids.shape, generator=draw) * mask,
        advantages=torch.randn(len(turns), 1, generator=draw) * mask,
        weights=torch.rand(ids.shape, generator=draw) * mask,
        sizes=tuple(sizes),
        group_ids=torch.tensor([number for number, group in enumerate(groups) for _ in group]),
        kept_token_ids=collate_kept_token_ids(samples) if kept else None,
    )


class Apart(PolicyTrainer):
    """Every turn is a row of its own."""

    @property
    def _joins(self) -> bool:
        return False


def updated(kind: type[PolicyTrainer], made: TrainingBatch, tokens: int, **more) -> torch.Tensor:
    with TemporaryDirectory() as folder:
        one = trainer(folder, tokens, kind=kind, **more)
        one.train()
        one.take(made)
        one.gradient()
        return torch.cat([weight.grad.flatten().clone() for weight in one.model.parameters()])


tokens = st.lists(st.integers(2, 19), min_size=1, max_size=3)


@st.composite
def episodes(draw) -> list[list[Turn]]:
    """Chains of one problem, a group for each stage; the ends of completions and what stands between turns vary, and some turns do
    not go on from the one before."""
    first, chains = draw(tokens), draw(st.integers(1, 3))
    groups: list[list[Turn]] = [[] for _ in range(draw(st.integers(1, 3)))]
    for _ in range(chains):
        prompt = first
        for group in groups:
            completion = [*draw(tokens), *([END] if draw(st.booleans()) else [])]
            group.append((prompt, completion))
            ended = completion[:-1] if completion[-1] == END else completion
            prompt = [*prompt, *ended, *draw(tokens)] if draw(st.integers(0, 3)) else [*first, *draw(tokens)]
    return groups


@settings(deadline=None, max_examples=5)
@given(
    episodes(),
    st.sampled_from([12, EVERYTHING]),
    st.booleans(),
    st.sampled_from([{}, {"entropy_coef": 0.1}, {"num_iterations": 2}]),
)
def test_the_update_is_that_of_turns_apart(groups, limit, kept, more):
    made = batch(groups, kept)
    apart, together = (updated(kind, made, limit, **more) for kind in (Apart, PolicyTrainer))
    assert torch.allclose(together, apart, rtol=1e-4, atol=1e-6), (together - apart).abs().max()


CHAIN = [[([3, 4], [5, END])], [([3, 4, 5, 7, 8], [9, 10])], [([3, 4, 5, 7, 8, 9, 10, 11], [12, END])]]


def test_a_chain_is_one_row_that_predicts_what_was_drawn():
    given = batch(CHAIN, kept=True)
    made = joined(given)
    assert made.prompt_ids[:, -2:].tolist() == [[3, 4]]
    assert made.sizes == (1,)
    # 11 stands between the second and the third turn, at a place of its own: the second has no end.
    assert made.completion_ids.tolist() == [[5, END, 8, 9, 10, 11, 12, END]]
    assert made.fed_ids.tolist() == [[5, 7, 8, 9, 10, 11, 12, END]]
    assert made.completion_mask.sum() == 8
    between = [2, 5]
    assert made.weights[0, between].tolist() == made.advantages[0, between].tolist() == [0, 0]
    assert (made.kept_token_ids[0, between] == -1).all()
    learned = [place for place in range(8) if place not in between]
    assert made.weights[0, learned].tolist() == given.weights[given.completion_mask.bool()].tolist()


def test_a_turn_is_continued_once_and_others_stay_apart():
    first, second = ([3, 4], [5, END]), ([3, 4, 5, 7], [8, END])
    made = joined(batch([[first], [second, second]]))
    assert made.sizes == (1, 1)
    assert made.group_ids.tolist() == [0, 1]
    unrelated = batch([[first], [([3, 4, 6, 7], [8, END])]])
    assert joined(unrelated) is unrelated


def test_equal_chains_are_as_many_rows_of_one_prompt():
    made = joined(batch([[CHAIN[0][0]] * 2, [CHAIN[1][0]] * 2]))
    assert made.sizes == (2,)
    assert len(made.completion_ids) == 2


@pytest.mark.parametrize("level", ["sequence", "token"])
def test_where_a_row_is_a_unit_of_the_loss_turns_stay_apart(level, tmp_path):
    one = trainer(tmp_path, EVERYTHING, importance_sampling_level=level)
    assert one._joins == (level == "token")
