"""Gradient norms are tracked exactly, and clipping works as documented."""

import math
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries
from tiny_update import Bowl, trainer
from updating import Gradients, updated

from rlvr_exp.algorithms.gradients import Clipping
from rlvr_exp.config.compose import compose


def stepped(scale: float, limit: float, seed: int, steps: int = 1, every: int = 1):
    """The optimizer's gradients, the logged rows, and the gradient of the first step before clipping."""
    bowl = Bowl(seed, scale)
    bowl(torch.zeros(1))["loss"].backward()
    whole = torch.cat([value.grad.flatten() for value in bowl.parameters()]).double()
    bowl.zero_grad()
    words = ["optimizer=sgd", "optimizer.lr=1e-6", f"optimizer.max_grad_norm={limit}", f"algorithm.max_steps={steps}"]
    config = compose(["+stage=grpo", *words, "scheduler=constant", "scheduler.warmup_steps=0"]).config
    with TemporaryDirectory() as scratch:
        made = trainer(bowl, config, Path(scratch))
        gradients = Gradients(made.optimizer)
        rows = updated(made, lambda _: None, every)
    return gradients.seen, rows, whole


SCALES, LIMITS, SEEDS = st.floats(0.01, 100), st.floats(0.01, 100), st.integers(0, 50)


@pytest.mark.property(42)
@settings(deadline=None, max_examples=tries(8))
@given(scale=SCALES, seed=SEEDS)
def test_the_logged_norm_is_the_gradients_own(scale: float, seed: int) -> None:
    _, rows, whole = stepped(scale, 1.0, seed)
    assert rows[0]["grad_norm"] == rows[0]["grad_norm/max"] == pytest.approx(float(whole.norm()), rel=1e-5)


@pytest.mark.property(47)
@settings(deadline=None, max_examples=tries(12))
@given(scale=SCALES, limit=LIMITS, seed=SEEDS)
def test_clipping_bounds_the_norm_and_keeps_the_direction(scale: float, limit: float, seed: int) -> None:
    (after,), (row,), whole = stepped(scale, limit, seed)
    before = float(whole.norm())
    assert float(after.norm()) <= limit * (1 + 1e-5)
    assert float(after @ whole) == pytest.approx(float(after.norm()) * before, rel=1e-5)
    assert row["grad_norm/after"] == pytest.approx(float(after.norm()), rel=1e-5)
    assert row["grad_norm/clipped"] == (before > limit)
    if before < limit * (1 - 1e-5):
        assert torch.allclose(after, whole, rtol=1e-6)
    elif before > limit * (1 + 1e-5):
        assert float(after.norm()) == pytest.approx(limit, rel=1e-4)


def clipped(counted: Clipping, model: torch.nn.Module, limit: float) -> float:
    return counted.clip(model, lambda _: torch.nn.utils.clip_grad_norm_(model.parameters(), limit), limit, False)


@pytest.mark.property(47)
@given(norms=st.lists(st.floats(0, 10), min_size=1, max_size=20), limit=st.floats(0.1, 10))
def test_a_row_speaks_of_every_step_since_the_last_one(norms: list[float], limit: float) -> None:
    counted = Clipping()
    model = torch.nn.Linear(1, 1, bias=False).double()
    for norm in norms:
        model.weight.grad = torch.full_like(model.weight, norm)
        assert clipped(counted, model, limit) == pytest.approx(norm)
    row = counted.metrics()
    assert row["grad_norm/clipped"] == sum(norm > limit for norm in norms) / len(norms)
    assert math.isclose(row["grad_norm"], math.fsum(norms) / len(norms), abs_tol=1e-12)
    assert row["grad_norm/after"] <= min(limit, row["grad_norm"]) + 1e-9 and not counted.metrics()


def test_rows_are_rarer_than_steps() -> None:
    seen, rows, _ = stepped(1.0, 2.0, 3, steps=6, every=3)
    assert len(seen) == 6 and [row["step"] for row in rows] == [3, 6]
    assert rows[0]["grad_norm/clipped"] == 1.0 and rows[0]["grad_norm/after"] == pytest.approx(2.0, rel=1e-4)


def test_norms_by_layer_add_up_to_the_norm_before_clipping() -> None:
    model = torch.nn.ModuleDict(
        {
            "embed_tokens": torch.nn.Embedding(3, 2),
            "layers": torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)]),
            "norm": torch.nn.LayerNorm(2),
            "lm_head": torch.nn.Linear(2, 3),
        }
    ).double()
    for number, value in enumerate(model.parameters(), 1):
        value.grad = torch.full_like(value, number)
    counted = Clipping()
    total = clipped(counted, model, 1e-3)
    resumed = Clipping()
    resumed.load_state_dict(counted.state_dict())
    row = counted.metrics()
    assert row == resumed.metrics()
    resumed.load_state_dict({"steps": counted.state_dict()["steps"]})  # of an older checkpoint
    names = ("embeddings", "head", "layer_000", "layer_001", "other")
    by_place = {name: row[f"grad_norm/{name}"] for name in names}
    assert math.isclose(math.hypot(*by_place.values()), total, rel_tol=1e-6) and total > 1
    assert by_place["embeddings"] == pytest.approx(math.sqrt(6)) and by_place["layer_000"] == pytest.approx(
        math.sqrt(4 * 2**2 + 2 * 3**2)
    )
