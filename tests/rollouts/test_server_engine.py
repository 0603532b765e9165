"""Completions from an endpoint: what it silently ignores is found, what fails is retried, and every completion that was
asked for is answered exactly once or counted as unanswered."""

import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from endpoint import FAULTS, Endpoint, babble, serving
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries
from torch import nn

from rlvr_exp.config.model import EMBEDDED_MODELS, Model
from rlvr_exp.core.errors import GuardStop, InputError, Interrupted
from rlvr_exp.rollouts.engines.base import RolloutRequest
from rlvr_exp.rollouts.engines.probe import HONOURED, IGNORED, KEPT, REFUSED, REMOVED
from rlvr_exp.rollouts.engines.server import ServedPolicy, ServerEngine, served_policy
from rlvr_exp.rollouts.run_episodes import generate_and_verify
from rlvr_exp.rollouts.sampling_params import LogitFilters, SamplingParams
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Direct, Verdict

POLICY = ServedPolicy(nn.Module(), None, (), True, False, sys.maxsize)
DOMAIN = SimpleNamespace(stop_text="", parse=lambda text, task: Candidate(text), is_complete=lambda text: False)
SAMPLING = SamplingParams(LogitFilters(), 30, ())
QUICK = dict(retries=2, backoff_s=0.001, timeout_s=120.0)


class Passing(Direct):
    name, version = "passing", "1"

    def judge(self, request):
        return Verdict("passed")


def requests(count: int = 3, samples: int = 4, greedy: bool = True) -> list[RolloutRequest]:
    keys = [(None,) * greedy + tuple((0, "e", place, i) for i in range(samples)) for place in range(count)]
    return [
        RolloutRequest(SimpleNamespace(id=f"t{place}", problem=None), (), own, f"prompt {place}")
        for place, own in enumerate(keys)
    ]


def begun(endpoint: Endpoint, **given) -> ServerEngine:
    engine = ServerEngine(url=endpoint.url, **{**QUICK, **given})
    engine.begin(lambda text: None)
    return engine


def drawn(engine: ServerEngine, asked, sampling=SAMPLING, policy=POLICY):
    return {(one.request, one.sample): one for one in engine.draw(policy, DOMAIN, asked, sampling)}


@pytest.mark.parametrize(
    ("server", "found"),
    [
        ({}, {"chat": True, "temperature": HONOURED, "seed": HONOURED, "n": HONOURED, "logprobs": HONOURED}),
        ({}, {"usage": HONOURED, "max_tokens": HONOURED, "stop": REMOVED, "greedy": HONOURED, "limit": "max_tokens"}),
        ({"n": False}, {"n": IGNORED}),
        ({"seed": False}, {"seed": IGNORED, "temperature": HONOURED}),
        ({"temperature": False}, {"temperature": IGNORED}),
        ({"logprobs": False}, {"logprobs": IGNORED}),
        ({"usage": False}, {"usage": IGNORED}),
        ({"stop": "kept"}, {"stop": KEPT}),
        ({"stop": "ignored"}, {"stop": IGNORED}),
        ({"chat": False}, {"chat": False}),
        ({"limit": "max_completion_tokens"}, {"limit": "max_completion_tokens", "chat": True}),
        ({}, {"top_p": HONOURED, "top_k": HONOURED, "min_p": HONOURED, "repetition_penalty": HONOURED}),
        ({"filters": ("top_p", "min_p")}, {"top_p": HONOURED, "top_k": IGNORED, "repetition_penalty": IGNORED}),
        ({"filters": ()}, {"top_p": IGNORED, "top_k": IGNORED, "min_p": IGNORED}),
        ({"strict": True}, {"dialect": "openai", "top_p": HONOURED, "top_k": REFUSED, "min_p": REFUSED}),
        ({"strict": True, "limit": "max_completion_tokens"}, {"dialect": "openai", "limit": "max_completion_tokens"}),
    ],
)
def test_the_probe_finds_what_a_server_ignores(server, found):
    with serving(Endpoint(**server)) as endpoint:
        engine, notes = ServerEngine(url=endpoint.url, **QUICK), []
        section = engine.begin(notes.append)
    assert {name: section[name] for name in found} == found
    assert section["model"] == "small" and len(notes) == 1 and len(endpoint.seen) < 19
    for name, value in found.items():
        assert value not in (IGNORED, REFUSED) or name in notes[0] or "temperature" in notes[0]


