"""The cosine between the gradients of consecutive updates, against plain arithmetic; a resumed run goes on with it."""

import io
from pathlib import Path

import pytest
import torch
from tiny_update import Bowl, trainer
from updating import Gradients, driven

from rlvr_exp.algorithms.gradients import GradientCosine
from rlvr_exp.config.compose import compose, compose_lenient
from rlvr_exp.training.learner import Learner


def model() -> torch.nn.ModuleDict:
    layers = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.Linear(3, 2)])
    return torch.nn.ModuleDict({"layers": layers, "norm": torch.nn.LayerNorm(3)}).double()


def gradients(of: torch.nn.Module, seed: int) -> torch.Tensor:
    drawn = torch.Generator().manual_seed(seed)
    for value in of.parameters():
        value.grad = torch.randn(value.shape, generator=drawn, dtype=value.dtype)
    return torch.cat([value.grad.flatten() for value in of.parameters()])


def cosine(one: torch.Tensor, other: torch.Tensor) -> float:
    return float(torch.nn.functional.cosine_similarity(one, other, dim=0))


def test_cosines_are_those_of_neighbours_of_the_whole_and_of_each_layer() -> None:
    one, cosines = model(), GradientCosine()
    first = gradients(one, 1)
    cosines.update(one)
    assert cosines.metrics() == {}, "the first update has none before it"
    second = gradients(one, 2)
    cosines.update(one)
    third = gradients(one, 3)
    cosines.update(one)
    row = cosines.metrics()
    assert row["grad_cosine"] == pytest.approx((cosine(first, second) + cosine(second, third)) / 2)
    layer = slice(0, 12)  # Nine weights and three biases of the first.
    pair = (cosine(first[layer], second[layer]) + cosine(second[layer], third[layer])) / 2
    assert row["grad_cosine/layer_000"] == pytest.approx(pair)
    assert set(row) == {"grad_cosine", "grad_cosine/layer_000", "grad_cosine/layer_001", "grad_cosine/other"}
    assert cosines.metrics() == {}


def test_the_same_direction_is_1_the_opposite_minus_1_and_none_counts_for_nothing() -> None:
    one, cosines = model(), GradientCosine()
    gradients(one, 1)
    for factor in (2.0, -3.0):
        cosines.update(one)
        for value in one.parameters():
            value.grad *= factor
        cosines.update(one)
        assert cosines.metrics()["grad_cosine"] == pytest.approx(1.0 if factor > 0 else -1.0)
        cosines._last = {}
    for value in one["norm"].parameters():
        value.grad = None
    cosines.update(one)
    cosines.update(one)
    assert "grad_cosine/other" not in cosines.metrics()


def test_sums_are_in_the_order_of_the_parameters_so_that_they_are_rounded_alike() -> None:
    """Not in that of hashes, which differ from process to process."""
    one = torch.nn.ParameterDict({f"p{n}": torch.zeros(3, dtype=torch.double) for n in range(60)})
    cosines = GradientCosine()
    both, ours, theirs = torch.zeros(3, dtype=torch.double)
    pairs = []
    for seed in (1, 2):
        gradients(one, seed)
        for number, value in enumerate(one.parameters()):
            value.grad *= 10.0 ** (number % 7 - 3)
        pairs.append([value.grad.clone() for value in one.parameters()])
        cosines.update(one)
    for there, here in zip(*pairs, strict=True):
        both, ours, theirs = both + here @ there, ours + here @ here, theirs + there @ there
    assert cosines.metrics()["grad_cosine"] == float(both / (ours * theirs).sqrt())


def test_a_saved_one_goes_on_as_if_nothing_had_been_between() -> None:
    one, cosines, resumed, file = model(), GradientCosine(), GradientCosine(), io.BytesIO()
    for seed in (1, 2):
        gradients(one, seed)
        cosines.update(one)
    torch.save(cosines.state_dict(), file)
    file.seek(0)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    gradients(one, 3)
    for each in (cosines, resumed):
        each.update(one)
    assert cosines.metrics() == resumed.metrics() != {}


@pytest.mark.parametrize("asked", [True, False])
def test_a_learner_logs_it_where_it_is_asked_for(asked: bool, tmp_path: Path) -> None:
    words = ["optimizer=sgd", "optimizer.lr=1e-6", "algorithm.max_steps=3", "scheduler=constant"]
    made = trainer(Bowl(0, 1.0), compose(["+stage=grpo", *words]).config, tmp_path)
    seen, learner = Gradients(made.optimizer), Learner("policy", made, {})
    if asked:
        learner.compare_gradients()
    rows = driven(learner, lambda _: None)
    assert "grad_cosine" not in rows[0]
    if not asked:
        assert not any(name.startswith("grad_cosine") for row in rows for name in row)
    else:
        assert rows[1]["grad_cosine"] == pytest.approx(cosine(*seen.seen[:2]), abs=1e-5)


@pytest.mark.parametrize(
    ("stage", "where"),
    [("grpo", "optimizer.gradient_cosine"), ("cascade", "roles.annotator.optimizer.gradient_cosine")],
)
def test_zero_which_shards_gradients_refuses_it(stage: str, where: str) -> None:
    found = compose_lenient([f"+stage={stage}", "parallel=zero2", f"{where}=true"]).problems
    assert [one.where for one in found if "gradient" in one.where] == [where]
    assert not compose_lenient(["+stage=grpo", "parallel=ddp", "optimizer.gradient_cosine=true"]).problems
