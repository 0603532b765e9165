"""The real vLLM against the model that it samples for: the embedded policy in float32."""

from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model

from rlvr_exp.config.compose import compose
from rlvr_exp.config.model import Model
from rlvr_exp.config.roles import longest_sequence
from rlvr_exp.core import machine
from rlvr_exp.memory import vllm as planned
from rlvr_exp.memory.reading import workload_of
from rlvr_exp.models.policy import load_policy
from rlvr_exp.rollouts.engines.base import RolloutRequest
from rlvr_exp.rollouts.engines.local import LocalEngine
from rlvr_exp.rollouts.engines.vllm_weights import cache_on_cpu
from rlvr_exp.rollouts.sampler import score
from rlvr_exp.rollouts.sampling_params import LogitFilters, SamplingParams
from rlvr_exp.rollouts.sync_probe import Sequences

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("vllm") is None, reason="the package vllm is not installed"),
]
PROMPT = tuple(range(5, 45))
SEQUENCES = Sequences.of([PROMPT, tuple(range(60, 90))])


def policy_of(form=None):
    policy = load_policy(Model(dtype="float32", chat_template="never"), 0)
    if form is None:
        return policy
    model = get_peft_model(policy.model, LoraConfig(target_modules=["q_proj", "v_proj", "down_proj"], **form))
    return SimpleNamespace(model=model, eos_ids=policy.eos_ids, decode=policy.decode, tokenizer=policy.tokenizer)


def engine_of(**given):
    from rlvr_exp.rollouts.engines.vllm import VLLMEngine

    engine = VLLMEngine(compose(["+stage=grpo"]).config, **{"memory_share": 0.05, "dtype": "auto", **given})
    assert engine.begin(print)["version"].startswith("0.")
    return engine


@pytest.fixture(scope="module")
def sampled():
    """A policy with the engine that has sampled from it."""
    return policy_of(), engine_of()


def drawn(engine, policy, keys, prompt=PROMPT, tokens=24, **given):
    sampling = SamplingParams(LogitFilters(**given.pop("filters", {})), tokens, policy.eos_ids, **given)
    requests = [RolloutRequest(SimpleNamespace(id="t"), prompt, tuple(keys))]
    found = sorted(engine.draw(policy, None, requests, sampling), key=lambda one: one.sample)
    assert [one.sample for one in found] == list(range(len(keys)))
    return [one.sampled for one in found]


def keys(count):
    return [(0, "rollout", place) for place in range(count)]


@torch.no_grad()
def gap(policy, sample, temperature=1.0):
    """The largest difference to the model's own log-probabilities."""
    logits = policy.model(torch.tensor([[*PROMPT, *sample.ids]])).logits[0, len(PROMPT) - 1 : -1].float()
    own = (logits / temperature).log_softmax(-1)
    return max(abs(own[place, token].item() - sample.logprobs[place]) for place, token in enumerate(sample.ids))


@torch.no_grad()
def moved(model, scale=0.05):
    """Change all trained weights."""
    generator = torch.Generator().manual_seed(1)
    for value in model.parameters():
        if value.requires_grad:
            value.add_(scale * torch.randn(value.shape, generator=generator))


def own_scores(policy):
    return score(policy.model, SEQUENCES.prompts, SEQUENCES.completions, 0.7)


def served(engine, policy):
    return engine.scored(policy, SEQUENCES.prompts, SEQUENCES.completions, 0.7)


def test_samples_have_the_models_log_probabilities_and_their_own_seeds(sampled):
    policy, engine = sampled
    found = drawn(engine, policy, keys(6), filters=dict(temperature=0.7))
    assert max(gap(policy, one, 0.7) for one in found) < 1e-4
    assert len({one.ids for one in found}) > 1
    (again,) = drawn(engine, policy, keys(6)[2:3], filters=dict(temperature=0.7))
    assert again.ids == found[2].ids and again.logprobs == pytest.approx(found[2].logprobs, abs=1e-4)
    ended = [one for one in found if not one.truncated]
    assert all(one.ids[-1] in policy.eos_ids for one in ended)
    assert all(len(one.ids) == 24 for one in found if one.truncated)


