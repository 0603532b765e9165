"""Guessed tokens change nothing but the number of passes: tokens, log-probabilities and entropies keep their bits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rollout_models import EOS, exact_model, keys, prompts
from thinning import tries

from rlvr_exp.config.model import Model
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.models.policy import load_policy
from rlvr_exp.rollouts.drafts import REACH, Drafts, Pace
from rlvr_exp.rollouts.sampler import sample_groups
from rlvr_exp.rollouts.sampling_params import LogitFilters, SamplingParams
from rlvr_exp.rollouts.shared_prefix_decoder import SharedPrefixDecoder, is_exact


@pytest.fixture(scope="module")
def model():
    return exact_model()


@pytest.fixture
def eager(monkeypatch):
    """Every guess that is known is taken."""
    monkeypatch.setattr(Pace, "least", lambda self, rows: 0.0)


def text_of(ids) -> str:
    return "".join(chr(97 + i) for i in ids)


@pytest.mark.parametrize("depth", [1, 3, 8])
@pytest.mark.parametrize("filters", [LogitFilters(), LogitFilters(0.4), LogitFilters(0.8, 5, 0.9, 0.05)])
@pytest.mark.parametrize("stop", [(), ("fg", "x")])
def test_guesses_change_no_bit(model, eager, depth, filters, stop):
    plain = SamplingParams(filters, 40, (EOS,), stop, text_of, drafts=0)
    named = [[None, *row] for row in keys(6, 5)]
    wanted = sample_groups(model, prompts(6), named, plain)
    for _ in range(2):  # the second time all n-grams are known
        assert sample_groups(model, prompts(6), named, replace(plain, drafts=depth)) == wanted


def test_guesses_save_passes(model, eager, monkeypatch):
    fed, step = [], SharedPrefixDecoder.step
    monkeypatch.setattr(SharedPrefixDecoder, "step", lambda self, *given: fed.append(1) or step(self, *given))
    for drafts in (0, 8, 8):
        fed.append(0)
        sampling = SamplingParams(LogitFilters(0.4), 40, (EOS,), drafts=drafts)
        sample_groups(model, prompts(6), keys(6, 5, seed=3), sampling)
    passes = [len(part) for part in "".join(map(str, fed)).split("0")[1:]]
    assert passes[2] < passes[1] < passes[0] == 39


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 3, 8])
def test_a_million_draws_keep_their_bits(eager, depth):
    """334 batches a depth of the default job, some 2,500 tokens each with guesses and as many without."""
    policy, domain = load_policy(Model(dtype="float32", chat_template="never"), 0), Arc()
    assert is_exact(policy.model)
    tasks, drawn = domain.splits()["train"], 0
    for step in range(10_000):
        if drawn >= 1_000_000 / 3:
            break
        chosen = [tasks[(32 * step + i) % len(tasks)] for i in range(32)]
        asked = [policy.encode_prompt(domain.task_prompt(task)) for task in chosen]
        named = [[("bits", step, i, k) for k in range(8)] for i in range(32)]
        plain = SamplingParams(LogitFilters(), 64, policy.eos_ids, drafts=0)
        wanted = sample_groups(policy.model, asked, named, plain)
        assert sample_groups(policy.model, asked, named, replace(plain, drafts=depth)) == wanted
        drawn += sum(len(one.ids) for row in wanted for one in row)
    assert drawn >= 1_000_000 / 3


@given(st.lists(st.integers(0, 50), min_size=6, max_size=30), st.integers(0, 5))
@settings(max_examples=tries(50), deadline=None)
def test_what_was_seen_is_guessed_again(tokens, prompt):
    drafts = Drafts()
    numbers = drafts.begin([[1, 2, 3]] * 6)
    history = np.array([-1] * REACH + tokens)
    places = np.arange(len(tokens))
    before = history[places[:, None] + np.arange(REACH)]
    drafts.learn(before, np.array(tokens), np.full(len(tokens), numbers[prompt]))
    for who in (numbers[prompt], drafts.begin([[7]])[0]):  # its own prompt's, and another that knows what all have
        found = drafts.guess(before[-1:], np.array([who]), np.array([1]), 0.0)
        assert found.tokens.tolist() == [[tokens[-1]]]


def test_a_prompts_own_n_grams_are_its_own():
    drafts = Drafts()
    first, second = drafts.begin([[1, 2, 3, 4, 5, 6], [9, 9, 9]])
    before = np.array([[2, 3, 4, 5]])
    assert drafts.guess(before, np.array([first]), np.array([1]), 0.0).tokens.tolist() == [[6]]
    assert drafts.guess(before, np.array([second]), np.array([1]), 0.0).tokens.tolist() == [[-1]]


def test_the_more_rows_the_surer_a_guess_has_to_be():
    pace = Pace()
    for rows in (256, 120, 60, 20, 4) * 20:
        for slots in (rows, 2 * rows):
            pace.observe(rows, slots, 1e-3 + 2e-5 * rows + 4e-5 * slots)
    least = [pace.least(rows) for rows in (1, 8, 64, 512)]
    assert least == sorted(least) and least[0] < 0.06 and 0.6 < least[-1] < 2 / 3


def test_kinds_of_guesses_that_fail_are_given_up():
    drafts = Drafts()
    numbers = drafts.begin([[1, 2, 3, 4, 5, 6]])
    before = np.array([[2, 3, 4, 5]])
    for _ in range(40):
        drafts.observe(drafts.guess(before, numbers, np.array([1]), 0.0), np.array([0]))
    assert drafts.guess(before, numbers, np.array([1]), 0.2).tokens.shape == (1, 0)
    for _ in range(500):  # other kinds are guessed meanwhile
        drafts.observe(drafts.guess(before, numbers, np.array([1]), 1.0), np.array([0]))
    assert drafts.guess(before, numbers, np.array([1]), 0.2).tokens.tolist() == [[6]], "it is tried again"
