"""Log-probabilities of the distribution that was sampled from: temperature and the tokens that were kept."""

import math

import torch

from rlvr_exp.algorithms.logprobs import token_logprobs


def test_temperature_divides_the_logits():
    logits, labels = torch.randn(5, 7, generator=torch.Generator().manual_seed(0)), torch.arange(5)
    got, _ = token_logprobs(logits, labels, 0.5)
    assert torch.allclose(got, (logits / 0.5).log_softmax(-1)[torch.arange(5), labels])


def test_probabilities_are_renormalised_over_the_kept_tokens():
    logits = torch.tensor([[0.0, 1.0, 2.0, 3.0]] * 2)
    kept_token_ids = torch.tensor([[3, 1, -1], [-1, -1, -1]])
    got, entropy = token_logprobs(logits, torch.tensor([1, 1]), 1.0, kept_token_ids, entropy=True)
    kept, whole = math.log(math.exp(1) + math.exp(3)), math.log(sum(math.exp(value) for value in range(4)))
    assert torch.allclose(got, torch.tensor([1 - kept, 1 - whole]))
    p = math.exp(1 - kept)
    assert math.isclose(entropy[0], -(p * math.log(p) + (1 - p) * math.log(1 - p)), rel_tol=1e-5)


def test_gradients_are_finite_where_tokens_were_left_out():
    logits = torch.randn(2, 6, requires_grad=True)
    got, entropy = token_logprobs(logits, torch.tensor([1, 2]), 0.8, torch.tensor([[1, 2], [2, -1]]), entropy=True)
    (got.sum() + entropy.sum()).backward()
    assert logits.grad.isfinite().all() and (logits.grad[0, [0, 3, 4, 5]] == 0).all()