def test_greedy_completions_are_those_of_our_sampler(sampled):
    policy, engine = sampled
    (greedy, _), (ours,) = drawn(engine, policy, [None, *keys(1)]), drawn(LocalEngine(), policy, [None])
    assert greedy.ids == ours.ids and greedy.logprobs == pytest.approx(ours.logprobs, abs=1e-6)


def test_stop_strings_end_as_in_our_sampler(sampled):
    policy, engine = sampled
    text = policy.decode(drawn(LocalEngine(), policy, [None])[0].ids)
    stop = dict(stop=(text[6:9],), decode=policy.decode)
    (one,), (ours,) = drawn(engine, policy, [None], **stop), drawn(LocalEngine(), policy, [None], **stop)
    assert one.ids == ours.ids and not one.truncated and len(one.ids) < 24


def test_new_weights_arrive_with_the_next_rollout(sampled):
    policy, engine = sampled
    before = served(engine, policy)
    torch.testing.assert_close(before, own_scores(policy), atol=1e-4, rtol=0)
    moved(policy.model)
    after = served(engine, policy)
    torch.testing.assert_close(after, own_scores(policy), atol=1e-4, rtol=0)
    assert (after - before).abs().mean() > 0.1


def test_a_full_cache_changes_no_completion():
    policy = policy_of()
    wide, narrow = engine_of(), engine_of(memory_share=8e6 / machine.total())  # Room for 3,000 tokens of 10,000.
    given = dict(prompt=PROMPT * 3, tokens=40)
    expected, found = (drawn(engine, policy, keys(64), **given) for engine in (wide, narrow))
    assert [one.ids for one in found] == [one.ids for one in expected]


@pytest.mark.parametrize("share", [0.5, 0.001])
def test_the_plan_counts_the_cache_that_is_reserved(share):
    config = compose(["+stage=grpo", "parallel.device=cpu", "engine=vllm", f"engine.memory_share={share}"]).config
    reserved = cache_on_cpu(policy_of().model, torch.float32, share, longest_sequence(config))
    assert reserved == pytest.approx(planned.cache_on_cpu(workload_of(config)), abs=1)


@pytest.mark.parametrize("form", [dict(r=7), dict(r=16, use_rslora=True), dict(r=4, use_dora=True)])
def test_adapters_arrive_beside_their_base_or_merged(form):
    policy, engine = policy_of(form), engine_of()
    base = served(engine, policy)
    for _ in range(2):
        moved(policy.model)
        torch.testing.assert_close(served(engine, policy), own_scores(policy), atol=1e-4, rtol=0)
    assert (served(engine, policy) - base).abs().mean() > 0.01
    assert max(gap(policy, one) for one in drawn(engine, policy, keys(3))) < 1e-4


def test_roles_on_one_base_sample_with_their_own_adapters():
    policy, engine = policy_of(dict(r=8)), engine_of()
    model: PeftModel = policy.model
    model.add_adapter("other", model.peft_config["default"])
    for name in ("default", "other"):
        model.set_adapter(name)
        moved(model, 0.05 if name == "other" else 0.02)
        torch.testing.assert_close(served(engine, policy), own_scores(policy), atol=1e-4, rtol=0)
    assert len(engine._models) == 1


def test_bfloat16_samples_near_a_float32_policy():
    policy, engine = policy_of(), engine_of(dtype="bfloat16")
    difference = (served(engine, policy) - own_scores(policy)).abs().mean()
    assert 1e-4 < difference < 0.1 and engine.weights_dtype(policy) == torch.bfloat16


def test_two_roles_with_weights_of_their_own():
    one, other, engine = policy_of(), policy_of(), engine_of()
    moved(other.model)
    for policy in (one, other, one):
        torch.testing.assert_close(served(engine, policy), own_scores(policy), atol=1e-4, rtol=0)
    assert len(engine._models) == 1


def test_building_it_leaves_threads_and_random_numbers_alone():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    policy, engine = policy_of(), engine_of()
    torch.manual_seed(3)
    served(engine, policy)
    assert torch.equal(torch.rand(2), expected)
    torch.set_num_threads(1)
    assert torch.get_num_threads() == 1 and "vllm" not in str(torch.set_num_threads.__module__)
