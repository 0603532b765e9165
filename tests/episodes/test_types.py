"""A completion as plain values: what was known comes back, and what a file leaves out is not invented."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvr_exp.episodes.types import STATE, UNPARSED, Completion, TokenCount, TokenSample, from_plain, to_plain
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.verifiers.base import BUCKETS, Verdict

TASK = Task("t1", "flip", math.nan, inputs=None, problem=None)
COUNTS = {"passed": st.integers(0, 9), "total": st.integers(9, 20), "log": st.text(max_size=20)}
VERDICTS = st.one_of(
    st.builds(Verdict, st.just("passed"), assertions=st.integers(0, 9), own_assertions=st.integers(0, 9), **COUNTS),
    st.builds(Verdict, st.just("failed"), st.sampled_from(BUCKETS), **COUNTS),
    st.builds(Verdict, st.just("rejected"), st.none(), st.text(min_size=1), **COUNTS),
    st.builds(Verdict, st.just("no_verdict"), log=st.text()),
)
KEPT = st.none() | st.just(((1, 2), (3,)))
SAMPLES = st.builds(TokenSample, st.just((1, 3)), st.just((-0.5, -1 / 3)), st.booleans(), KEPT)
CANDIDATES = st.builds(Candidate, st.none() | st.text(), st.text())
COMPLETIONS = st.builds(Completion, st.just(TASK), st.integers(0, 9), SAMPLES, st.text(), CANDIDATES, VERDICTS)


def through_json(values):
    return json.loads(json.dumps(values, allow_nan=False))


@settings(deadline=None)
@given(COMPLETIONS)
def test_a_completion_comes_back(completion):
    plain = through_json(to_plain(completion))
    assert from_plain(plain) == from_plain({name: plain[name] for name in STATE}, TASK) == completion


@settings(deadline=None)
@given(COMPLETIONS)
def test_of_a_row_without_tokens_and_candidate_the_rest_is_known(completion):
    row = {name: value for name, value in to_plain(completion).items() if name not in ("sampled", "candidate")}
    count = TokenCount(completion.tokens, completion.truncated)
    assert from_plain(through_json(row)) == replace(completion, sampled=count, candidate=UNPARSED)
    verdict = replace(completion.verdict, rule="" if completion.verdict.rule else None, passed=0, total=0, assertions=0)
    least = ("task", "family", "sample", "completion", "tokens", "outcome", "bucket", "log")
    found = from_plain({name: row[name] for name in least})
    assert found.verdict == replace(verdict, own_assertions=0)
    assert found.truncated == (verdict.bucket == "truncated")


def test_what_the_machine_decides_is_not_held():
    verdict = Verdict("passed", seconds=2.5, cached=True)
    plain = to_plain(Completion(TASK, 0, TokenCount(1, False), "", UNPARSED, verdict, seconds=0.25))
    assert plain["seconds"] == 0.25 and "cached" not in plain and from_plain(plain).verdict == Verdict("passed")


def test_a_verdict_that_cannot_be_is_refused():
    row = to_plain(Completion(TASK, 0, TokenCount(1, False), "", UNPARSED, Verdict("passed")))
    with pytest.raises(ValueError, match="bucket"):
        from_plain({**row, "outcome": "failed"})
