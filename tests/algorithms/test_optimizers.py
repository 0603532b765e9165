"""Optimizers: each lowers a convex loss, and a run logs the loss curve."""

from statistics import fmean
from types import SimpleNamespace

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from thinning import thinned
from tiny_update import Bowl, tiny_language_model, trained

from rlvr_exp.algorithms.optimizers import Chained, parts_of
from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.core.errors import InputError

RATES = {"adam": 0.1, "adamw": 0.1, "adamw_8bit": 0.1, "sgd": 0.1, "adafactor": 0.1, "muon": 0.1}
NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
"""Each example is a complete training."""
LINE = ["scheduler=constant", "scheduler.warmup_steps=0"]


@pytest.mark.property(45)
@pytest.mark.parametrize("name", thinned(RATES, 3))
@settings(deadline=None, max_examples=3, phases=NO_SHRINKING)
@given(seed=st.integers(0, 30), share=st.floats(0.5, 1.0))
def test_every_optimizer_lowers_a_convex_loss_and_the_curve_is_logged(name: str, seed: int, share: float) -> None:
    model = tiny_language_model() if name == "muon" else Bowl(seed)
    first = float(model(torch.zeros(1))["loss"].detach())
    words = [
        f"optimizer={name}",
        f"optimizer.lr={RATES[name] * share}",
        "optimizer.max_grad_norm=100",
        "algorithm.max_steps=30",
    ]
    words += ["optimizer.matrix_lr=0.2"] if name == "muon" else []
    trainer, rows = trained(model, *words, *LINE)
    curve = [row["loss"] for row in rows]
    assert len(curve) == 30 and curve[0] == pytest.approx(first, rel=1e-5)
    # Momentum overshoots a minimum: not every step is down, each third of the run is below the first on average.
    assert max(fmean(curve[10:20]), fmean(curve[20:])) < 0.8 * fmean(curve[:10])
    assert curve[-1] < 0.5 * first and float(trainer.model(torch.zeros(1))["loss"].detach()) < 0.5 * first


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd", "adafactor", "adamw_8bit"])
def test_matrices_alone_are_decayed(name: str) -> None:
    made = build(compose(["+stage=grpo", f"optimizer={name}", "optimizer.weight_decay=0.5"]).config.optimizer).make(
        Bowl()
    )
    decays = {tuple(value.shape): group["weight_decay"] for group in made.param_groups for value in group["params"]}
    assert decays == {(6, 4): 0.5, (6,): 0.0}


def test_frozen_parameters_are_left_out() -> None:
    bowl = Bowl()
    bowl.matrix.requires_grad_(False)
    made = build(compose(["+stage=grpo", "optimizer=sgd"]).config.optimizer).make(bowl)
    assert [tuple(value.shape) for group in made.param_groups for value in group["params"]] == [(6,)]


def test_muon_is_two_optimizers_whose_state_comes_back() -> None:
    words = ["optimizer=muon", "algorithm.max_steps=3", *LINE]
    trainer, _ = trained(tiny_language_model(), *words)
    chained = trainer.optimizer.optimizer
    assert isinstance(chained, Chained)
    other = build(compose(["+stage=grpo", "optimizer=muon"]).config.optimizer).make(tiny_language_model())
    other.load_state_dict(chained.state_dict())
    moment = next(iter(other.parts[1].state.values()))["momentum_buffer"]
    assert torch.equal(moment, next(iter(chained.parts[1].state.values()))["momentum_buffer"])


def test_what_joins_muon_later_is_stepped() -> None:
    made = build(compose(["+stage=grpo", "optimizer=muon"]).config.optimizer).make(tiny_language_model())
    late = torch.nn.Parameter(torch.ones(3))
    made.add_param_group({"params": [late], "weight_decay": 0.0})
    late.grad = torch.ones(3)
    made.step()
    assert (late < 1).all() and any(value is late for group in made.param_groups for value in group["params"])


@pytest.mark.parametrize(
    "words",
    [
        ["optimizer=adamw", "optimizer.beta1=1"],
        ["optimizer=adam", "optimizer.eps=0"],
        ["optimizer=sgd", "optimizer.momentum=1"],
        ["optimizer=sgd", "optimizer.beta2=0.9"],
        ["optimizer=adafactor", "optimizer.beta1=1"],
        ["optimizer=adamw", "optimizer.lr=0"],
        ["optimizer=adamw", "optimizer.max_grad_norm=0"],
    ],
)
def test_impossible_values_are_refused(words: list[str]) -> None:
    with pytest.raises(InputError, match=words[1].partition("=")[0]):
        compose(["+stage=grpo", *words])


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_the_states_of_every_part_can_be_cleared(name: str) -> None:
    model = tiny_language_model()
    made = build(compose(["+stage=grpo", f"optimizer={name}"]).config.optimizer).make(model)
    sum(value.square().sum() for value in model.parameters()).backward()
    made.step()
    assert all(part.state for part in parts_of(made)), "each holds moments"
    for part in parts_of(SimpleNamespace(optimizer=made)):
        part.state.clear()
    assert not any(part.state for part in parts_of(made))
