"""The gradient of samples that another policy drew, in expectation: every completion of a small tree, weighted by the probability
that the sampler draws it."""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from tiny_step import experience, flat, policy, trainer
from updating import updated

from rlvr_exp.algorithms.loss import SamplingCorrection, correction_of
from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.config import algorithm as options

LENGTH, WORDS = 2, 20
TREE = torch.tensor(list(product(range(WORDS), repeat=LENGTH)))
PROMPT_IDS = torch.tensor([[5, 9, 7, 3]])
REWARDS = torch.rand(len(TREE), generator=torch.Generator().manual_seed(3))
NO_CAP = 1e9


def logprobs(model: torch.nn.Module) -> torch.Tensor:
    """(completions, LENGTH) of the whole tree."""
    ids = torch.cat([PROMPT_IDS.expand(len(TREE), -1), TREE], dim=1)
    scores = model(input_ids=ids).logits[:, -LENGTH - 1 : -1].log_softmax(-1)
    return scores.gather(-1, TREE.unsqueeze(-1)).squeeze(-1)


@torch.no_grad()
def sampler_logprobs(noise: float) -> torch.Tensor:
    """By an engine whose weights are off by so much."""
    torch.manual_seed(1)
    model = policy().model
    for value in model.parameters():
        value += noise * torch.randn_like(value)
    return logprobs(model)


def batch(drawn: torch.Tensor) -> TrainingBatch:
    """Each completion with the weight that it has among the samples of that engine."""
    rows = len(TREE)
    return TrainingBatch(
        prompt_ids=PROMPT_IDS.expand(rows, -1).clone(),
        prompt_mask=torch.ones(rows, PROMPT_IDS.shape[1], dtype=torch.long),
        completion_ids=TREE,
        completion_mask=torch.ones_like(TREE),
        sampling_logprobs=drawn,
        advantages=REWARDS[:, None].expand(-1, LENGTH).clone(),
        weights=drawn.sum(1, keepdim=True).exp().expand(-1, LENGTH).clone(),
        sizes=(rows,),
        group_ids=torch.zeros(rows, dtype=torch.long),
    )


def gradient(folder, drawn: torch.Tensor, mode: str, cap: float = NO_CAP, **more) -> tuple[torch.Tensor, dict]:
    """The gradient of the trainer's step, and its metrics."""
    made = trainer(folder, 4000, **more)
    made.correction = SamplingCorrection(mode, cap)
    start = flat(made.model)
    (row,) = updated(made, lambda step: batch(drawn))
    return start - flat(made.model), row


def wanted(weights: torch.Tensor) -> torch.Tensor:
    """The gradient of -sum(weight * reward * log-probability), the weights those of tokens."""
    model = policy().model
    (-(weights * REWARDS[:, None] * logprobs(model)).sum()).backward()
    return torch.cat([value.grad.flatten() for value in model.parameters()])


def close(found: torch.Tensor, to: torch.Tensor) -> bool:
    return bool((found - to).norm() <= 2e-4 * to.norm())


DRAWN = sampler_logprobs(0.05)
with torch.no_grad():
    OWN = logprobs(policy().model)
TRUE = wanted(OWN.sum(1, keepdim=True).exp())
"""The gradient of the expected reward."""


def test_without_a_correction_the_gradient_is_that_of_the_samplers_policy(tmp_path):
    found, metrics = gradient(tmp_path, DRAWN, "none")
    assert close(found, wanted(DRAWN.sum(1, keepdim=True).exp()))
    assert (found - TRUE).norm() > 0.1 * TRUE.norm()
    assert not any(name.startswith("sampling/") for name in metrics)


def test_weights_of_completions_make_the_gradient_exact(tmp_path):
    found, metrics = gradient(tmp_path, DRAWN, "sequence_mask")
    assert close(found, TRUE)
    assert metrics["sampling/over_cap"] == 0 and 0 < metrics["sampling/ess"] < 1


def test_masked_completions_are_the_only_error(tmp_path):
    ratios = (OWN - DRAWN).sum(1, keepdim=True).exp()
    cap = float(ratios.quantile(0.9))
    found, metrics = gradient(tmp_path, DRAWN, "sequence_mask", cap)
    assert close(found, wanted(OWN.sum(1, keepdim=True).exp() * (ratios <= cap)))
    assert metrics["sampling/over_cap"] == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("share", [0.9, 1.0])
