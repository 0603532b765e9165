"""The probe beside a trainer's updates: its measurements, and that a stale engine stops the run."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from tiny_step import EVERYTHING, experience, policy, trainer
from updating import updated

from rlvr_exp.core.errors import GuardStop
from rlvr_exp.training.periodic_probe import PeriodicProbe

PROMPTS = [[5, 6, 7, 8, 9], [3, 4, 5]]


def probed(folder, steps: int, every: int = 1, own: bool = True) -> PeriodicProbe:
    """After updates with a probe; the engine has the trained weights, or others that only start the same."""
    made = trainer(folder, EVERYTHING, max_steps=steps)
    engine = replace(policy(), model=made.model) if own else policy()
    one = PeriodicProbe(SimpleNamespace(every_steps=every, tolerance=0.0), made, engine, PROMPTS)
    one.begin(0)
    updated(made, lambda _: experience(), after=lambda learner: one.after(learner.steps))
    return one


def test_a_local_engine_and_its_trainer_agree_at_every_probe(tmp_path):
    one = probed(tmp_path, steps=2)
    assert 0 <= one.metrics()["sync/probe_gap"] < 1e-5 and one.metrics() == {}


def test_an_engine_that_is_never_handed_new_weights_ends_the_run(tmp_path):
    with pytest.raises(GuardStop, match=r"step 1: .* stale weights: it has those of step 0"):
        probed(tmp_path, steps=3, own=False)


def test_no_probe_runs_where_it_is_off(tmp_path):
    assert probed(tmp_path, steps=1, every=0, own=False).metrics() == {}


def test_a_gap_of_a_row_still_to_come_is_part_of_a_checkpoint(tmp_path):
    one, again = probed(tmp_path, steps=1), probed(tmp_path, steps=1, every=0)
    again.load_state_dict(one.state_dict())
    assert again.metrics() == one.metrics() != {}


def test_scoring_leaves_the_model_in_its_mode_and_without_gradients(tmp_path):
    made = trainer(tmp_path, EVERYTHING)
    made.model.train()
    scores = made.scored([[5, 6], [5, 6]], [[7, 8], [9, 3]], [0, 0])
    assert scores.shape == (2, 2)
    assert not scores.requires_grad
    assert made.model.training
    assert all(value.grad is None for value in made.model.parameters())
    logits = made.model(input_ids=torch.tensor([[5, 6, 7, 8]])).logits[0, 1:3].log_softmax(-1)
    assert torch.allclose(scores[0], logits.gather(-1, torch.tensor([[7], [8]]))[:, 0], atol=1e-5)
