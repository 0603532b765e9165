"""The sampling loop: its records, the dependencies of its draws, and how it ends."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rollout_models import EOS, VOCABULARY, exact_model, keys, plain_logits, prompts, tiny_model
from thinning import tries
from transformers import GPT2Config, GPT2LMHeadModel, MistralConfig, MistralForCausalLM, Qwen3ForCausalLM

from rlvr_exp.rollouts.sampler import sample_groups, stream
from rlvr_exp.rollouts.sampling_params import LogitFilters, SamplingParams
from rlvr_exp.rollouts.shared_prefix_decoder import supports_shared_prefix

FILTERS = st.builds(
    LogitFilters,
    temperature=st.sampled_from([0.3, 0.7, 1.0, 2.0]),
    top_k=st.sampled_from([0, 0, 2, 5, 100]),
    top_p=st.sampled_from([1.0, 1.0, 0.3, 0.8, 0.95]),
    min_p=st.sampled_from([0.0, 0.0, 0.05, 0.4]),
)


@pytest.fixture(scope="module")
def model():
    return tiny_model()


def draw(model, asked, named, filters=None, limit=12, **more):
    return sample_groups(model, asked, named, SamplingParams(filters or LogitFilters(), limit, (EOS,), **more))


@given(FILTERS, st.integers(1, 3), st.integers(1, 4), st.integers(0, 9))
@settings(max_examples=tries(40), deadline=None)
def test_the_recorded_probability_is_that_of_the_filtered_distribution(model, filters, count, group, seed):
    asked = prompts(count)
    for prompt, drawn in zip(asked, draw(model, asked, keys(count, group, seed), filters), strict=True):
        for one in drawn:
            scores = plain_logits(model, prompt, one.ids) / filters.temperature
            for place, (token, recorded) in enumerate(zip(one.ids, one.logprobs, strict=True)):
                kept = list(one.kept_token_ids[place]) if one.kept_token_ids else list(range(VOCABULARY))
                wanted = scores[place, token] - scores[place, kept].logsumexp(-1)
                assert abs(wanted - recorded) < 1e-4
                assert token in kept
            assert (one.kept_token_ids is not None) == filters.narrow


@given(FILTERS, st.integers(0, 9), st.data())
@settings(max_examples=tries(25), deadline=None)
def test_draws_depend_on_their_key_and_not_on_the_batch(model, filters, seed, data):
    asked, named = prompts(5), keys(5, 3, seed)
    together = draw(model, asked, named, filters)
    chosen = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=5, unique=True))
    samples = data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=4))
    again = draw(model, [asked[p] for p in chosen], [[named[p][s] for s in samples] for p in chosen], filters)
    for place, p in enumerate(chosen):
        assert [one.ids for one in again[place]] == [together[p][s].ids for s in samples]


@pytest.mark.property(11)
@given(st.integers(0, 2**31), st.integers(2, 6))
@settings(max_examples=tries(25), deadline=None)
def test_samples_of_a_task_differ_and_another_seed_gives_others(model, seed, group):
    """Sampling diversity."""
    asked = prompts(2)
    first = draw(model, asked, keys(2, group, seed), limit=8)
    assert all(len({one.ids for one in drawn}) > 1 for drawn in first)
    assert draw(model, asked, keys(2, group, seed + 1), limit=8) != first
    assert draw(model, asked, keys(2, group, seed), limit=8) == first


def test_greedy_and_sampled_completions_share_a_batch(model):
    asked = prompts(3)
    mixed = draw(model, asked, [[None, *row] for row in keys(3, 2)], LogitFilters(0.7, top_p=0.9))
    alone = draw(model, asked, keys(3, 2), LogitFilters(0.7, top_p=0.9))
    for prompt, (greedy, *sampled), wanted in zip(asked, mixed, alone, strict=True):
        assert plain_logits(model, prompt, greedy.ids).argmax(-1).tolist() == list(greedy.ids)
        assert set(greedy.logprobs) == {0.0}
        assert [one.ids for one in sampled] == [one.ids for one in wanted]


def test_a_completion_ends_with_its_end_token_or_is_truncated(model):
    ended = [one for group in draw(model, prompts(8), keys(8, 8), limit=40) for one in group]
    assert {one.truncated for one in ended} == {True, False}
    for one in ended:
        assert EOS not in one.ids[:-1]
        assert (one.ids[-1] == EOS) != one.truncated
        assert not one.truncated or len(one.ids) == 40


def test_completions_are_handed_out_as_they_end(model):
    asked, named = prompts(8), keys(8, 4)
    sampling = SamplingParams(LogitFilters(), 40, (EOS,))
    lengths = [len(one.sampled.ids) for one in stream(model, asked, named, sampling)]
    assert lengths == sorted(lengths)
    assert len(set(lengths)) > 3


def test_a_reader_that_stops_early_leaves_the_model_as_it_was(model):
    was = model.config._attn_implementation
    model.train()
    reader = stream(model, prompts(2), keys(2, 2), SamplingParams(LogitFilters(), 40, (EOS,)))
    next(reader)
    assert model.config._attn_implementation == was, "between two steps the attention is the model's own"
    reader.close()
    assert model.training
    model.eval()


def test_sampling_follows_the_distribution(model):
    prompt = prompts(1)[0]
    drawn = draw(model, [prompt], [[(5, s) for s in range(4000)]], limit=1)[0]
    counts = torch.bincount(torch.tensor([one.ids[0] for one in drawn]), minlength=VOCABULARY) / 4000
    wanted = plain_logits(model, prompt, drawn[0].ids)[0].softmax(-1)
    assert (counts - wanted).abs().max() < 0.03


def test_no_global_generator_is_read_or_moved(model):
    torch.manual_seed(7)
    state = torch.get_rng_state()
    first = draw(model, prompts(2), keys(2, 2))
    assert torch.equal(state, torch.get_rng_state())
    torch.manual_seed(8)
    assert draw(model, prompts(2), keys(2, 2)) == first


def test_prompts_may_ask_for_different_numbers(model):
    asked, named = prompts(3), keys(3, 4)
    whole = draw(model, asked, named)
    part = draw(model, asked, [named[0], named[1][:1], named[2][:2]])
    assert part == [row[:size] for row, size in zip(whole, (4, 1, 2), strict=True)]  # to the last bit


@given(st.data())
@settings(max_examples=tries(20), deadline=None)
def test_the_rest_of_the_batch_changes_no_bit(data):
    """Tokens, log-probabilities and entropies."""
    model = exact_model(head_dim=64)
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
    lengths = data.draw(st.lists(st.one_of(st.integers(1, 40), st.integers(180, 420)), min_size=2, max_size=5))
    asked = [torch.randint(2, VOCABULARY, (n,), generator=generator).tolist() for n in lengths]
    named = keys(len(asked), 3)
    whole = draw(model, asked, named, LogitFilters(0.5), limit=12)
    chosen = data.draw(st.lists(st.sampled_from(range(len(asked))), min_size=1, unique=True))
    alone = draw(model, [asked[i] for i in chosen], [named[i][:2] for i in chosen], LogitFilters(0.5), limit=12)
    assert alone == [whole[i][:2] for i in chosen]


class Counted:
    """A watch that counts the tokens of each draw."""

    def __init__(self):
        self.draws = []

    def drew(self, tokens: int) -> None:
        self.draws.append(tokens)

    def ended(self, one) -> None:
        raise AssertionError("the sampler hands out, and does not announce")


def test_further_prompts_take_the_room_of_completions_that_have_ended():
    model = exact_model(head_dim=64)
    asked, named = prompts(16), keys(16, 4)
    whole, refilled = Counted(), Counted()
    together = draw(model, asked, named, limit=120, batch_size=64, watch=whole)
    assert draw(model, asked, named, limit=120, batch_size=16, watch=refilled) == together  # to the last bit
    lengths = [[len(one.ids) for one in group] for group in together]
    assert max(whole.draws) == 64 and max(refilled.draws) == 16
    assert sum(refilled.draws) == sum(whole.draws) == sum(map(sum, lengths))
    in_turn = sum(max(map(max, lengths[first : first + 4])) for first in range(0, 16, 4))
    assert len(refilled.draws) < 0.8 * in_turn, "passes, of which some begin further prompts"
    few = draw(model, asked, named, limit=5)
    assert draw(model, asked, named, limit=5, batch_size=2) == few, "completions of a prompt stay together"


def test_short_prompts_leave_room_for_more_completions_than_the_plan_of_long_ones():
    model = exact_model(head_dim=64)
    asked, named = prompts(16), keys(16, 4)
    most, longest = max(map(len, asked)), 12
    watch = Counted()
    sampling = {"limit": longest, "batch_size": 8, "watch": watch}
    together = draw(model, asked, named, **sampling, planned_prompt=most + 4 * longest)
    planned = 2 * (most + 4 * longest + 4 * longest)  # of two groups
    assert 8 < max(watch.draws) <= planned // longest
    watch.draws.clear()
    assert draw(model, asked, named, **sampling, planned_prompt=most) == together and max(watch.draws) == 8


def _gpt2():
    return GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_embd=16, n_layer=2, n_head=2, n_positions=64)).eval()


def _windowed(window=6):
    shape = {"vocab_size": VOCABULARY, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    shape |= {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8}
    return MistralForCausalLM(MistralConfig(**shape, sliding_window=window)).eval()


@pytest.mark.parametrize("make, by_rows", [(_gpt2, False), (_windowed, True), (lambda: _windowed(12), True)])
def test_architectures_whose_attention_is_their_own_are_sampled_by_rows_and_say_so_once(make, by_rows, recwarn):
    torch.manual_seed(1)
    other = make()
    asked = prompts(3)
    groups = draw(other, asked, keys(3, 3))
    assert draw(other, asked, keys(3, 3)) == groups
    assert len([one for one in recwarn if "row by row" in str(one.message)]) == by_rows
    for prompt, drawn in zip(asked, groups, strict=True):
        for one in drawn:
            scores = plain_logits(other, prompt, one.ids).log_softmax(-1)
            wanted = scores.gather(-1, torch.tensor(one.ids)[:, None])[:, 0]
            assert torch.allclose(wanted, torch.tensor(one.logprobs), atol=1e-4)


class Unplaced(Qwen3ForCausalLM):
    """It ignores the positions of its tokens."""

    def forward(self, position_ids=None, **given):
        return super().forward(**given)


@pytest.mark.filterwarnings("ignore:Unplaced:RuntimeWarning")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_trial_of_a_model_uses_no_special_tokens(dtype):
    """Special tokens come first or last in a vocabulary. They magnify rounding."""
    right = tiny_model(vocab_size=200).to(dtype)
    wrong, seen = Unplaced(right.config).to(dtype).eval(), []
    wrong.load_state_dict(right.state_dict())
    right.get_input_embeddings().register_forward_hook(
        lambda module, given, out: seen.extend(given[0].flatten().tolist())
    )
    assert supports_shared_prefix(right, 64) and not supports_shared_prefix(wrong, 64)
    assert 50 < min(seen) < max(seen) < 150
