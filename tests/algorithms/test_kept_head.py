"""Log-probabilities over the tokens that top-k, top-p or min-p kept are the same, computed at once or a few tokens at a time."""

import pytest
import torch
from test_packing import VOCABULARY, batch, tiny
from transformers import Gemma2Config, Gemma2ForCausalLM
from trl.trainer.utils import add_fused_lm_head

from rlvr_exp.algorithms import logprobs
from rlvr_exp.algorithms.logprobs import score
from rlvr_exp.algorithms.packing import packed, row_by_row

TEMPERATURE = 0.7


def capped() -> Gemma2ForCausalLM:
    """Its logits pass a tanh after the head; the head is the embedding."""
    torch.manual_seed(0)
    shape = dict(vocab_size=VOCABULARY, hidden_size=16, intermediate_size=32, num_hidden_layers=1, head_dim=8)
    heads = dict(num_attention_heads=2, num_key_value_heads=1, final_logit_softcapping=0.5)
    return Gemma2ForCausalLM(Gemma2Config(**shape, **heads, pad_token_id=0))


def biased() -> torch.nn.Module:
    model = tiny()
    model.lm_head.bias = torch.nn.Parameter(torch.linspace(-1, 1, VOCABULARY))
    return model


@pytest.mark.parametrize(("make", "whole_rows"), [(tiny, False), (biased, False), (tiny, True), (capped, True)])
def test_values_and_gradients_are_those_of_all_logits(make, whole_rows, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts, answers, owners, width = batch([(4, [2, 3]), (6, [1, 5])])
    rows = row_by_row(prompts, answers, width) if whole_rows else packed(prompts, answers, owners, width)
    drawing = torch.Generator().manual_seed(2)
    others = torch.randint(-1, VOCABULARY, (len(rows.labels), 5), generator=drawing)
    kept = torch.cat([rows.labels[:, None], others], 1)
    kept[::3] = -1
    found = []
    for held, part in ((2**26, 1), (0, 3 * VOCABULARY), (0, 1)):
        monkeypatch.setattr(logprobs, "HELD", held)
        monkeypatch.setattr(logprobs, "KEPT_HELD", part)
        model = make()
        add_fused_lm_head(model, TEMPERATURE, outputs=("log_probs", "entropy", "is_top1"))
        scores = score(model, rows, TEMPERATURE, kept, entropy=True, top=True, fused=False)
        (scores.logprobs.square().sum() + scores.entropies.sum()).backward()
        gradient = torch.cat([value.grad.flatten() for value in model.parameters() if value.grad is not None])
        found.append((scores.logprobs.detach(), scores.entropies.detach(), scores.top.float(), gradient))
    for other in found[1:]:
        for one, wanted in zip(other, found[0], strict=True):
            torch.testing.assert_close(one, wanted, rtol=1e-4, atol=1e-6)
    assert found[0][3].abs().max() > 1e-3


def test_autocast_computes_the_products_in_its_type(monkeypatch: pytest.MonkeyPatch) -> None:
    prompts, answers, _, width = batch([(4, [2, 3]), (6, [1, 5])])
    rows, found = row_by_row(prompts, answers, width), []
    kept = rows.labels[:, None].repeat(1, 2)
    kept[:, 1] = (kept[:, 1] + 1) % VOCABULARY
    for held in (2**26, 0):
        monkeypatch.setattr(logprobs, "HELD", held)
        model = tiny()
        with torch.autocast("cpu", torch.bfloat16):
            scores = score(model, rows, 1.0, kept, fused=False)
        scores.logprobs.sum().backward()
        found.append((scores.logprobs.detach(), model.lm_head.weight.grad))
    for one, wanted in zip(*found, strict=True):
        torch.testing.assert_close(one, wanted, rtol=2e-2, atol=2e-2)