def test_each_request_has_all_sampling_fields_the_neutral_ones_too():
    for filters in (LogitFilters(), LogitFilters(0.7, 20, 0.9, 0.1)):
        with serving(Endpoint()) as endpoint:
            drawn(begun(endpoint), requests(1, 1), SamplingParams(filters, 30, ()))
        greedy, sampled = sorted(endpoint.completions(), key=lambda body: body["temperature"])
        f = filters
        assert (greedy["temperature"], greedy["top_p"], greedy["top_k"], greedy["min_p"]) == (0, 1, -1, 0)
        wanted = (f.temperature, f.top_p, f.top_k or -1, f.min_p)
        assert (sampled["temperature"], sampled["top_p"], sampled["top_k"], sampled["min_p"]) == wanted
        for body in (greedy, sampled):
            assert body["repetition_penalty"] == body["repeat_penalty"] == 1
            assert body["frequency_penalty"] == body["presence_penalty"] == 0


@pytest.mark.parametrize("server", [{"filters": ("top_p", "min_p")}, {"strict": True}])
def test_a_filter_that_the_server_does_not_honour_is_refused_at_the_start(server):
    with serving(Endpoint(**server)) as endpoint:
        begun(endpoint, filters={"evaluation.top_p": 0.9})
        with pytest.raises(
            InputError, match=r"evaluation.top_k: not honoured by http.*\((ignored|refused)\)\s+got: 20"
        ):
            begun(endpoint, filters={"evaluation.top_k": 20})


def test_a_seed_that_holds_for_one_request_at_a_time_is_none():
    """As where a server sets one generator for all that is under way."""
    with serving(Endpoint()) as endpoint:
        lock, under_way = threading.Lock(), [0]

        def text(prompt, seed):
            with lock:
                under_way[0] += 1
            time.sleep(0.05)
            with lock:
                at_once, under_way[0] = under_way[0], under_way[0] - 1
            return babble(prompt, (seed, time.monotonic()) if at_once > 1 and seed else seed)

        endpoint.text = text
        assert begun(endpoint).features.seed == IGNORED


@pytest.mark.parametrize("server", [{}, {"seed": False}, {"seed": False, "n": False}, {"chat": False}, {"n": False}])
def test_each_completion_is_drawn_once_whatever_the_server_takes(server):
    with serving(Endpoint(delay=lambda body: 0.001 * (body.get("seed", 0) % 7), **server)) as endpoint:
        engine = begun(endpoint)
        found = drawn(engine, asked := requests())
    assert sorted(found) == [(place, sample) for place in range(3) for sample in range(5)]
    for place, request in enumerate(asked):
        assert found[place, 0].text == babble(request.text, None)
        assert len({found[place, sample].text for sample in range(5)}) == 5
        assert all(found[place, sample].sampled.count == 12 for sample in range(5))
    assert engine.metrics()["system/engine_completions"] == 15
    assert engine.metrics()["system/engine_completion_tokens"] == 15 * 12
    together = "seed" in server and "n" not in server
    assert len(endpoint.completions()) == (3 * 2 if together else 15)
    assert engine.metrics()["system/engine_requests"] == len(endpoint.seen)


