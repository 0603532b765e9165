"""The landscape: its Hessian against the dense one, directions, the barrier, gradients; and that no weight changes."""

import copy
import json

import pytest
import torch
from small_models import written
from torch.func import functional_call
from transformers import Qwen3Config, Qwen3ForCausalLM

from rlvr_exp.benchmarks.landscape import (
    GoldLoss,
    Landscape,
    _difference,
    barrier,
    filter_normalised,
    flat,
    gradient_statistics,
    largest_eigenvalues,
    moved,
    places,
    shaped,
    trained_weights,
)
from rlvr_exp.config.architecture import Scratch
from rlvr_exp.config.compose import compose
from rlvr_exp.config.model import Adapter, Model, at_checkpoint, base, continued
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.core.errors import InputError
from rlvr_exp.records.context import RunContext
from rlvr_exp.stages import benchmark

EXAMPLES = [
    {"input_ids": [1, 2, 3, 4, 5, 6], "labels": [-100, -100, -100, 4, 5, 6]},
    {"input_ids": [3, 1, 2], "labels": [-100, 1, 2]},
    {"input_ids": [5, 5, 1, 7], "labels": [-100, -100, 1, 7]},
]


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    shape = {
        "hidden_size": 8,
        "intermediate_size": 8,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 4,
    }
    return Qwen3ForCausalLM(Qwen3Config(vocab_size=9, num_hidden_layers=1, **shape)).float()


def plain_loss(model, weights):
    """Task by task, without padding, in the weights' own precision."""
    parts = []
    for one in EXAMPLES:
        ids, labels = torch.tensor([one["input_ids"]]), torch.tensor(one["labels"])
        scores = functional_call(model, weights, (ids,)).logits[0, :-1].log_softmax(-1)
        chosen = [scores[place, label] for place, label in enumerate(labels[1:]) if label >= 0]
        parts.append(-torch.stack(chosen).mean())
    return torch.stack(parts)


def test_the_loss_is_the_mean_over_an_answers_tokens_whatever_the_batches(network):
    weights = trained_weights(network)
    for batches in (1, 2, 3):
        loss = GoldLoss(network, EXAMPLES, batches)
        assert torch.allclose(loss(weights), plain_loss(network, weights), atol=1e-6)


def test_eigenvalues_are_those_of_the_dense_hessian(network):
    weights = trained_weights(network)
    wide = {name: value.double() for name, value in weights.items()}
    eager = copy.deepcopy(network)
    eager.set_attn_implementation("eager")  # The fused kernel has no second derivative.
    dense = torch.autograd.functional.hessian(
        lambda vector: plain_loss(eager, shaped(vector, wide)).mean(), flat(wide), vectorize=True
    )
    assert torch.allclose(dense, dense.T, atol=1e-5)  # Its norms compute in 32 bits.
    exact = torch.linalg.eigvalsh(dense).flip(0)[:3].tolist()
    product = GoldLoss(network, EXAMPLES, 2).hessian_product(weights)
    found = largest_eigenvalues(product, flat(weights), 3, seed=0)
    assert found == pytest.approx(exact, rel=2e-3) and exact[0] > 0
    vector = torch.randn(len(dense), generator=torch.Generator().manual_seed(1))
    assert torch.allclose(product(vector), (dense @ vector.double()).float(), atol=1e-4)


def test_directions_have_the_norms_of_the_weights_rows_and_leave_norms_alone(network):
    weights = trained_weights(network)
    first, same, other = (filter_normalised(weights, *key) for key in ((0, "a"), (0, "a"), (0, "b")))
    for name, value in weights.items():
        if value.dim() < 2:
            assert not first[name].any()
        else:
            assert torch.allclose(first[name].norm(dim=1), value.norm(dim=1), atol=1e-5)
            assert not torch.allclose(first[name], other[name])
            assert not torch.allclose(first[name], filter_normalised(weights, 1, "a")[name])
        assert torch.equal(first[name], same[name])
    assert torch.allclose(flat(moved(weights, [(0.5, first), (-0.5, first)])), flat(weights), atol=1e-6)


def test_a_barrier_is_what_rises_above_the_straight_line():
    at = places(5, 0.0, 1.0)
    assert at == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert barrier(at, [1.0, 1.0, 2.5, 1.0, 3.0]) == (0.5, 0.5)
    assert barrier(at, [3.0, 1.0, 1.0, 1.0, 1.0]) == (0.0, 0.0), "a valley is no barrier"


def test_statistics_of_gradients_are_those_of_the_definition():
    draw = torch.Generator().manual_seed(0)
    gradients = [
        {"model.layers.0.w": torch.randn(3, 4, generator=draw) + 1, "norm": torch.randn(4, generator=draw)}
        for _ in range(4)
    ]
    found = gradient_statistics(gradients)
    rows = torch.stack([one["model.layers.0.w"].flatten().double() for one in gradients])
    cosine = torch.nn.functional.cosine_similarity(rows[:, None], rows[None], dim=2)
    mine = found["layer_000"]
    assert mine["norm"] == pytest.approx(float(rows.mean(0).norm()))
    assert mine["cosine"] == pytest.approx(float((cosine.sum() - 4) / 12))
    signal = float(((rows @ rows.T).sum() - rows.square().sum()) / 12)
    assert mine["noise_scale"] == pytest.approx(float(rows.var(0).sum()) / signal)
    all_rows = torch.stack([flat(one).double() for one in gradients])
    assert found["all"]["norm"] == pytest.approx(float(all_rows.mean(0).norm()))


