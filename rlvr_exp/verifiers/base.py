"""A verifier turns (problem, candidate) into a Verdict; it never sees rewards, prompts or models.

An `Executor` also tells a candidate's output on every case. Voting, hindsight and the keys of novelty read it; a verdict
never depends on it.
"""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import Any, Literal, Self

from rlvr_exp.config import verifier as options
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.futures import WINDOW, completed_future, then

Outcome = Literal["passed", "failed", "rejected", "no_verdict"]
OUTCOMES: tuple[Outcome, ...] = ("passed", "failed", "rejected", "no_verdict")
PROMPT_TOO_LONG = "prompt_too_long"
BUCKETS = (
    "parse",
    "resolve",
    "verify",
    "wrong_answer",
    "side_effect",
    "runtime_error",
    "timeout",
    "out_of_resource",
    "memory",
    "output_limit",
    PROMPT_TOO_LONG,
    "truncated",
)
"""The closed list of reasons for a `failed` outcome."""


@dataclass(frozen=True)
class Verdict:
    """The result of verifying one candidate.

    `no_verdict` means that the grader itself broke, through no fault of the candidate: it never enters a baseline, a
    loss or a success rate. `rejected` is a cheat, with the rule it broke.
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
    """The first failing case, the error, or why there is no verdict; a few lines at most."""
    assertions: int = 0
    """Assertions that held, if the grader counts them."""
    own_assertions: int = 0
    """The assertions among them that only the candidate's own comparison decided."""
    measures: Mapping[str, float] = field(default_factory=dict)
    """Further measures of the candidate, by name. In [0, 1], unless it is a count (rlvr_exp.core.measures)."""
    revised: str = ""
    """The text that passed, if the verifier changed the candidate; the log names the changes. Empty: the candidate itself."""
    outputs: tuple[Any, ...] | None = field(default=None, compare=False, repr=False)
    """The candidate's outputs by case, from `KeepsOutputs`; never cached, never written."""

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

    @property
    def reason(self) -> str:
        """The bucket or the rule; the outcome if there is neither."""
        return self.bucket or self.rule or self.outcome


@dataclass(frozen=True)
class Request:
    """One candidate to judge on one problem. `limits` of the problem or the verifier apply."""

    problem: Any
    candidate: Candidate


class Verifier(options.Verifier, ABC):
    """Judges candidates. Built from the `verifier` group; owns its workers until `close`."""

    name: str
    version: str
    """Changes whenever a verdict could change: part of every cache key and of the manifest."""
    row_format: str = ""
    """The row format it reads, one of rlvr_exp.tasks.formats.rows.FORMATS; empty: the format of its own name."""
    also_judges: tuple[str, ...] = ()
    """Further formats whose problems it judges."""

    @abstractmethod
    def submit(self, request: Request) -> Future[Verdict]:
        """Submit one request; the future completes with its verdict, and never raises for an act of a candidate."""

    def verify(self, requests: Sequence[Request]) -> list[Verdict]:
        """The verdicts on all requests, in their order."""
        verdicts = dict(self.as_ready(requests))
        return [verdicts[index] for index in range(len(verdicts))]

    def as_ready(self, requests: Iterable[Request], window: int = WINDOW) -> Iterator[tuple[int, Verdict]]:
        """(index, verdict) of each request, in the order of completion.

        Requests are read as they are needed, with at most `window` of them in flight: a stream of millions takes no
        more memory than a short one.
        """
        ready: SimpleQueue[tuple[int, Future[Verdict]]] = SimpleQueue()
        waiting = 0
        for index, request in enumerate(requests):
            self.submit(request).add_done_callback(lambda done, index=index: ready.put((index, done)))  # type: ignore[misc]
            waiting += 1
            while waiting >= window or (waiting and not ready.empty()):
                done_index, done = ready.get()
                waiting -= 1
                yield done_index, done.result()
        for _ in range(waiting):
            done_index, done = ready.get()
            yield done_index, done.result()

    def tool(self) -> Mapping[str, str]:
        """The external programs that decide verdicts, by name, with versions: for the manifest and cache keys."""
        return {}

    def metrics(self) -> Mapping[str, float]:
        """Counters since the start, by name. How many requests were judged depends on the cache's content, so a run
        reports them under `system/`."""
        return {}

    def isolation(self) -> dict[str, Any]:
        """The isolation of candidates on this machine, and its gaps: for the manifest."""
        return {"level": "none", "isolated": [], "not_isolated": ["candidates run where this verifier puts them"]}

    def nodes(self) -> list[str]:
        """The nodes of a cluster that judge, each with its number of workers: for the manifest. Empty: this machine judges.

        Raises:
            InputError: a cluster was requested, and no node of it can judge.
        """
        return []

    @abstractmethod
    def close(self) -> None:
        """End the workers. Further calls to `verify` are an error."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Direct(Verifier):
    """A verifier that judges in the caller's process, at once: for problems that need neither sandbox nor workers."""

    @abstractmethod
    def judge(self, request: Request) -> Verdict:
        """The verdict on one request."""

    def submit(self, request: Request) -> Future[Verdict]:
        return completed_future(self.judge(request))

    def close(self) -> None:
        """Nothing to end."""


