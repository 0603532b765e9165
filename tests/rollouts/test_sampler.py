"""The sampling loop: what it records, what its draws depend on, how it ends."""

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from rlvr_exp.rollouts.sampler import Sampling, sample_groups

PAD, EOS = 0, 1


@pytest.fixture(scope="module")
def model() -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    shape = dict(vocab_size=30, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2)
    return Qwen3ForCausalLM(Qwen3Config(**shape, num_key_value_heads=1, head_dim=8, max_position_embeddings=128))


def prompts(count: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(3)
    lengths = torch.randint(2, 9, (count,), generator=generator).tolist()
    return [torch.randint(2, 30, (n,), generator=generator).tolist() for n in lengths]


def keys(count: int, group: int, seed: int = 0) -> list[list[tuple]]:
    return [[(seed, "test", p, s) for s in range(group)] for p in range(count)]


def draw(model, asked, named, temperature=1.0, limit=12):
    return sample_groups(model, asked, named, Sampling(temperature, limit, (EOS,), PAD))


def test_recorded_log_probabilities_are_the_models_own(model):
    asked = prompts(4)
    for prompt, group in zip(asked, draw(model, asked, keys(4, 3), temperature=0.7), strict=True):
        for one in group:
            ids = torch.tensor([prompt + list(one.ids)])
            logits = model(input_ids=ids).logits[0, len(prompt) - 1 : -1].float() / 0.7
            wanted = logits.log_softmax(-1).gather(-1, torch.tensor(one.ids)[:, None])[:, 0]
            assert torch.allclose(wanted, torch.tensor(one.logprobs), atol=1e-5)


def test_draws_depend_on_their_key_and_not_on_the_batch(model):
    asked, named = prompts(5), keys(5, 3)
    together = draw(model, asked, named)
    for place in range(5):
        alone = draw(model, asked[place : place + 1], named[place : place + 1])
        assert [one.ids for one in alone[0]] == [one.ids for one in together[place]]
    assert draw(model, asked, keys(5, 3, seed=1)) != together


def test_samples_of_a_group_differ_and_equal_keys_agree(model):
    asked = prompts(1)
    group = draw(model, asked, [[(0, s) for s in (1, 2, 1)]])[0]
    assert group[0] == group[2]
    assert group[0].ids != group[1].ids


def test_greedy_takes_the_most_likely_token(model):
    asked = prompts(3)
    for prompt, (one,) in zip(asked, draw(model, asked, keys(3, 1), temperature=0), strict=True):
        ids = torch.tensor([prompt + list(one.ids)])
        assert model(input_ids=ids).logits[0, len(prompt) - 1 : -1].argmax(-1).tolist() == list(one.ids)


def test_a_completion_ends_with_its_end_token_or_is_truncated(model):
    ended = [one for group in draw(model, prompts(8), keys(8, 8), limit=40) for one in group]
    assert {one.truncated for one in ended} == {True, False}
    for one in ended:
        assert EOS not in one.ids[:-1]
        assert (one.ids[-1] == EOS) != one.truncated
        assert not one.truncated or len(one.ids) == 40


def test_sampling_follows_the_distribution(model):
    prompt = prompts(1)[0]
    drawn = draw(model, [prompt], [[(5, s) for s in range(4000)]], limit=1)[0]
    counts = torch.bincount(torch.tensor([one.ids[0] for one in drawn]), minlength=30) / 4000
    wanted = model(input_ids=torch.tensor([prompt])).logits[0, -1].softmax(-1)
    assert (counts - wanted).abs().max() < 0.03


def test_no_global_generator_is_read_or_moved(model):
    torch.manual_seed(7)
    state = torch.get_rng_state()
    first = draw(model, prompts(2), keys(2, 2))
    assert torch.equal(state, torch.get_rng_state())
    torch.manual_seed(8)
    assert draw(model, prompts(2), keys(2, 2)) == first


def test_groups_of_unequal_size_are_refused(model):
    with pytest.raises(ValueError, match=r"same number of samples, got \[1, 2\]"):
        draw(model, prompts(2), [[(0,)], [(0,), (1,)]])
