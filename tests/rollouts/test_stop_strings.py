"""Stop strings are found in the text, however it is cut into tokens."""

from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st
from rollout_models import EOS, keys, prompts, tiny_model
from thinning import tries
from transformers import AutoTokenizer

from rlvr_exp.config.model import EMBEDDED_MODELS
from rlvr_exp.rollouts.sampler import sample_groups
from rlvr_exp.rollouts.sampling_params import CompletionCheck, LogitFilters, SamplingParams, StopStringMatcher

TOKENIZER = AutoTokenizer.from_pretrained(EMBEDDED_MODELS / "tiny")
BYTES = [
    TOKENIZER.convert_tokens_to_ids(token)
    for token in TOKENIZER.backend_tokenizer.pre_tokenizer.pre_tokenize_str("é→")[0][0]
]
"""Tokens of single bytes, parts of characters."""
ANY = st.integers(2, len(TOKENIZER) - 1)
TOKENS = st.lists(st.one_of(ANY, ANY, ANY, st.sampled_from([b for b in BYTES if b])), max_size=25)


def decode(ids) -> str:
    return TOKENIZER.decode(list(ids), skip_special_tokens=True)


def first_end(ids: list[int], stops: list[str]) -> int | None:
    """By searching the entire text after each token."""
    return next((n for n in range(len(ids)) if any(stop in decode(ids[: n + 1]) for stop in stops)), None)


@given(TOKENS, st.data())
@settings(max_examples=tries(150), deadline=None)
def test_a_completion_ends_with_the_token_that_completes_a_stop_string(ids, data):
    text = decode(ids)
    ends = [len(decode(ids[:n])) for n in range(1, len(ids))]
    across = [text[max(0, end - back) : end + on] for end in ends for back, on in ((1, 1), (2, 3), (9, 2))]
    within = [text[a : a + n] for a in range(len(text)) for n in (1, 3)]
    drawn = [st.sampled_from(some) for some in (across, within) if some] + [st.text(min_size=1, max_size=3)]
    stops = [stop for stop in data.draw(st.lists(st.one_of(drawn), max_size=2)) if stop and "\ufffd" not in stop] or [
        "\n\n"
    ]
    watcher = StopStringMatcher(stops, decode)
    assert next((n for n, token in enumerate(ids) if watcher.ends(token)), None) == first_end(ids, stops)


def test_a_character_of_several_tokens_is_waited_for():
    ids = TOKENIZER("a→b", add_special_tokens=False).input_ids
    assert len(ids) > 3, "the arrow is several tokens"
    watcher = StopStringMatcher(["→"], decode)
    assert [watcher.ends(token) for token in ids].index(True) == first_end(ids, ["→"])


def test_the_text_of_a_tokenizer_that_rewrites_it_is_searched_entirely():
    words = {2: "don", 3: " '", 4: "t", 5: "."}

    def tidy(ids) -> str:
        return "".join(words[token] for token in ids).replace(" 't", "'t")

    watcher = StopStringMatcher(["don't"], tidy)
    assert [watcher.ends(token) for token in (2, 3, 4, 5)] == [False, False, True, True]


def test_sampled_ids_end_at_the_stop_string_and_are_not_truncated():
    model, letters = tiny_model(), "_.abcdefghijklmnopqrstuvwxyzABC"

    def spell(ids) -> str:
        return "".join(letters[token] for token in ids)

    plain = sample_groups(model, prompts(4), keys(4, 4), SamplingParams(LogitFilters(), 30, (EOS,)))
    stopped = sample_groups(
        model, prompts(4), keys(4, 4), SamplingParams(LogitFilters(), 30, (EOS,), ("e", "qr"), spell)
    )
    cut = 0
    for one, short in zip([o for g in plain for o in g], [o for g in stopped for o in g], strict=True):
        assert one.ids[: len(short.ids)] == short.ids, "the draws before the stop are the same"
        text = spell(short.ids)
        ends = text.endswith(("e", "qr"))
        assert ends or short.ids == one.ids
        assert not any(stop in text[:-1] for stop in ("e", "qr"))
        cut += ends
        assert short.truncated == (not ends and short.ids[-1] != EOS)
    assert cut >= 4


def test_a_completion_ends_where_its_domain_calls_it_complete():
    model, letters = tiny_model(), "_.abcdefghijklmnopqrstuvwxyzABC"

    def spell(ids) -> str:
        return "".join(letters[token] for token in ids)

    plain = sample_groups(model, prompts(4), keys(4, 4), SamplingParams(LogitFilters(), 30, (EOS,)))
    closing = (letters.index("e"), letters.index("q"))
    rule = CompletionCheck(lambda text: len(text) > 3 and text[-1] in "eq", closing)
    params = SamplingParams(LogitFilters(), 30, (EOS,), decode=spell, completion_check=rule)
    stopped = sample_groups(model, prompts(4), keys(4, 4), params)
    ended = 0
    for one, cut in zip((o for g in plain for o in g), (o for g in stopped for o in g), strict=True):
        first = next((n for n in range(4, len(one.ids) + 1) if one.ids[n - 1] in closing), None)
        assert cut.ids == one.ids[:first] and cut.truncated == (one.truncated and first is None)
        ended += first is not None
    assert ended > 3


def test_a_domain_names_the_tokens_that_can_end_an_answer():
    policy = SimpleNamespace(tokenizer=TOKENIZER)
    assert (
        CompletionCheck.of(SimpleNamespace(stop_text=""), policy) is None and CompletionCheck.of(None, policy) is None
    )
    rule = CompletionCheck.of(SimpleNamespace(stop_text=")", is_complete=bool), policy)
    assert set(rule.tokens) == {token for token in range(len(TOKENIZER)) if ")" in decode([token])}
