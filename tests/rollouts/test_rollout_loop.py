"""Completions come back in the order of their requests, and are verified while others are still being sampled."""

import threading
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
import torch
from rollout_models import EOS, keys, prompts, tiny_model

from rlvr_exp.core.errors import GuardStop
from rlvr_exp.rollouts.engines import local
from rlvr_exp.rollouts.engines.base import RolloutRequest
from rlvr_exp.rollouts.run_episodes import generate_and_verify
from rlvr_exp.rollouts.sampler import sample_groups
from rlvr_exp.rollouts.sampling_params import LogitFilters, SamplingParams
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Direct, Request, Verdict, Verifier
from rlvr_exp.verifiers.guarded import NoVerdictGuard

SAMPLING = SamplingParams(LogitFilters(), 30, (EOS,), batch_size=9)
POLICY = SimpleNamespace(model=tiny_model(), decode=lambda ids: " ".join(map(str, ids)))
DOMAIN = SimpleNamespace(parse=lambda text, task: Candidate(text))


class Counting(Direct):
    """Passes candidates with an even number of tokens; `silent`: has no verdict at all."""

    name, version = "counting", "1"

    def __init__(self, silent: bool = False):
        self.silent, self.seen = silent, []

    def judge(self, request: Request) -> Verdict:
        self.seen.append((request.problem, request.candidate.text))
        if self.silent:
            return Verdict("no_verdict", log="broken")
        even = len(request.candidate.text.split()) % 2 == 0
        return Verdict("passed") if even else Verdict("failed", "wrong_answer")


def requests(count: int = 5, size: int = 4) -> list[RolloutRequest]:
    rows = zip(prompts(count), keys(count, size), strict=True)
    return [RolloutRequest(SimpleNamespace(id=f"t{i}", problem=i), tuple(p), tuple(k)) for i, (p, k) in enumerate(rows)]


def test_every_completion_belongs_to_its_request_and_key():
    asked, verifier = requests(), Counting()
    got = generate_and_verify(POLICY, DOMAIN, verifier, asked, SAMPLING)
    plain = sample_groups(POLICY.model, [q.prompt for q in asked], [q.keys for q in asked], SAMPLING)
    for request, answers, drawn in zip(asked, got.completions, plain, strict=True):
        assert [one.sampled.ids for one in answers] == [one.ids for one in drawn]
        assert [one.sample for one in answers] == list(range(4))
        for one in answers:
            assert one.task is request.task
            assert one.text == one.candidate.text == " ".join(map(str, one.sampled.ids))
            passed = not one.sampled.truncated and len(one.sampled.ids) % 2 == 0
            assert (one.verdict.outcome == "passed") == passed


def test_truncated_completions_fail_unverified():
    verifier = Counting()
    got = generate_and_verify(POLICY, DOMAIN, verifier, requests(), SAMPLING)
    flat = [one for row in got.completions for one in row]
    cut = [one for one in flat if one.sampled.truncated]
    assert cut
    assert {one.verdict.bucket for one in cut} == {"truncated"}
    assert len(verifier.seen) == len(flat) - len(cut)


def test_completions_are_submitted_while_others_are_sampled(monkeypatch):
    """Completions that have ended reach the verifier before the sampler continues."""
    handed, verifier = [], Counting()
    real = local.stream

    def watched(*given):
        for one in real(*given):
            yield one
            handed.append((one.sampled.truncated, len(verifier.seen)))

    monkeypatch.setattr(local, "stream", watched)
    generate_and_verify(POLICY, DOMAIN, verifier, requests(), SAMPLING)
    submitted = 0
    for truncated, seen in handed:
        submitted += not truncated
        assert seen == submitted


def test_a_small_model_samples_with_one_thread_and_the_others_come_back(monkeypatch):
    seen, real, before = set(), local.stream, torch.get_num_threads()

    def watched(*given):
        seen.add(torch.get_num_threads())
        yield from real(*given)

    monkeypatch.setattr(local, "stream", watched)
    try:
        torch.set_num_threads(2)
        generate_and_verify(POLICY, DOMAIN, Counting(), requests(2), SAMPLING)
        assert (seen, torch.get_num_threads()) == ({1}, 2)
        seen.clear()
        monkeypatch.setattr(local, "SMALL", 10)
        generate_and_verify(POLICY, DOMAIN, Counting(), requests(2), SAMPLING)
        assert (seen, torch.get_num_threads()) == ({2}, 2)
    finally:
        torch.set_num_threads(before)


def test_late_verdicts_in_another_order_find_their_completions():
    class Late(Verifier):
        name, version = "late", "1"

        def submit(self, request):
            future: Future = Future()
            tokens = len(request.candidate.text.split())
            verdict = Verdict("failed", "wrong_answer", log=request.candidate.text)
            threading.Timer(0.2 / tokens, future.set_result, [verdict]).start()
            return future

        def close(self):
            pass

    got = generate_and_verify(POLICY, DOMAIN, Late(), requests(3), SAMPLING)
    judged = [one for row in got.completions for one in row if not one.sampled.truncated]
    assert judged
    assert all(one.verdict.log == one.text for one in judged)
    assert got.seconds["verify"] > 0
    assert all(0 < one.seconds <= sum(got.seconds.values()) for one in judged)


def test_a_grader_without_verdicts_stops_the_run():
    with pytest.raises(GuardStop, match="had no verdict"):
        generate_and_verify(POLICY, DOMAIN, NoVerdictGuard(Counting(silent=True), 0.1), requests(8, 8), SAMPLING)


def test_no_requests_no_completions():
    assert generate_and_verify(POLICY, DOMAIN, Counting(), [], SAMPLING).completions == ()
