"""A turn that follows from another is sampled as if its prompt were computed anew, and less of it is."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rollout_models import EOS, VOCABULARY, exact_model, keys, tiny_model
from thinning import tries

from rlvr_exp.episodes.environment import Environment
from rlvr_exp.episodes.episode import Draws
from rlvr_exp.rollouts.engines.local import LocalEngine
from rlvr_exp.rollouts.kept_prefixes import KeptPrefixes, Turns
from rlvr_exp.rollouts.run_episodes import EpisodeRunner, Player, generate_and_verify
from rlvr_exp.rollouts.sampler import sample_groups
from rlvr_exp.rollouts.sampling_params import LogitFilters, SamplingParams
from rlvr_exp.rollouts.shared_prefix_decoder import SharedPrefixDecoder
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.verifiers.base import Direct, Verdict

SAMPLING = SamplingParams(LogitFilters(), 12, (EOS,))


def tokens(count: int, seed: int) -> tuple[int, ...]:
    return tuple(torch.randint(2, VOCABULARY, (count,), generator=torch.Generator().manual_seed(seed)).tolist())


def two_turns(model, prompts, named, betweens, kept: KeptPrefixes | None = None) -> tuple[list, list]:
    """First turns of each prompt, then one that follows from each of them: its prompt, and what was drawn."""
    first = sample_groups(model, prompts, named, SAMPLING, Turns(kept))
    asked, follows, again = [], [], []
    for prompt, row, own in zip(prompts, first, named, strict=True):
        for one, key, between in zip(row, own, betweens, strict=False):
            said = one.ids[:-1] if one.ids[-1] == EOS else one.ids
            asked.append((*prompt, *said, *between))
            follows.append((*prompt, *one.ids[:-1]))
            again.append([(*key, "next")])
    if kept is None:
        return asked, sample_groups(model, asked, again, SAMPLING)
    kept.next_wave()
    begun = [kept.of(prompt, seen) for prompt, seen in zip(asked, follows, strict=True)]
    assert None not in begun
    return asked, sample_groups(model, asked, again, SAMPLING, Turns(kept, begun))


@given(st.lists(st.one_of(st.integers(1, 12), st.integers(150, 230)), min_size=1, max_size=4), st.integers(0, 99))
@settings(max_examples=tries(15), deadline=None)
def test_what_follows_is_what_it_is_without(lengths, seed):
    model = tiny_model(head_dim=64)
    prompts = [tokens(length, seed + place) for place, length in enumerate(lengths)]
    betweens = [tokens(3, seed), tokens(40, seed), tokens(1, seed)]
    named = keys(len(prompts), 3, seed)
    (asked, plain), (same, found) = (
        two_turns(model, prompts, named, betweens, kept) for kept in (None, KeptPrefixes())
    )
    assert asked == same
    for (one,), (other,) in zip(plain, found, strict=True):
        assert one.ids == other.ids
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


@given(st.data())
@settings(max_examples=tries(10), deadline=None)
def test_other_chains_change_no_bit_of_what_follows(data):
    model = exact_model(head_dim=64)
    lengths = data.draw(st.lists(st.one_of(st.integers(1, 40), st.integers(180, 260)), min_size=2, max_size=4))
    prompts, betweens = [tokens(length, place) for place, length in enumerate(lengths)], [tokens(4, 1), tokens(30, 2)]
    named = keys(len(prompts), 2)
    whole = two_turns(model, prompts, named, betweens, KeptPrefixes())[1]
    place = data.draw(st.integers(0, len(prompts) - 1))
    alone = two_turns(model, [prompts[place]], [named[place][:1]], betweens, KeptPrefixes())[1]
    assert alone == whole[2 * place : 2 * place + 1]


def test_only_what_is_not_shared_is_computed(monkeypatch):
    computed = []
    forward = SharedPrefixDecoder._forward

    def counted(self, tokens, *rest):
        computed.append(len(tokens))
        return forward(self, tokens, *rest)

    model, kept = tiny_model(), KeptPrefixes()
    prompt = tokens(100, 0)
    (first,) = sample_groups(model, [prompt], keys(1, 1), SAMPLING, Turns(kept))[0]
    kept.next_wave()
    seen = (*prompt, *first.ids[:-1])
    asked = (*seen, *tokens(7, 1))
    monkeypatch.setattr(SharedPrefixDecoder, "_forward", counted)
    sample_groups(model, [asked], keys(1, 1), SAMPLING, Turns(kept, [kept.of(asked, seen)]))
    assert computed[0] == 7


def test_a_turn_is_found_by_the_one_that_follows_from_it_and_for_one_wave():
    kept = KeptPrefixes()
    layers = [(torch.arange(5.0).view(1, 5, 1), torch.zeros(1, 5, 1))]
    kept.keep((4, 5, 6, 7, 8), lambda: layers)
    assert kept.of((4, 5, 6, 7, 8, 9), (4, 5, 6, 7, 8)) is None, "of the wave that is going on nothing is found"
    kept.next_wave()
    whole = kept.of((4, 5, 6, 7, 8, 9), (4, 5, 6, 7, 8))
    assert whole.tokens == (4, 5, 6, 7, 8)
    part = kept.of((4, 5, 6, 9, 9), (4, 5, 6, 7, 8))
    assert part.tokens == (4, 5, 6)
    assert part.layers[0][0].flatten().tolist() == [0, 1, 2]
    assert kept.of((4, 5, 6, 7, 8), (4, 5, 6, 7, 8)).tokens == (4, 5, 6, 7), "the last token is computed"
    assert kept.of((4, 5, 6, 7, 8, 9), (4, 5, 6, 7)) is kept.of((9, 5), (4, 5, 6, 7, 8)) is None
    kept.next_wave()
    assert kept.of((4, 5, 6, 7, 8, 9), (4, 5, 6, 7, 8)) is None


class Passes(Direct):
    name, version = "passes", "1"

    def judge(self, request):
        return Verdict("passed", passed=1, total=1)


class Chain(Environment):
    """Three turns, each prompt the one before with what was said."""

    name, roles = "chain", ("policy",)

    def __init__(self, domain):
        super().__init__()
        self._domain = domain

    def domain(self, role):
        return self._domain

    def run(self, episode):
        for number in range(3):
            prompt = "start " + " ".join(f"{turn.completion.text} then" for turn in episode.turns)
            parent = episode.turns[-1] if episode.turns else None
            yield [episode.ask(prompt, parent=parent, pending=number < 2)]


@pytest.mark.parametrize(("caching", "ranks", "reused"), [(True, 1, 2), (False, 1, 0), (True, 2, 0)])
def test_turns_of_an_episode_go_on_from_each_other(monkeypatch, caching, ranks, reused):
    """With a policy of its own words; not where ranks share the sampling."""
    monkeypatch.setattr("rlvr_exp.rollouts.run_episodes.ranks", lambda: ranks)
    words: dict[str, int] = {}
    begun: list[int] = []
    real = SharedPrefixDecoder.__init__

    def watched(self, model, prompts, owner, limit, known=()):
        begun.append(len(known))
        real(self, model, prompts, owner, limit, known)

    monkeypatch.setattr(SharedPrefixDecoder, "__init__", watched)

    def encode(text: str, tools: object = ()) -> list[int]:
        return [int(word[1:]) if word[0] == "w" else 2 + words.setdefault(word, len(words)) for word in text.split()]

    policy = SimpleNamespace(
        model=tiny_model(),
        encode_prompt=encode,
        decode=lambda ids: " ".join(f"w{token}" for token in ids if token != EOS),
        eos_ids=(EOS,),
    )
    domain = SimpleNamespace(parse=lambda text, task: Candidate(text))
    engine = LocalEngine(prefix_caching=caching)

    def generate(*given):
        return generate_and_verify(*given, engine)

    runner = EpisodeRunner(Chain(domain), {"policy": Player(policy, SAMPLING, 100)}, Passes(), generate)
    (done,) = runner.run([runner.environment.reset(Task("t", "f", 0.0, None, None), Draws(0, "rollout", (0, 0)))])
    assert len(done.turns) == 3
    assert sum(begun) == reused
