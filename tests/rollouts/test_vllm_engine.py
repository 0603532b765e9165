"""The parts of vLLM's engine that need no vLLM: reading its completions, the weights that it is given, and the probe."""

from types import SimpleNamespace

import pytest
import torch
from peft import LoraConfig, get_peft_model
from rollout_models import tiny_model

from rlvr_exp.core.errors import GuardStop
from rlvr_exp.rollouts.engines.vllm import Growing
from rlvr_exp.rollouts.engines.vllm_weights import adapter_rank, named_weights
from rlvr_exp.rollouts.sampling_params import CompletionCheck, LogitFilters, SamplingParams
from rlvr_exp.rollouts.sync_probe import Sequences, SyncProbe


def output(ids, logprob=-0.5):
    """vLLM's new tokens of a completion."""
    return SimpleNamespace(token_ids=list(ids), logprobs=[{token: SimpleNamespace(logprob=logprob)} for token in ids])


def growing(**given):
    return Growing(0, 0, SamplingParams(LogitFilters(), 9, (0,), decode=lambda ids: " ".join(map(str, ids)), **given))


def test_a_completion_has_its_tokens_and_their_log_probabilities():
    one = growing()
    assert not one.add(output([5, 6])) and one.sampled().truncated
    assert one.add(output([0], -0.25))
    found = one.sampled()
    assert found.ids == (5, 6, 0) and found.logprobs == (-0.5, -0.5, -0.25) and not found.truncated


@pytest.mark.parametrize(
    "given", [dict(stop=("7 8",)), dict(completion_check=CompletionCheck(lambda text: text == "5 7 6 7 8", (8,)))]
)
def test_it_ends_with_a_stop_string_or_its_domain(given):
    one = growing(**given)
    assert not one.add(output([5, 7])) and one.add(output([6, 7, 8, 9]))
    assert one.sampled().ids == (5, 7, 6, 7, 8) and not one.sampled().truncated


def test_a_log_probability_that_is_no_number_ends_the_run():
    with pytest.raises(GuardStop, match="no numbers"):
        growing().add(output([5], float("nan")))


@pytest.mark.parametrize(
    ("form", "rank"),
    [
        (dict(r=16), 16),
        (dict(r=7), 7),
        (dict(r=16, use_dora=True), 0),
        (dict(r=16, modules_to_save=["lm_head"]), 0),
        (dict(r=16, bias="all"), 0),
    ],
)
def test_an_adapter_that_vllm_holds_stays_beside_its_base(form, rank):
    model = get_peft_model(tiny_model(), LoraConfig(target_modules=["q_proj"], **form))
    assert adapter_rank(model) == rank and adapter_rank(tiny_model()) == 0


@pytest.mark.parametrize("form", [dict(), dict(use_dora=True), dict(modules_to_save=["lm_head"])])
@torch.no_grad()
def test_other_adapters_are_merged_into_copies(form):
    model = get_peft_model(tiny_model(), LoraConfig(r=4, target_modules=["q_proj", "down_proj"], **form)).eval()
    for name, value in model.named_parameters():
        if ".lora_B" in name or "modules_to_save" in name:
            value.normal_(std=0.3)
    before = {name: value.clone() for name, value in model.named_parameters()}
    plain, ids = tiny_model(), torch.arange(9)[None]
    missing, unexpected = plain.load_state_dict(dict(named_weights(model)), strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"} - set(dict(named_weights(model)))
    torch.testing.assert_close(plain(ids).logits, model(ids).logits)
    assert all(torch.equal(value, before[name]) for name, value in model.named_parameters())


def test_the_probe_names_the_type_of_the_weights_that_sample():
    model, sequences = tiny_model(), Sequences.of([[1, 2, 3, 4]])
    trained = torch.zeros(4, 12)

    def probe(gap, dtype=None):
        return SyncProbe(model, model, sequences, lambda: trained, 1.0, 0.0, lambda: trained + gap, dtype)

    assert probe(0.0).check(1) == 0.0 and probe(0.05, torch.bfloat16).check(1) == pytest.approx(0.05)
    with pytest.raises(GuardStop, match="the engine that samples is not the policy that is trained"):
        probe(0.05).check(1)
