"""The weight of the entropy bonus follows the entropy of the trained tokens, and belongs to a checkpoint."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_step import ANSWER, EVERYTHING, experience, flat, policy, trainer
from torch.nn.functional import log_softmax
from updating import updated

from rlvr_exp.algorithms.loss import EntropyControl


@given(st.floats(0, 1), st.lists(st.floats(0, 4), max_size=20))
def test_the_weight_is_skywork_or1s_kept_above_zero(start, entropies):
    """c' = c + step below the target, c - step otherwise."""
    control, wanted = EntropyControl(start, target=0.3, step=0.1), start
    for entropy in entropies:
        control.observe(entropy)
        wanted = max(0.0, wanted + 0.1 if entropy < 0.3 else wanted - 0.1)
        assert control.coef == wanted


def test_a_target_in_units_of_the_start_is_a_share_of_the_first_updates_entropy():
    control = EntropyControl(0.5, target=0.5, step=0.1, unit="start")
    seen = []
    for entropy in (2.0, 0.9, 1.1, 0.9):  # The target is 1.
        control.observe(entropy)
        seen.append(control.coef)
    assert seen == pytest.approx([0.4, 0.5, 0.4, 0.5])


def test_without_a_target_the_weight_is_constant():
    control = EntropyControl(0.2)
    control.observe(5.0)
    assert control.coef == 0.2 and not control.adapts


def test_an_update_without_tokens_leaves_the_weight():
    control = EntropyControl(0.2, target=1.0, step=0.1)
    control.observe(math.nan)
    assert control.coef == 0.2


def entropy_by_hand(given) -> float:
    """Mean over tokens by the loss's weights, evaluated in float64."""
    model = policy().model.double()
    ids = [[*p, *a] for p, a in zip(given.prompt_ids.tolist(), given.completion_ids.tolist(), strict=True)]
    found = 0.0
    for row, seen, weights in zip(ids, given.prompt_mask.tolist(), given.weights.tolist(), strict=True):
        real = row[seen.index(1) :]
        scores = log_softmax(model(input_ids=given.prompt_ids.new_tensor([real])).logits[0, -ANSWER - 1 : -1], -1)
        found += sum(w * e for w, e in zip(weights, (-(scores.exp() * scores).sum(-1)).tolist(), strict=True))
    return found / float(given.weights.sum())


@pytest.mark.parametrize("tokens", [EVERYTHING, 10])
@pytest.mark.parametrize(("off", "wanted"), [(1e-5, 0.25), (-1e-5, 0.15)])
def test_the_target_is_compared_with_the_entropy_of_the_updates_tokens(tmp_path, tokens, off, wanted):
    given = experience((1,))
    control = EntropyControl(0.2, target=entropy_by_hand(given) + off, step=0.05)
    rows = updated(trainer(tmp_path, tokens, control=control), lambda _: given)
    assert control.coef == pytest.approx(wanted)
    assert rows[0]["entropy/coef"] == 0.2, "the weight that the update used"


def test_groups_without_advantages_are_trained_on_from_the_start(tmp_path):
    """The bonus starts at weight 0: its first update has no gradient, its second has the bonus's."""
    control = EntropyControl(0.0, target=9.0, step=0.5)
    made, seen = trainer(tmp_path, EVERYTHING, control=control, max_steps=2), []
    updated(made, lambda _: experience((0, 1, 2, 3)), after=lambda learner: seen.append(flat(learner.trainer.model)))
    assert (seen[0] - flat(policy().model)).abs().max() == 0
    assert (seen[1] - seen[0]).abs().max() > 1e-4


def test_a_resumed_trainer_has_the_weight_to_the_last_bit(tmp_path):
    control = EntropyControl(0.1, target=9.0, step=0.1, unit="start")
    for _ in range(7):
        control.observe(1.0)
    state = trainer(tmp_path / "one", EVERYTHING, control=control).trainer_state()
    other = EntropyControl(0.0, target=9.0, step=0.1, unit="start")
    trainer(tmp_path / "two", EVERYTHING, control=other).load_trainer_state(state)
    assert other.coef == control.coef
    for one in (control, other):
        one.observe(9.5)  # Above 9 times the first.
    assert other.coef == control.coef < 0.75
