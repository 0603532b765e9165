"""Verified completions for the tests of rewards."""

from hypothesis import strategies as st

from rlvr_exp.episodes.types import Completion, TokenCount
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.verifiers.base import BUCKETS, Verdict

TASK = Task(id="t", family="f", difficulty=0.0, inputs=None, problem=None)
TOTAL = 20


def answer(verdict: Verdict, tokens: int = 10, text: str | None = "x") -> Completion:
    return Completion(TASK, 0, TokenCount(tokens, False), text or "", Candidate(text), verdict)


def passed(tokens: int = 10) -> Completion:
    return answer(Verdict("passed", passed=TOTAL, total=TOTAL), tokens)


def failed(bucket: str = "wrong_answer", share: int = 0, tokens: int = 10) -> Completion:
    return answer(Verdict("failed", bucket, passed=share, total=TOTAL), tokens)


def rejected(tokens: int = 10) -> Completion:
    return answer(Verdict("rejected", rule="cheat", passed=TOTAL, total=TOTAL), tokens)


def unknown() -> Completion:
    return answer(Verdict("no_verdict", total=TOTAL))


TOKENS = st.integers(0, 100_000)
CORRECT = st.builds(passed, TOKENS)
WRONG = st.builds(failed, st.sampled_from(BUCKETS), st.integers(0, TOTAL), TOKENS) | st.builds(rejected, TOKENS)