def test_a_completion_is_reported_when_it_arrives_and_not_when_it_is_fetched():
    arrived = []
    watch = SimpleNamespace(ended=lambda one: arrived.append((one.request, one.sample)), drew=lambda tokens: None)
    with serving(Endpoint()) as endpoint:
        found = begun(endpoint).draw(POLICY, DOMAIN, requests(), replace(SAMPLING, watch=watch))
        next(found)
        limit = time.monotonic() + 20
        while len(arrived) < 15 and time.monotonic() < limit:
            time.sleep(0.01)
        found.close()
    assert sorted(arrived) == [(place, sample) for place in range(3) for sample in range(5)]


def test_a_draw_depends_on_its_key_and_not_on_what_is_asked_with_it():
    with serving(Endpoint()) as endpoint:
        engine = begun(endpoint, concurrency=3)
        all_of_them, alone = drawn(engine, requests(3)), drawn(engine, requests(3)[:1])
    assert {place: all_of_them[place] for place in alone} == alone


@settings(max_examples=tries(15))
@given(
    faults=st.lists(st.sampled_from([fault for fault in FAULTS if fault != "dribble"]), max_size=40),
    seed=st.booleans(),
    n=st.booleans(),
    chat=st.booleans(),
)
def test_whatever_fails_each_completion_is_answered_once_or_counted(faults, seed, n, chat):
    with serving(Endpoint(seed=seed, n=n, chat=chat)) as endpoint:
        engine = begun(endpoint, max_unanswered_rate=1.0)
        before = engine.metrics()["system/engine_requests"]
        endpoint.faults = list(faults)
        found = [(one.request, one.sample, one) for one in engine.draw(POLICY, DOMAIN, requests(2, 3), SAMPLING)]
    assert sorted((place, sample) for place, sample, _ in found) == [(p, s) for p in range(2) for s in range(4)]
    lost = [one for *_, one in found if one.verdict is not None]
    assert all(one.verdict.outcome == "no_verdict" and not one.text for one in lost)
    counts = {name.removeprefix("system/engine_"): value for name, value in engine.metrics().items()}
    assert counts["completions"] + counts.get("unanswered", 0) == 8 and counts.get("unanswered", 0) == len(lost)
    assert counts["requests"] - before == len(endpoint.completions())


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        *(("500", "server_error"), ("429", "rate_limit"), ("cut", "connection"), ("drop", "connection")),
        *(("half", "no_answer"), ("nonsense", "no_answer"), ("no choices", "no_answer"), ("no end", "no_answer")),
        *(("dribble", "timeout"), ("hang", "timeout")),
    ],
)
def test_a_fault_of_the_server_is_retried_and_named(fault, reason):
    with serving(Endpoint()) as endpoint:
        engine = begun(endpoint, timeout_s=0.5 if reason == "timeout" else 120.0)
        endpoint.faults = [fault]
        (one,) = drawn(engine, requests(1, 1, greedy=False)).values()
    assert one.verdict is None and one.text == babble("prompt 0", (endpoint.completions()[0]["seed"], 0))
    found = engine.metrics()[f"system/engine_retries_{reason}"]
    assert found == 1 or (reason == "timeout" and found > 1)  # A busy machine is late by itself.


def test_what_a_server_asks_to_wait_is_waited():
    with serving(Endpoint()) as endpoint:
        engine = begun(endpoint, timeout_s=5)
        endpoint.faults = ["429 0.7"]
        drawn(engine, requests(1, 1, greedy=False))
    first, second = [when for _, body, when in endpoint.seen if "prompt 0" in str(body)]
    assert second - first >= 0.7


def test_unanswered_completions_are_no_failures_of_the_policy_and_past_a_rate_end_the_run():
    with serving(Endpoint(always="500")) as endpoint:
        kept = generate_and_verify(
            POLICY, DOMAIN, Passing(), requests(1, 2), SAMPLING, begun(endpoint, max_unanswered_rate=0.2)
        )
        assert {one.verdict.outcome for one in kept.completions[0]} == {"no_verdict"}
        assert "never answered: asked 3 times, the last time 500" in kept.completions[0][0].verdict.log
        with pytest.raises(GuardStop, match=r"\d+ of \d+ completions were never answered, .* Last reason: .*500"):
            generate_and_verify(
                POLICY, DOMAIN, Passing(), requests(9), SAMPLING, begun(endpoint, max_unanswered_rate=0.2)
            )
    assert threading.active_count() < 20


