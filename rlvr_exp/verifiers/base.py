"""What is true. A verifier turns (problem, candidate) into a Verdict; it never sees rewards, prompts or models."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass
from typing import Any, Literal

from rlvr_exp.tasks.base import Candidate

Outcome = Literal["passed", "failed", "rejected", "no_verdict"]
OUTCOMES: tuple[Outcome, ...] = ("passed", "failed", "rejected", "no_verdict")
BUCKETS = (
    "parse",
    "resolve",
    "verify",
    "wrong_answer",
    "runtime_error",
    "timeout",
    "memory",
    "output_limit",
    "prompt_too_long",
    "truncated",
)
"""The closed list of reasons for a `failed` outcome (DESIGN.md, "Verdicts")."""


@dataclass(frozen=True)
class Verdict:
    """A judgement.

    `no_verdict` means that the grader itself broke without the candidate's hand: it never enters a baseline, a loss or
    a success rate. `rejected` is a cheat, with the rule it broke.
    """

    outcome: Outcome
    bucket: str | None = None
    """One of BUCKETS when the outcome is `failed`, else None."""
    rule: str | None = None
    """The guard's name when the outcome is `rejected`, else None."""
    passed: int = 0
    total: int = 0
    seconds: float = 0.0
    """CPU seconds of the candidate, as measured by the grader."""
    cached: bool = False
    log: str = ""
    """The first failing case, the error, or why there is no verdict; at most a few lines."""

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise ValueError(f"Verdict.outcome: got {self.outcome!r}, allowed {OUTCOMES}")
        fits = self.bucket in BUCKETS if self.outcome == "failed" else self.bucket is None
        if not fits:
            raise ValueError(f"Verdict.bucket: got {self.bucket!r} for {self.outcome!r}, allowed {BUCKETS} iff failed")
        if (self.outcome == "rejected") != (self.rule is not None):
            raise ValueError(f"Verdict.rule: got {self.rule!r} for {self.outcome!r}, set it iff rejected")

    @property
    def score(self) -> float:
        """Share of cases passed, in [0, 1]; 0 unless the candidate was judged."""
        return self.passed / self.total if self.total and self.outcome in ("passed", "failed") else 0.0


@dataclass(frozen=True)
class Request:
    """One thing to judge. `limits` of the problem or the verifier apply."""

    problem: Any
    candidate: Candidate


class Verifier(ABC):
    """Judges candidates. Built from the `verifier` group; owns its workers until `close`."""

    name: str
    version: str
    """Changes whenever a verdict could: part of every cache key and of the manifest."""

    @abstractmethod
    def submit(self, request: Request) -> Future[Verdict]:
        """Ask for one verdict; it comes when it is ready. The future never raises for what a candidate does."""

    def verify(self, requests: Sequence[Request]) -> list[Verdict]:
        """Judge all, in the order given."""
        futures = [self.submit(request) for request in requests]
        return [future.result() for future in futures]

    def as_ready(self, requests: Sequence[Request]) -> Iterator[tuple[int, Verdict]]:
        """(index, verdict) of each request, in the order in which they are done."""
        indices: dict[Future[Verdict], list[int]] = {}
        for index, request in enumerate(requests):
            indices.setdefault(self.submit(request), []).append(index)
        for future in as_completed(indices):
            for index in indices[future]:
                yield index, future.result()

    def tool(self) -> Mapping[str, str]:
        """For the manifest and the cache's keys: the outside programs that decide, by name, with their versions."""
        return {}

    def metrics(self) -> Mapping[str, float]:
        """Counters since the start: requests, judged, joined, hits of the cache."""
        return {}

    def isolation(self) -> dict[str, Any]:
        """For the manifest: what this machine isolates candidates from, and what it does not."""
        return {"level": "none", "isolated": [], "not_isolated": ["candidates run where this verifier puts them"]}

    @abstractmethod
    def close(self) -> None:
        """End the workers. Further calls to `verify` are an error."""

    def __enter__(self) -> "Verifier":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
