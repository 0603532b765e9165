"""Decoding over the shared prefixes equals plain forward passes, however completions part, leave and are fed; and a token's
bits do not depend on what is computed with it."""

import weakref
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from peft import LoraConfig, get_peft_model
from rollout_models import VOCABULARY, exact_model, is_exact, plain_logits, tiny_model
from thinning import tries
from transformers import (
    GemmaConfig,
    GemmaForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3ForCausalLM,
)

from rlvr_exp.models import onednn_linear
from rlvr_exp.models.onednn_linear import padded_rows
from rlvr_exp.rollouts import shared_prefix_cache
from rlvr_exp.rollouts.plain_forward import is_plain
from rlvr_exp.rollouts.sampler import sample_groups
from rlvr_exp.rollouts.sampling_params import LogitFilters, SamplingParams
from rlvr_exp.rollouts.shared_prefix_decoder import RowDecoder, SharedPrefixDecoder, fused_norms


class LibraryDecoder(SharedPrefixDecoder):
    """With the library's forward pass, as for architectures that are not plain."""

    def __init__(self, *given):
        super().__init__(*given)
        self._plain = None


SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,
}


def other_models() -> Iterator[torch.nn.Module]:
    torch.manual_seed(1)
    yield LlamaForCausalLM(LlamaConfig(**SHAPE, attention_bias=True, mlp_bias=True))
    yield LlamaForCausalLM(LlamaConfig(**SHAPE | {"num_key_value_heads": 3, "tie_word_embeddings": True}))
    yield Qwen2ForCausalLM(Qwen2Config(**SHAPE))
    yield MistralForCausalLM(MistralConfig(**SHAPE, sliding_window=300, head_dim=16))
    for rope in ({"rope_type": "linear", "factor": 2.0}, {"rope_type": "yarn", "factor": 2.0}):
        yield Qwen2ForCausalLM(Qwen2Config(**SHAPE, rope_parameters={"rope_theta": 1e4, **rope}))


@pytest.fixture(scope="module")
def model():
    return tiny_model()


@st.composite
def batches(draw):
    """Prompts, completions of each, some of which begin alike, and in which passes each is fed."""
    lengths = draw(st.lists(st.integers(1, 40), min_size=1, max_size=4))
    sizes = [draw(st.integers(1, 4)) for _ in lengths]
    takes = [draw(st.integers(1, 9)) for size in sizes for _ in range(size)]
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    prompts = [torch.randint(2, VOCABULARY, (n,), generator=generator).tolist() for n in lengths]
    alike = torch.randint(2, VOCABULARY, (9,), generator=generator).tolist()
    parts = [draw(st.integers(0, 9)) for _ in takes]
    own = [torch.randint(2, VOCABULARY, (9,), generator=generator).tolist() for _ in takes]
    tokens = [(alike[:part] + tail)[:n] for part, tail, n in zip(parts, own, takes, strict=True)]
    return prompts, np.repeat(np.arange(len(sizes)), sizes), tokens, draw(st.integers(1, 3))


def fed(decoder, owner, tokens, most) -> list[torch.Tensor]:
    """Logits before each token of each completion, fed in passes of up to `most` tokens."""
    found = [[row] for row in decoder.prefill().of_tokens()]
    done = np.zeros(len(tokens), dtype=np.int64)
    while (left := np.array([len(ids) for ids in tokens]) - 1 - done).any():
        live = np.flatnonzero(left)
        counts = np.minimum(left[live], 1 + (live + done[live]) % most)
        given = np.full((len(live), counts.max()), -1)
        for row, i in enumerate(live):
            given[row, : counts[row]] = tokens[i][done[i] : done[i] + counts[row]]
        logits = decoder.step(live, given, counts).of_tokens()
        for i, own in zip(live, logits.split(counts.tolist()), strict=True):
            found[i].extend(own)
        done[live] += counts
    return [torch.stack(own) for own in found]


@pytest.mark.parametrize("kind", [SharedPrefixDecoder, LibraryDecoder, RowDecoder])
@pytest.mark.parametrize("ahead", [16, 32])
@given(batches())
@settings(max_examples=tries(15), deadline=None)
def test_cached_steps_equal_plain_passes(model, kind, ahead, batch):
    prompts, owner, tokens, most = batch
    with pytest.MonkeyPatch.context() as patch, torch.inference_mode():
        patch.setattr(shared_prefix_cache, "AHEAD", ahead)
        patch.setattr(shared_prefix_cache, "RUN", 16)
        for module in (shared_prefix_cache,):  # widths that these small cases go beyond
            patch.setattr(module, "EXACT", 8)
        patch.setattr("rlvr_exp.rollouts.shared_prefix_decoder.PREFILL_TOKENS", 10)
        patch.setattr("rlvr_exp.rollouts.shared_prefix_cache.EXACT", 8)
        decoder = kind(model, prompts, owner, max(map(len, tokens)))
        found = fed(decoder, owner, tokens, 1 if kind is RowDecoder else most)
    for i, ids in enumerate(tokens):
        assert torch.allclose(found[i], plain_logits(model, prompts[owner[i]], tuple(ids)), atol=1e-4)


