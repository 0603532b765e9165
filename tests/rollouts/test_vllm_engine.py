"""What can be checked of vLLM's engine without vLLM: reading its completions, which adapters are handed over as they are,
the refusal without a GPU, and the probe on what it serves."""

from types import SimpleNamespace

import pytest
import torch
from peft import LoraConfig, get_peft_model
from rollout_models import tiny_model

from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.rollouts.engines.vllm import VLLMEngine, adapter_rank, sample_of
from rlvr_exp.rollouts.sampling_params import CompletionCheck, LogitFilters, SamplingParams
from rlvr_exp.rollouts.sync_probe import Sequences, SyncProbe

CONFIG = SimpleNamespace(model=SimpleNamespace(max_prompt_tokens=10, max_completion_tokens=10))


def output(ids, reason="stop", logprob=-0.5):
    logprobs = [{token: SimpleNamespace(logprob=logprob)} for token in ids]
    return SimpleNamespace(token_ids=list(ids), logprobs=logprobs, finish_reason=reason)


def sampling(check=None):
    return SamplingParams(LogitFilters(), 9, (0,), decode=lambda ids: " ".join(map(str, ids)), completion_check=check)


def test_a_completion_has_its_tokens_and_their_log_probabilities():
    one = sample_of(output([5, 6, 0]), sampling())
    assert one.ids == (5, 6, 0) and one.logprobs == (-0.5,) * 3 and not one.truncated and one.kept_token_ids is None
    assert sample_of(output([5, 6], "length"), sampling()).truncated


def test_it_ends_where_its_domain_calls_it_complete():
    check = CompletionCheck(lambda text: text == "5 7 6 7", (7,))
    one = sample_of(output([5, 7, 6, 7, 8, 8], "length"), sampling(check))
    assert one.ids == (5, 7, 6, 7) and len(one.logprobs) == 4 and not one.truncated


def test_a_log_probability_that_is_no_number_ends_the_run():
    with pytest.raises(GuardStop, match="no numbers"):
        sample_of(output([5], logprob=float("nan")), sampling())


@pytest.mark.parametrize(
    ("form", "rank"),
    [
        (dict(r=16), 16),
        (dict(r=7), 0),
        (dict(r=16, use_dora=True), 0),
        (dict(r=16, modules_to_save=["lm_head"]), 0),
        (dict(r=16, bias="all"), 0),
    ],
)
def test_an_adapter_is_handed_over_as_it_is_where_vllm_holds_such(form, rank):
    model = get_peft_model(tiny_model(), LoraConfig(target_modules=["q_proj"], **form))
    assert adapter_rank(model) == rank and adapter_rank(tiny_model()) == 0


@pytest.mark.skipif(torch.cuda.is_available(), reason="the refusal is of machines without a GPU")
def test_without_a_gpu_it_is_refused_before_anything_is_sampled():
    with pytest.raises(InputError, match="needs a CUDA device and the package vllm"):
        VLLMEngine(CONFIG).begin(print)


def test_the_probe_compares_what_the_engine_serves():
    model, sequences = tiny_model(), Sequences.of([[1, 2, 3, 4]])
    trained = torch.zeros(4, 12)
    for served, ends in ((trained.clone(), False), (trained + 0.5, True)):
        probe = SyncProbe(model, model, sequences, lambda: trained, 1.0, 0.0, lambda served=served: served)
        if ends:
            with pytest.raises(GuardStop, match="the engine that samples is not the policy that is trained"):
                probe.check(1)
        else:
            assert probe.check(1) == 0.0