@dataclass(frozen=True)
class Execution:
    """One run of a candidate on all cases of its problem."""

    verdict: Verdict
    outputs: tuple[Any, ...]
    """By case the plain data that it returned, or the text that it printed; None if it returned nothing or did not
    return. Empty if it was not run."""
    raised: tuple[tuple[str, ...], ...] = ()
    """By case the built-in classes of the exception that it raised, the narrowest first; empty if it raised none."""
    ended: frozenset[int] | None = None
    """The cases that returned, so that None is their value; None: not known, all of them."""
    buckets: tuple[str, ...] = ()
    """By case the bucket of a call that did not return; empty if it returned, or if the candidate ended before it."""

    def returned(self, case: int) -> bool:
        """Whether an output is the value of its case. A case that raised or was not run has the output None, too."""
        return case < len(self.outputs) and (self.ended is None or case in self.ended)


class Executor(ABC):
    """A verifier that can tell a candidate's outputs. Nothing of it is cached: each call is a new run, in a new
    process."""

    @abstractmethod
    def execute(self, request: Request) -> Future[Execution]:
        """Run one candidate; the future never raises for its acts."""


def executor_of(verifier: Verifier, option: str) -> Executor:
    """A run's verifier as an executor.

    Raises:
        InputError: it has only verdicts; `option` needs more.
    """
    if isinstance(verifier, Executor) and isinstance(getattr(verifier, "inner", verifier), Executor):
        return verifier
    what = "needs a verifier that runs programs and keeps what they return"
    raise InputError(InputProblem(option, what, verifier.name, "verifier=python_io"))


REMEMBERED = 8192
"""Candidates whose outputs are kept in memory: those of a round of self-play, in some hundred megabytes."""


class KeepsOutputs(Verifier):
    """Judges by executing, so that its verdicts carry outputs. It owns nothing.

    Args:
        remember: each distinct candidate of a problem is run once, as far as the last ones are remembered.

    Raises:
        InputError: as `executor_of`.
    """

    def __init__(self, verifier: Verifier, option: str, remember: bool = True):
        self._remember = remember
        self._executor = executor_of(verifier, option)
        self._known = OrderedDict[tuple[int, str], tuple[Any, Future[Verdict]]]()
        """By a problem and a text; the problem is kept, whose id would else be another's."""
        self.name, self.version = verifier.name, verifier.version

    def submit(self, request: Request) -> Future[Verdict]:
        if not self._remember or request.candidate.text is None:  # Without a text each has a fault of its own.
            return self._judged(request)
        key = (id(request.problem), request.candidate.text)
        if key not in self._known:
            self._known[key] = request.problem, self._judged(request)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return self._known[key][1]

    def _judged(self, request: Request) -> Future[Verdict]:
        executed = self._executor.execute(request)
        return then(executed, lambda found: replace(found.verdict, outputs=found.outputs or None))

    def close(self) -> None:
        """Nothing to end."""