def test_weights_of_tokens_leave_the_distribution_of_prefixes(tmp_path, share):
    ratios = (OWN - DRAWN).exp()
    cap = float(ratios.quantile(share))
    found, metrics = gradient(tmp_path, DRAWN, "token_truncate", cap)
    assert close(found, wanted(DRAWN.sum(1, keepdim=True).exp() * ratios.clamp(max=cap)))
    assert metrics["sampling/over_cap"] == pytest.approx(1 - share, abs=0.01)
    if share == 1.0:
        uncorrected = wanted(DRAWN.sum(1, keepdim=True).exp())
        assert (found - TRUE).norm() < (uncorrected - TRUE).norm()


def test_the_error_falls_with_the_distance_of_the_engine(tmp_path):
    far, near = ((gradient(tmp_path, sampler_logprobs(noise), "none")[0] - TRUE).norm() for noise in (0.05, 0.005))
    assert near < far / 5
    corrected = gradient(tmp_path, sampler_logprobs(0.005), "sequence_mask", 3.0)[0]
    assert (corrected - TRUE).norm() < near / 20


def test_the_metrics_are_those_of_the_gaps(tmp_path):
    metrics = gradient(tmp_path, DRAWN, "sequence_mask")[1]
    gaps, weights = (OWN - DRAWN).abs(), (OWN - DRAWN).sum(1).exp()
    assert metrics["sampling/gap"] == pytest.approx(float(gaps.mean()), rel=1e-3)
    assert metrics["sampling/gap_max"] == pytest.approx(float(gaps.max()), rel=1e-3)
    ess = float(weights.sum().square() / weights.square().sum()) / len(TREE)
    assert metrics["sampling/ess"] == pytest.approx(ess, rel=1e-3)


def test_an_exact_engine_has_weights_of_one_in_any_split(tmp_path):
    given = experience()
    plain, weighted = trainer(tmp_path, 10), trainer(tmp_path, 10)
    start = flat(plain.model)
    updated(plain, lambda step: given)
    (owners,) = [[row // 2 for row in range(len(given.prompt_ids))]]
    prompts = [
        [i for i, s in zip(ids, seen, strict=True) if s]
        for ids, seen in zip(given.prompt_ids.tolist(), given.prompt_mask.tolist(), strict=True)
    ]
    drawn = trainer(tmp_path, 10).scored(prompts, given.completion_ids.tolist(), owners)
    weighted.correction = SamplingCorrection("sequence_mask", 3.0)
    updated(weighted, lambda step: replace(given, sampling_logprobs=drawn))
    assert torch.allclose(flat(plain.model) - start, flat(weighted.model) - start, atol=1e-6)


def test_samples_of_an_earlier_policy_are_compared_by_the_clipped_ratio(tmp_path):
    made = trainer(tmp_path, 4000)
    made.correction = SamplingCorrection("sequence_mask", 3.0)
    (row,) = updated(made, lambda step: replace(batch(DRAWN), off_policy=True))
    assert not any(name.startswith("sampling/") for name in row) and "kl/old" in row


def test_the_second_update_on_a_batch_keeps_the_weights_of_the_first(tmp_path):
    made = trainer(tmp_path, 4000, num_iterations=2, max_steps=2)
    made.correction = SamplingCorrection("sequence_mask", NO_CAP)
    updated(made, lambda step: batch(DRAWN))
    (inputs,) = made._updates[0]
    weights = (OWN - DRAWN).sum(1, keepdim=True).exp()
    assert torch.allclose(inputs["importance_sampling_ratio"], weights, rtol=1e-3)
    assert torch.allclose(inputs["old_per_token_logps"], OWN, atol=1e-4)


@pytest.mark.parametrize(
    ("given", "exact", "mode"),
    [("auto", True, "none"), ("auto", False, "sequence_mask"), ("token_truncate", True, "token_truncate")],
)
def test_an_exact_engine_needs_no_correction(given, exact, mode):
    assert correction_of(options.GRPO(correction=given), exact).mode == mode


def test_a_cap_without_a_correction_is_refused():
    (found,) = options.GRPO(correction="none", correction_cap=2.0).problems()
    assert found.where == "correction_cap"
    assert not options.GRPO(correction="sequence_mask", correction_cap=2.0).problems()
    assert math.isclose(options.GRPO().correction_cap, 3.0)
