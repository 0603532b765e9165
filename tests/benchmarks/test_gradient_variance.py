"""The variance of gradients: its formulas against plain ones, and that baselines differ in their variance alone."""

import pytest
import torch

from rlvr_exp.algorithms.advantages import reinforce_advantages
from rlvr_exp.benchmarks.gradient_variance import gradient_noise, ratio
from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.core.errors import InputError
from rlvr_exp.records.context import RunContext
from rlvr_exp.stages.benchmark import _bench


def test_variance_and_signal_are_those_of_the_definition():
    gradients = torch.randn(6, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 1
    found = gradient_noise(gradients @ gradients.T)
    assert found.variance == pytest.approx(float(gradients.var(0).sum()))
    pairs = [float(gradients[i] @ gradients[j]) for i in range(6) for j in range(6) if i != j]
    assert found.signal == pytest.approx(sum(pairs) / len(pairs))
    assert found.scale == pytest.approx(found.variance / found.signal)


def test_a_ratio_of_twice_as_wide_gradients_is_four_with_its_interval():
    draw = torch.Generator().manual_seed(1)
    first, other = (torch.randn(12, 300, dtype=torch.float64, generator=draw) for _ in range(2))
    assert ratio(first @ first.T, 4 * first @ first.T) == pytest.approx((4, 4, 4))
    found = ratio(first @ first.T, 4 * other @ other.T)
    assert found.low < 4 < found.high and found.high - found.low < 2


def test_a_baseline_leaves_the_mean_gradient_and_narrows_it():
    """A softmax over four answers, the first of which is right: the gradient of log pi is known."""
    draw = torch.Generator().manual_seed(2)
    chances = torch.tensor([0.6, 0.2, 0.1, 0.1], dtype=torch.float64)
    answers = torch.multinomial(chances, 4000 * 16, replacement=True, generator=draw).view(4000, 4, 4)
    rewards = 1.0 + (answers == 0)  # All answers earn something, which teaches nothing.
    score = torch.eye(4, dtype=torch.float64)[answers] - chances
    exact = chances[0] * (torch.eye(4, dtype=torch.float64)[0] - chances)
    variances = {}
    for baseline in ("none", "group", "batch"):
        advantages = torch.stack([reinforce_advantages(batch, baseline) for batch in rewards])
        gradients = (advantages[..., None] * score).mean((1, 2))
        assert torch.allclose(gradients.mean(0), exact, atol=0.01)
        variances[baseline] = gradient_noise(gradients @ gradients.T).variance
    assert max(variances["group"], variances["batch"]) < 0.75 * variances["none"]


@pytest.mark.slow
def test_the_same_rollouts_have_other_gradients_with_each_baseline(tmp_path):
    """And no weight changes meanwhile."""
    words = ["algorithm=reinforce", "+experiment=quick", "verifier.validate=0"]
    config = compose(["+stage=benchmark", "benchmark=gradient_variance", *words]).config
    (tmp_path / "manifest.json").write_text("{}")
    with _bench(config, RunContext(tmp_path, lambda event: None)) as bench:
        first = {name: value.clone() for name, value in bench.policy.model.state_dict().items()}
        text, metrics = build(config.benchmark).measure(bench, lambda *_: None)
        assert all(torch.equal(value, first[name]) for name, value in bench.policy.model.state_dict().items())
    variances = [metrics[f"variance/{name}"] for name in ("none", "batch", "group")]
    assert len(set(variances)) == 3 and min(variances) > 0
    assert metrics["ratio/group"]["value"] == pytest.approx(variances[2] / variances[0])
    assert [line.split()[0] for line in text.splitlines()[2:]] == ["none", "batch", "group"]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["algorithm=grpo"], "remedy: algorithm=reinforce"),
        (["algorithm=rloo"], "kl_coef=0.03"),
        (
            ["algorithm=reinforce", "benchmark.baselines=[none]"],
            "benchmark.baselines: they are compared with the first",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_before_any_work(words, what):
    with pytest.raises(InputError, match=what):
        compose(["+stage=benchmark", "benchmark=gradient_variance", *words])