def test_gradients_of_equal_batches_add_up_to_that_of_the_loss(network):
    weights = trained_weights(network)
    leaves = {name: value.clone().requires_grad_() for name, value in weights.items()}
    exact = torch.autograd.grad(plain_loss(network, leaves).mean(), [*leaves.values()])
    parts = [flat(one) for one in GoldLoss(network, EXAMPLES, 3).gradients(weights)]
    assert torch.allclose(torch.stack(parts).mean(0), torch.cat([one.flatten() for one in exact]), atol=1e-6)


WORDS = ["+stage=benchmark", "benchmark=landscape", "+experiment=quick", "verifier.validate=0"]


@pytest.mark.slow
def test_a_run_leaves_the_same_for_the_same_seed_and_no_weight_changed(tmp_path, monkeypatch):
    changed = []
    plain = Landscape.measure

    def watched(self, policy, *more):
        before = {name: value.clone() for name, value in policy.model.state_dict().items()}
        found = plain(self, policy, *more)
        changed.extend(
            name for name, value in policy.model.state_dict().items() if not torch.equal(value, before[name])
        )
        changed.extend(name for name, value in policy.model.named_parameters() if value.grad is not None)
        return found

    def run(name, *words):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text("{}")
        config = compose([*WORDS, "benchmark.points=3", *words]).config
        benchmark.run(config, RunContext(tmp_path / name, lambda event: None))
        return json.loads((tmp_path / name / "benchmark.json").read_text())

    monkeypatch.setattr(Landscape, "measure", watched)
    here, there = (written(tmp_path / f"model{seed}", seed, hidden=32, vocabulary=1024) for seed in (0, 1))
    words = [f"model.path={here}", f"benchmark.other={there}"]
    found, same, other = run("one", *words), run("two", *words), run("three", f"model.path={there}", "benchmark.grid=0")
    assert changed == [] and found == same
    line = found["line"]
    assert line["at"] == [0.0, 0.5, 1.0] and line["losses"][0] == pytest.approx(found["losses"], abs=1e-5)
    assert line["losses"][2] == pytest.approx(other["losses"], abs=1e-4) and "line" not in other and "grid" not in other
    middle = found["slices"]["first"]
    assert middle["loss"][1] == pytest.approx(found["loss"], abs=1e-5) and middle["at"] == [-0.5, 0.0, 0.5]
    assert found["grid"]["loss"][1][1] == pytest.approx(found["loss"], abs=1e-5)
    assert found["grid"]["loss"][0][1] == pytest.approx(middle["loss"][0], abs=1e-5)
    plane = found["plane"]
    assert plane["along"] == [-0.5, 0.5, 1.5] and plane["at"] == [-0.5, 0.0, 0.5] and "plane" not in other
    assert plane["loss"][1][1] == pytest.approx(sum(line["losses"][1]) / len(line["losses"][1]), abs=1e-5)
    assert len({loss for row in plane["loss"] for loss in row}) == 9
    assert found["eigenvalues"][0] > 0 and {"all", "embeddings", "layer_001"} < set(found["gradients"])
    assert {"slices.svg", "line.png", "grid.png", "plane.png", "benchmark.md"} < {
        path.name for path in (tmp_path / "one").iterdir()
    }


def test_another_space_and_too_few_tasks_are_refused(network, tmp_path):
    fewer, frozen = copy.deepcopy(network), copy.deepcopy(network)
    fewer.model.layers.requires_grad_(False)
    with pytest.raises(InputError, match=r"benchmark.other: has other trained weights"):
        _difference(network, fewer, "DIR")
    with pytest.raises(InputError, match=r"benchmark.other: has the same weights"):
        _difference(network, frozen, "DIR")
    frozen.model.layers.requires_grad_(False)
    with torch.no_grad():
        frozen.model.layers[0].mlp.up_proj.weight += 1
    with pytest.raises(
        InputError, match=r"differs in weights that training does not change: model.layers.0.mlp.up_proj"
    ):
        _difference(fewer, frozen, "DIR")
    with pytest.raises(InputError, match=r"evaluation.tasks: fewer than batches"):
        compose([*WORDS, "benchmark.batches=9", "evaluation.tasks=8"])
    absent = compose([*WORDS, f"benchmark.other={tmp_path / 'none'}"]).config
    assert [one.problem.where for one in missing_artifacts(absent)] == ["benchmark.other"]


def test_frozen_weights_of_fewer_bits_are_computed_with_in_32(network):
    half = copy.deepcopy(network).bfloat16()
    half.model.layers.requires_grad_(False)
    wide = copy.deepcopy(half).float()
    wide.model.layers.requires_grad_(False)
    found, exact = (GoldLoss(one, EXAMPLES, 2)(trained_weights(one)) for one in (half, wide))
    assert torch.equal(found, exact)


def test_the_other_end_of_a_line_has_its_own_weights_whichever_way_the_policy_has_its():
    for model in (Model(from_scratch=True, scratch=Scratch(layers=2)), Model(path="A", adapter=Adapter(path="B"))):
        there = at_checkpoint(model, "DIR")
        assert (continued(there), base(there), there.from_scratch, there.scratch) == ("", "DIR", False, Scratch())