def test_other_plain_architectures_equal_plain_passes():
    prompts, owner = [[3, 4, 5, 6], [7, 8]], np.array([0, 0, 1])
    tokens = [[5, 6, 7, 8], [5, 6, 9, 2], [4, 3, 2, 9]]
    for model in other_models():
        model.eval()
        with torch.inference_mode():
            decoder = SharedPrefixDecoder(model, prompts, owner, 4)
            assert decoder._plain is not None
            found = fed(decoder, owner, tokens, 2)
        for i, ids in enumerate(tokens):
            wanted = plain_logits(model, prompts[owner[i]], tuple(ids))
            assert torch.allclose(found[i], wanted, atol=1e-4), type(model)


def adapted(**form):
    """A model with two adapters that are not zero, of which the second is active."""
    targets = ["q_proj", "v_proj", "o_proj", "gate_proj", "down_proj", "lm_head"]
    network = LlamaForCausalLM(LlamaConfig(**SHAPE, attention_bias=True))
    wrapped = get_peft_model(network, LoraConfig(r=2, lora_alpha=8, target_modules=targets, **form), "first")
    wrapped.add_adapter("second", LoraConfig(r=3, target_modules=["k_proj", "up_proj", *targets], **form))
    wrapped.set_adapter("second")
    with torch.no_grad():
        for name, value in wrapped.named_parameters():
            if "lora_" in name:
                value += 0.2 * torch.randn(value.shape)
    return wrapped.eval()


def test_adapters_are_merged_into_the_packed_weights():
    prompts, owner, tokens = [[3, 4, 5, 6], [7, 8]], np.array([0, 0, 1]), [[5, 6, 7, 8], [5, 6, 9, 2], [4, 3, 2, 9]]
    wrapped, found = adapted(lora_dropout=0.1), []
    inner = wrapped.get_base_model()
    before = {name: value.clone() for name, value in wrapped.state_dict().items()}
    for chosen in ("second", "first", None):
        with torch.inference_mode(), wrapped.disable_adapter() if chosen is None else nullcontext():
            if chosen:
                wrapped.set_adapter(chosen)
            decoder = SharedPrefixDecoder(inner, prompts, owner, 4)
            assert decoder._plain is not None
            own = fed(decoder, owner, tokens, 2)
            for i, ids in enumerate(tokens):
                assert torch.allclose(own[i], plain_logits(inner, prompts[owner[i]], tuple(ids)), atol=1e-4), chosen
        found.append(torch.cat(list(own)))
    assert all((one - other).abs().max() > 0.1 for one, other in pairwise(found))
    assert all(torch.equal(value, before[name]) for name, value in wrapped.state_dict().items())


@pytest.mark.parametrize("form", [{"use_dora": True}, {"lora_bias": True}])
def test_adapters_that_do_more_than_add_take_the_librarys_forward_pass(form):
    inner = adapted(**form).get_base_model()
    assert not is_plain(inner)
    assert is_plain(adapted().get_base_model())