def test_a_prompt_that_the_server_refuses_for_its_length_is_a_failure():
    with serving(Endpoint(longest=60)) as endpoint:
        asked = [*requests(1), RolloutRequest(requests(1)[0].task, (), (None,), "long " * 20)]
        found = drawn(begun(endpoint), asked)
    assert found[1, 0].verdict.bucket == "prompt_too_long" and found[0, 0].verdict is None


def test_a_request_that_the_server_refuses_in_mid_run_ends_it():
    with serving(Endpoint(always="404")) as endpoint, pytest.raises(GuardStop, match="it refused with 404"):
        drawn(begun(endpoint), requests())


def test_a_stop_ends_it_though_the_server_hangs():
    with serving(Endpoint(always="hang")) as endpoint:
        stop = threading.Event()
        engine = ServerEngine(url=endpoint.url, interrupted=stop.is_set, retries=9, timeout_s=100)
        engine.begin(lambda text: None)
        threading.Timer(0.3, stop.set).start()
        began = time.monotonic()
        with pytest.raises(Interrupted):
            drawn(engine, requests())
    assert time.monotonic() - began < 30


def test_whoever_leaves_early_leaves_nothing_behind():
    with serving(Endpoint()) as endpoint:
        engine = begun(endpoint)
        endpoint.faults = ["", *["hang"] * 99]
        next(iter(engine.draw(POLICY, DOMAIN, requests(), SAMPLING)))
        assert not [one for one in threading.enumerate() if one.name == "engine"]


@pytest.mark.parametrize(
    ("server", "given", "told"),
    [
        ({"key": "correct-key"}, {}, "engine.api_key_env: the server wants another key"),
        ({"key": "correct-key"}, {"api_key_env": "SERVER_CODE"}, "no such key: Bearer ***"),
        ({}, {"model": "other"}, "engine.model: the server has no such model or address"),
        ({"models": ("a", "b")}, {}, "engine.model: the server lists 2 models"),
        ({"models": ()}, {}, "engine.model: the server lists no model"),
        ({"chat": False}, {"api": "chat"}, "engine.url: the server does not answer"),
        ({"longest": 3}, {}, "takes not even a prompt of a few words"),
    ],
)
def test_a_server_that_cannot_be_used_is_refused_at_the_start(server, given, told, monkeypatch):
    monkeypatch.setenv("SERVER_CODE", "wrong-words")
    with serving(Endpoint(**server)) as endpoint, pytest.raises(InputError) as refused:
        begun(endpoint, **given)
    assert told in str(refused.value) and "wrong-words" not in str(refused.value)


def test_a_key_reaches_the_server_and_nothing_else(monkeypatch):
    monkeypatch.setenv("SERVER_CODE", "correct-key")
    with serving(Endpoint(key="correct-key")) as endpoint:
        engine, notes = ServerEngine(url=endpoint.url, api_key_env="SERVER_CODE", **QUICK), []
        assert "correct-key" not in f"{engine.begin(notes.append)} {notes} {engine.metrics()}"


def test_nobody_there_is_bad_input():
    with pytest.raises(InputError, match=r"engine.url: the server does not answer: asked 2 times"):
        ServerEngine(url="http://127.0.0.1:9/v1", model="x", retries=1, backoff_s=0.01).begin(print)


@pytest.mark.parametrize(
    ("server", "text"),
    [
        ({"stop": "kept"}, "the river runs"),
        ({"stop": "ignored"}, "the river runs"),
        ({"stop": "removed", "says_stop": True}, "the river runs"),
        ({"stop": "removed"}, "the river "),
    ],
)
def test_a_stop_string_ends_a_completion_and_stays_where_it_is_known(server, text):
    with serving(Endpoint(text=lambda prompt, seed: "the river runs to the sea", **server)) as endpoint:
        found = drawn(begun(endpoint), requests(1, 0), SamplingParams(LogitFilters(), 6, (), ("runs",)))
    assert found[0, 0].text == text and not found[0, 0].sampled.truncated


