"""Models that do not support packed rows are detected by a trial, and train correctly with one completion per row."""

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM
from trl.trainer.utils import add_fused_lm_head

from rlvr_exp.algorithms import logprobs, packed_layers
from rlvr_exp.algorithms.logprobs import score
from rlvr_exp.algorithms.packed_layers import Choice, choose, for_all
from rlvr_exp.algorithms.packing import row_by_row

LONGEST = 40
COMMON = {
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
DENSE = {"intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
MODELS = {
    "llama": (DENSE, ""),
    "gpt2": ({"n_head": 4}, ""),
    "gemma3_text": ({**DENSE, "sliding_window": LONGEST}, ""),
    "mistral": ({**DENSE, "sliding_window": 16}, "reaches back 16 tokens"),
    "gemma2": (DENSE, "softcap"),
    "bloom": ({"n_head": 4}, "not exchangeable"),  # ALiBi
    "mamba": ({"state_size": 4}, "not exchangeable"),
}


def made(name: str):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(name, **COMMON, **MODELS[name][0])).eval()
    for value in model.parameters():
        if value.ndim >= 2:
            torch.nn.init.normal_(value, std=0.2)
    add_fused_lm_head(model, outputs=("log_probs", "entropy"))
    return model


@pytest.mark.parametrize("name", MODELS)
def test_what_cannot_be_packed_is_found(name):
    why = MODELS[name][1]
    choice = choose(made(name), LONGEST, torch.device("cpu"), torch.float32)
    assert choice.implementation == (None if why else "sdpa_packed")
    assert why in " ".join(choice.reasons)


@pytest.mark.parametrize("name", ["bloom", "mamba", "gemma2"])
def test_one_completion_per_row_scores_as_the_model_alone(name):
    model, prompts, answers = made(name), [[3, 4, 5, 6, 7, 8], [9, 10]], [[11, 12, 13], [14, 15, 16, 17, 18]]
    rows = row_by_row(prompts, answers, 5)
    with torch.no_grad():
        got = rows.placed(score(model, rows, 1.0).logprobs)
        for number, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
            alone = model(input_ids=torch.tensor([prompt + answer])).logits[0].log_softmax(-1)
            wanted = alone[len(prompt) - 1 : -1].gather(-1, torch.tensor(answer)[:, None])[:, 0]
            assert torch.allclose(got[number, : len(answer)], wanted, atol=1e-5)


def test_rounding_of_many_layers_is_no_difference(monkeypatch):
    model = made("llama").to(torch.bfloat16)
    own = packed_layers._scores

    def rounded(model, rows, *others, **more):
        """Packed rows are off by 0.05; another way of attention, by 0.03."""
        off = 0.05 if rows.layout else 0.03 if model.config._attn_implementation == "eager" else 0.0
        return own(model, rows, *others, **more) + off

    monkeypatch.setattr(packed_layers, "_scores", rounded)
    assert choose(model, LONGEST, torch.device("cpu"), torch.bfloat16).implementation == "sdpa_packed"
    monkeypatch.setattr(packed_layers, "ROUNDING", 1.0)
    assert "differ by" in choose(model, LONGEST, torch.device("cpu"), torch.bfloat16).reasons[0]


def test_layers_and_heads_of_our_own_are_used_only_where_a_trial_agrees(monkeypatch):
    def chosen(name="llama"):
        return choose(made(name), LONGEST, torch.device("cpu"), torch.float32)

    assert chosen() == Choice("sdpa_packed", (), fused=True) and not chosen("gemma2").fused
    own = logprobs._exponentiate
    monkeypatch.setattr(logprobs, "_exponentiate", lambda part, *more: own(part.mul_(1.1), *more))
    assert not chosen().fused and "log-probabilities differ by" in chosen().reasons[0]
    monkeypatch.setattr(packed_layers, "differs", lambda model: "values differ")
    assert chosen() == Choice("sdpa_packed", ("layers and head are computed by the library: values differ",))


def test_memory_that_runs_out_is_no_reason_to_try_another_way(monkeypatch):
    def full(*_, **__):
        raise torch.OutOfMemoryError("full")

    monkeypatch.setattr(packed_layers, "score", full)
    with pytest.raises(torch.OutOfMemoryError):
        choose(made("llama"), LONGEST, torch.device("cpu"), torch.float32)


def test_all_processes_take_what_each_of_them_can():
    flex, sdpa, none = Choice("flex_attention", ()), Choice("sdpa_packed", ("no compiler",)), Choice(None, ("a", "b"))
    alone = Choice("sdpa_packed", (), fused=True)
    assert for_all([alone, alone]) == alone and for_all([alone, sdpa]) == sdpa
    assert for_all([flex, flex]) == flex and for_all([flex, sdpa]) == sdpa and for_all([sdpa, none, flex]) == none


def test_an_attention_without_a_backward_pass_is_not_chosen(monkeypatch):
    """On a CPU FlexAttention has a forward pass only."""
    monkeypatch.setattr(packed_layers, "_ways", lambda config, device: packed_layers.WAYS)
    choice = choose(made("llama"), LONGEST, torch.device("cpu"), torch.float32)
    assert choice.implementation == "sdpa_packed" and "does not support backward on CPU" in choice.reasons[0]


def test_an_implementation_that_fails_on_another_process_is_not_tried_on_shared_weights(monkeypatch):
    tried, said = [], iter(["no compiler", ""])
    monkeypatch.setattr(packed_layers, "_ways", lambda config, device: packed_layers.WAYS)
    monkeypatch.setattr(packed_layers, "_kernel_fault", lambda *_: "")
    monkeypatch.setattr(packed_layers, "_difference", lambda model, way, *_, **__: tried.append(way) or "")
    choice = choose(made("llama"), LONGEST, torch.device("cpu"), torch.bfloat16, lambda reason: next(said))
    assert tried == ["sdpa_packed"] and choice == Choice("sdpa_packed", ("flex_attention: no compiler",))