def test_what_is_not_plain_takes_the_librarys_forward_pass():
    assert is_plain(tiny_model())
    half, hooked, linear, normed = tiny_model().bfloat16(), tiny_model(), tiny_model(), tiny_model()
    normed.model.norm = torch.nn.LayerNorm(16)
    hooked.model.layers[0].mlp.register_forward_hook(lambda *given: None)
    linear.lm_head = torch.nn.Sequential(linear.lm_head)
    dynamic = tiny_model(rope_parameters={"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0})
    assert not any(map(is_plain, (half, hooked, linear, normed, dynamic)))


def test_completions_that_are_alike_are_computed_once(model):
    decoder = SharedPrefixDecoder(model, [[3, 4, 5], [6, 7]], np.array([0, 0, 0, 1]), 4)
    with torch.inference_mode():
        assert len(decoder.prefill().values) == 2
        first = decoder.step(np.arange(4), np.array([[7], [7], [8], [7]]))
        second = decoder.step(np.arange(4), np.array([[9], [5], [9], [9]]))
        third = decoder.step(np.array([1, 3]), np.array([[2], [2]]))
    assert [len(one.values) for one in (first, second, third)] == [3, 4, 2]
    assert first.rows[0] == first.rows[1] != first.rows[2]


def test_parted_rows_are_fed_in_the_order_of_their_places(model):
    """Otherwise every layer would gather the rows of its own keys."""
    decoder = SharedPrefixDecoder(model, [[3, 4, 5], [6, 7]], np.array([0, 0, 0, 1]), 4)
    with torch.inference_mode():
        decoder.prefill()
        found = decoder.step(np.arange(4), np.array([[7], [8], [9], [7]]))
    (block,) = decoder.cache.blocks
    assert found.rows.tolist() == [0, 2, 3, 1] and block._now.slots is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_norms_have_the_bits_of_the_library(dtype):
    for network in (tiny_model().to(dtype), GemmaForCausalLM(GemmaConfig(**SHAPE)).to(dtype).eval()):
        norm, x = network.model.layers[0].input_layernorm, torch.randn(3, 5, network.config.hidden_size).to(dtype)
        with torch.no_grad():
            wanted = norm(x)
            with fused_norms(network):
                assert ("forward" in vars(norm)) == isinstance(network, Qwen3ForCausalLM)
                assert torch.equal(norm(x), wanted)
        assert "forward" not in vars(norm)


def test_groups_that_ended_give_up_their_room(model):
    decoder = SharedPrefixDecoder(model, [[3, 4, 5]] * 8, np.repeat(np.arange(8), 2), 4)
    with torch.inference_mode():
        decoder.prefill()
        decoder.step(np.arange(16), np.arange(16)[:, None] + 2)
        decoder.step(np.array([4, 5]), np.array([[7], [8]]))
    (block,) = decoder.cache.blocks
    assert {(len(layer.keys), len(layer.own_keys)) for layer in block.layers.values()} == {(1, 2)}


def test_a_prompt_is_computed_once_and_finished_completions_never(model):
    seen = []
    hook = model.model.layers[0].mlp.register_forward_hook(
        lambda module, given, out: seen.append(given[0].shape[:2].numel())
    )
    decoder = SharedPrefixDecoder(model, [[3, 4, 5], [6, 7]], np.array([0, 0, 0, 1]), 4)
    with torch.inference_mode():
        decoder.prefill()
        decoder.step(np.arange(4), np.array([[7], [8], [9], [7]]))
        decoder.step(np.array([1, 3]), np.array([[7], [7]]))
    hook.remove()
    assert seen == [5, 4, 2]


@pytest.mark.parametrize("changes", [{}, {"head_dim": 64}, {"intermediate_size": 1536}, {"num_key_value_heads": 2}])
def test_a_token_has_the_same_bits_in_any_company(changes):
    exact_model()
    assert is_exact(tiny_model(**changes))


def test_the_librarys_forward_pass_is_tried_as_it_samples(monkeypatch):
    """With oneDNN's linear layers, and within a sliding window that is shorter than the trial would like."""
    exact_model()
    assert is_exact(tiny_model(hidden_act="gelu"))
    shape = {"vocab_size": VOCABULARY, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    shape |= {"num_attention_heads": 2, "num_key_value_heads": 1, "sliding_window": 220}
    windowed = MistralForCausalLM(MistralConfig(**SHAPE)).bfloat16().eval()
    assert sample_groups(windowed, [[3, 4, 5]], [[(0, 1)]], SamplingParams(LogitFilters(), 20, (1,)))[0][0].ids


def test_double_precision_is_sampled():
    model = tiny_model().double()
    (one,) = sample_groups(model, [[3, 4, 5]], [[(0, 1)]], SamplingParams(LogitFilters(), 8, ()))[0]
    wanted = plain_logits(model, [3, 4, 5], one.ids).double().log_softmax(-1)[range(8), list(one.ids)]
    assert torch.allclose(torch.tensor(one.logprobs), wanted.float(), atol=1e-4)


def test_products_have_few_numbers_of_rows(model, monkeypatch):
    """oneDNN keeps a kernel for each that it ever met."""
    met, product = set(), onednn_linear.product
    monkeypatch.setattr(onednn_linear, "product", lambda x, *given: met.add(len(x)) or product(x, *given))
    for count in range(1, 60, 7):
        asked = [[3, 4, 5 + place % 9] for place in range(count)]
        sample_groups(model, asked, [[(0, place)] for place in range(count)], SamplingParams(LogitFilters(), 6, (1,)))
    assert met and all(padded_rows(rows) == rows for rows in met)


@pytest.mark.parametrize("kind", [SharedPrefixDecoder, LibraryDecoder, RowDecoder])
def test_nothing_of_a_batch_is_left(model, kind):
    decoder = kind(model, [[3, 4]], np.array([0]), 4)
    left = weakref.ref(decoder)
    with torch.inference_mode():
        decoder.prefill()
    del decoder
    assert left() is None, "a circle keeps it, and its cache, until the collector runs"


def test_weights_are_those_of_the_batch(model):
    changed = tiny_model()
    before = sample_groups(changed, [[3, 4]], [[(0, 1)]], SamplingParams(LogitFilters(), 8, ()))
    with torch.no_grad():
        changed.model.layers[0].mlp.up_proj.weight.mul_(-2)
    after = sample_groups(changed, [[3, 4]], [[(0, 1)]], SamplingParams(LogitFilters(), 8, ()))[0][0]
    assert before[0][0].logprobs != after.logprobs
    wanted = plain_logits(changed, [3, 4], after.ids).log_softmax(-1)[range(8), list(after.ids)]
    assert torch.allclose(torch.tensor(after.logprobs), wanted, atol=1e-4)


def test_bits_that_depend_on_the_company_are_found(monkeypatch):
    exact_model()
    product = onednn_linear.product
    monkeypatch.setattr(onednn_linear, "product", lambda x, *given: product(x, *given) * (1 + 1e-6 * len(x)))
    assert not is_exact(tiny_model())
