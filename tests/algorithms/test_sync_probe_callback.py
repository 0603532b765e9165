"""The probe inside a trainer's own loop: its measurements, and that a stale engine stops the run."""

from types import SimpleNamespace

import pytest
import torch
from test_trainer_seams import EVERYTHING, experience, policy, trainer

from rlvr_exp.algorithms.sync_probe_callback import SyncProbeCallback
from rlvr_exp.core.errors import GuardStop

PROMPTS = [[5, 6, 7, 8, 9], [3, 4, 5]]


def probing(made, who, every: int = 1) -> SyncProbeCallback:
    one = SyncProbeCallback(SimpleNamespace(every_steps=every, tolerance=0.0), made, who, PROMPTS)
    made.add_callback(one)
    return one


def test_a_local_engine_and_its_trainer_agree_at_every_probe(tmp_path):
    made, who, _ = trainer(tmp_path, experience(), EVERYTHING, max_steps=2)
    one = probing(made, who)
    made.train()
    assert 0 <= one.metrics()["sync/probe_gap"] < 1e-5


def test_an_engine_that_is_never_handed_new_weights_ends_the_run(tmp_path):
    made, _, _ = trainer(tmp_path, experience(), EVERYTHING, max_steps=3)
    probing(made, policy())  # the same weights, at first
    with pytest.raises(GuardStop, match=r"step 1: .* stale weights: it has those of step 0"):
        made.train()


def test_no_probe_runs_where_it_is_off(tmp_path):
    made, _, _ = trainer(tmp_path, experience(), EVERYTHING, max_steps=1)
    one = probing(made, policy(), every=0)
    made.train()
    assert one.metrics() == {}


def test_scoring_leaves_the_model_in_its_mode_and_without_gradients(tmp_path):
    made, who, _ = trainer(tmp_path, experience(), EVERYTHING)
    who.model.train()
    scores = made.scored([[5, 6], [5, 6]], [[7, 8], [9, 3]], [0, 0])
    assert scores.shape == (2, 2)
    assert not scores.requires_grad
    assert who.model.training
    assert all(value.grad is None for value in who.model.parameters())
    logits = who.model(input_ids=torch.tensor([[5, 6, 7, 8]])).logits[0, 1:3].log_softmax(-1)
    assert torch.allclose(scores[0], logits.gather(-1, torch.tensor([[7], [8]]))[:, 0], atol=1e-5)