def test_a_completion_that_its_domain_calls_complete_ends_there():
    domain = SimpleNamespace(stop_text="`", is_complete=lambda text: text.count("`") == 6)
    with serving(Endpoint(text=lambda prompt, seed: "```x``` and so on and on and on")) as endpoint:
        sampling = SamplingParams(LogitFilters(), 3, ())
        (one,) = begun(endpoint).draw(POLICY, domain, requests(1, 0), sampling)
    assert one.text == "```x```" and not one.sampled.truncated


def test_log_probabilities_come_where_they_are_wanted_and_there():
    for there in (True, False):
        with serving(Endpoint(logprobs=there)) as endpoint:
            found = drawn(begun(endpoint, wants_logprobs=True), requests(1))
        assert found[0, 1].sampled.logprobs == ((-0.5,) * 12 if there else None)
        assert found[0, 1].sampled.count == 12


def test_the_token_limit_truncates():
    with serving(Endpoint()) as endpoint:
        found = drawn(begun(endpoint), requests(1), SamplingParams(LogitFilters(), 5, ()))
    assert all(one.sampled.truncated and one.sampled.count == 5 for one in found.values())


def test_the_system_message_comes_before_each_prompt():
    with serving(Endpoint()) as endpoint:
        drawn(begun(endpoint, system="Be brief."), requests(1))
    assert all(body["messages"][0] == {"role": "system", "content": "Be brief."} for _, body, _ in endpoint.seen[1:])


def test_without_messages_the_system_message_is_the_first_paragraph():
    with serving(Endpoint()) as endpoint:
        drawn(begun(endpoint, api="completions", system="Be brief."), requests(1))
    assert all(body["prompt"].startswith("Be brief.\n\n") for _, body, _ in endpoint.seen[1:])
    policy = served_policy(Model(tokenizer=str(EMBEDDED_MODELS / "tiny"), system="Be brief."), chat=False)
    assert policy.tokenizer.decode(policy.encode_prompt("x")).endswith("Be brief.\n\nx")


def test_lengths_come_from_the_tokenizer_where_one_is_named():
    known, unknown = (
        served_policy(Model(tokenizer=str(EMBEDDED_MODELS / "tiny")), chat=True),
        served_policy(Model(), chat=True),
    )
    assert len(known.encode_prompt("def solve(g):")) > 1 and unknown.encode_prompt("def solve(g):") == []
    with serving(Endpoint(seed=False, usage=False)) as endpoint:
        engine = begun(endpoint)
        assert all(one.sampled.count > 12 for one in drawn(engine, requests(1), policy=known).values())
        assert all(one.sampled.count == 0 for one in drawn(engine, requests(1), policy=unknown).values())


def test_tokens_of_several_choices_add_up_to_what_was_reported():
    with serving(Endpoint(seed=False, text=lambda prompt, seed: "word " * (1 + (seed or 0) % 9))) as endpoint:
        engine = begun(endpoint)
        found = drawn(engine, requests(1, 7, greedy=False))
    assert sum(one.sampled.count for one in found.values()) == engine.metrics()["system/engine_completion_tokens"]
    assert sum(len(one.text.split()) for one in found.values()) == engine.metrics()["system/engine_completion_tokens"]


def test_choices_that_nobody_asked_for_are_counted_and_left_out():
    with serving(Endpoint(surplus=2)) as endpoint:
        engine = begun(endpoint)
        found = [(one.request, one.sample) for one in engine.draw(POLICY, DOMAIN, requests(2, 1), SAMPLING)]
    assert sorted(found) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert engine.metrics()["system/engine_surplus_choices"] == 4 * 2
