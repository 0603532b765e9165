"""Two policies in sequence: a writer writes a body, an annotator adds annotations until Dafny proves it. `cascade_sample`
runs and verifies both.

A body is verified twice: with the annotator's annotations, against the program with the hole and the written code, which
is the cascade's verdict; and, where that is no proof, with the gold's annotations grafted onto it, which shows whether the
body itself is correct. The two verdicts decide which role a failure is attributed to. Never decides rewards.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rlvr_exp.episodes.types import PENDING, Completion
from rlvr_exp.models.policy import Policy
from rlvr_exp.models.role_policies import acting
from rlvr_exp.rollouts.rollout_loop import DeferredVerifier, RolloutRequest, generate_and_verify, verify_completions
from rlvr_exp.rollouts.sampler import SampleKey, SamplingParams
from rlvr_exp.tasks.base import Task
from rlvr_exp.tasks.dafny.two_stage import TwoStage
from rlvr_exp.verifiers.base import Verdict, Verifier
from rlvr_exp.verifiers.dafny.body_rules import body_violation

WRITER, ANNOTATOR = ROLES = ("writer", "annotator")
FAILURES = {"parse": "syntax", "resolve": "syntax", "timeout": "timeout", "verify": "semantic"}
"""Buckets of a verdict in three kinds; every other bucket is its own kind."""
TOO_LONG = Verdict("failed", "prompt_too_long", log="the prompt with the body is longer than the annotator accepts")


@dataclass(frozen=True)
class Cascade:
    """The policies of both roles, the verifier and the sampling: all that a cascade needs except its tasks."""

    domain: TwoStage
    policies: Mapping[str, Policy]
    verifier: Verifier
    sampling: Mapping[str, SamplingParams]
    """Sampling parameters of each role."""
    max_prompt_tokens: int
    attempts: int = 1
    """The most attempts to annotate a body; each retry gets the verifier's log of the attempt before it."""
    graft_all: bool = False
    """Bodies that an annotation proves are verified with the gold's annotations as well."""


@dataclass(frozen=True)
class CascadeRequest:
    """A task, and the random keys of everything sampled for it; a key of None is greedy."""

    task: Task
    writer: tuple[SampleKey, ...]
    """The key of each body. Empty: the gold's body is annotated."""
    annotator: tuple[tuple[SampleKey, ...], ...]
    """The keys of the annotations of each body."""
    shared: bool = False
    """Equal bodies share the annotations of the first among them."""


@dataclass(frozen=True)
class CascadeResult:
    """A body with one annotation of it, verified."""

    task: Task
    body: str | None
    """The body as written; None where the completion holds no body."""
    written: Completion | None
    """The writer's completion, verified with the gold's annotations or proved by others; None: the gold's own body."""
    annotated: tuple[Completion, ...]
    """The annotator's attempts; empty: there was nothing to annotate."""
    body_proved: bool
    """Some sampled annotations, or the gold's, prove the body."""
    fault: Verdict | None = None
    """Why there was nothing to annotate."""

    @property
    def writer_text(self) -> str:
        return "" if self.written is None else self.written.text

    @property
    def annotator_text(self) -> str:
        """The text of the last attempt."""
        return self.annotated[-1].text if self.annotated else ""

    @property
    def verdict(self) -> Verdict:
        """The verdict of the cascade."""
        return self.annotated[-1].verdict if self.fault is None else self.fault

    @property
    def bucket(self) -> str | None:
        return self.verdict.bucket

    @property
    def failure(self) -> str | None:
        """syntax, timeout or semantic; otherwise the bucket, `rejected` or `no_verdict`; None for a proof."""
        if self.verdict.outcome == "passed":
            return None
        return FAILURES.get(self.bucket or "", self.bucket or self.verdict.outcome)

    @cached_property
    def failed_by(self) -> str | None:
        """The role at fault; None for a proof, and where there is no verdict.

        A body that cannot be annotated, or that is not valid Dafny by itself, is the writer's fault. So is a body that stays
        unproved and that the gold's annotations do not prove either, as far as these can show: another algorithm may need
        other annotations. Every other failure is the annotator's.
        """
        if self.verdict.outcome in ("passed", "no_verdict"):
            return None
        if self.fault is not None:
            return WRITER
        alone = None if self.written is None else FAILURES.get(self.written.verdict.bucket or "")
        hopeless = alone == "syntax" or self.failure in ("semantic", "timeout")
        return WRITER if hopeless and not self.body_proved else ANNOTATOR

    @property
    def seconds(self) -> Mapping[str, float]:
        """Wall seconds of each role, shared with its batch; the proof counts for the annotator."""
        last = {ANNOTATOR: sum(one.seconds for one in self.annotated)}
        return last if self.written is None else {WRITER: self.written.drawn, **last}


@dataclass(frozen=True)
class Cascades:
    """The results of a `CascadeRequest`."""

    request: CascadeRequest
    bodies: tuple[str | None, ...]
    """The body in each of the writer's completions; without a writer only the gold's."""
    written: tuple[Completion, ...]
    faults: tuple[Verdict | None, ...]
    """The verdict of each body that cannot be annotated."""
    annotated: tuple[tuple[tuple[Completion, ...], ...], ...]
    """The annotations of each body, and the attempts of each annotation. Bodies that share annotations hold the same."""
    prompts: tuple[tuple[str, tuple[int, ...]], ...]
    """The annotator's prompt of each body, as text and as tokens; empty where there is nothing to annotate."""

    def own(self) -> list[int]:
        """Indices of bodies with their own annotations: among equal bodies that share theirs, the first."""
        firsts = {id(each): i for i, each in reversed(list(enumerate(self.annotated))) if each}
        return sorted(firsts.values())

    def proofs_known(self) -> "Cascades":
        """The same results, where a body with a pending verdict takes the verdict that is certain: that of its fault, or
        of annotations that prove it."""
        known = (self.alone(i, proved=True) if one.verdict == PENDING else one for i, one in enumerate(self.written))
        return replace(self, written=tuple(known))

    def alone(self, place: int, proved: bool = False) -> Completion:
        """The writer's completion with its verdict independent of the annotator: that of its fault, otherwise that with the
        gold's annotations. `proved`: a proof by the annotator counts as well."""
        one = self.written[place]
        if self.faults[place] is not None:
            return replace(one, verdict=self.faults[place])
        if not proved or one.verdict.outcome == "passed":
            return one
        alike = [i for i, body in enumerate(self.bodies) if body == self.bodies[place]]
        proofs = (each[-1].verdict for i in alike for each in self.annotated[i])
        found = next((verdict for verdict in proofs if verdict.outcome == "passed"), None)
        return one if found is None else replace(one, verdict=found)

    def proved(self, place: int) -> bool:
        """Whether any annotations prove the body: the gold's own, or annotations sampled for an equal body."""
        return not self.written or self.alone(place, proved=True).verdict.outcome == "passed"

    def results(self, place: int) -> tuple[CascadeResult, ...]:
        """The cascades of a body; a single result without annotations where the body cannot be annotated."""
        written = self.written[place] if self.written else None
        made = (self.request.task, self.bodies[place], written)
        if self.faults[place] is not None:
            return (CascadeResult(*made, (), False, self.faults[place]),)
        proved = self.proved(place)
        return tuple(CascadeResult(*made, attempts, proved) for attempts in self.annotated[place])


def cascade_sample(
    cascade: Cascade, requests: Sequence[CascadeRequest], seconds: dict[str, float] | None = None
) -> list[Cascades]:
    """Run writer, annotator and verifier for a batch of tasks. All ranks call this together.

    Args:
        seconds: receives the wall seconds of `generate` and `verify` of each role, by `ROLE/PHASE`.
    """
    timed = {} if seconds is None else seconds
    written = _written(cascade, requests, timed)
    drafts = [_Draft.of(cascade, one, completions) for one, completions in zip(requests, written, strict=True)]
    return _grafted(cascade, _annotated(cascade, drafts, timed), timed)


def _grafted(cascade: Cascade, made: Sequence[Cascades], timed: dict[str, float]) -> list[Cascades]:
    """Verify pending bodies: by their fault, by a proof, otherwise with the gold's annotations."""
    known = [one if cascade.graft_all else one.proofs_known() for one in made]
    open_ones = [each for one in known for each in one.written if each.verdict == PENDING]
    judged: dict[int, Completion] = {}
    if open_ones:
        found = verify_completions(cascade.verifier, open_ones)
        judged = {id(one): now for one, (now,) in zip(open_ones, found.completions, strict=True)}
        timed[f"{WRITER}/verify"] = timed.get(f"{WRITER}/verify", 0.0) + found.seconds["verify"]
    return [replace(one, written=tuple(judged.get(id(each), each) for each in one.written)) for one in known]


def resample_annotations(
    cascade: Cascade, made: Sequence[Cascades], keys: Sequence[tuple[tuple[SampleKey, ...], ...]], timed: dict[str, float]
) -> list[Cascades]:
    """The same bodies under newly sampled annotations. `keys`: for each task the keys of the annotations of each body."""
    requests = [replace(one.request, annotator=each) for one, each in zip(made, keys, strict=True)]
    drafts = [
        _Draft(cascade, request, one.written, one.bodies, one.faults, one.prompts)
        for request, one in zip(requests, made, strict=True)
    ]
    return _annotated(cascade, drafts, timed)


def _annotated(cascade: Cascade, drafts: Sequence["_Draft"], timed: dict[str, float]) -> list[Cascades]:
    """Sample and verify the annotations of every draft."""
    wanted = [(place, i) for place, draft in enumerate(drafts) for i in draft.to_annotate()]
    tasks = [drafts[place].task_of(i) for place, i in wanted]
    keys = [drafts[place].request.annotator[i] for place, i in wanted]
    requests = [
        RolloutRequest(task, drafts[place].prompts[i][1], each)
        for (place, i), task, each in zip(wanted, tasks, keys, strict=True)
    ]
    first = _rollouts(cascade, ANNOTATOR, requests, timed)
    tries = [[(one,) for one in completions] for completions in first]
    for number in range(1, cascade.attempts):
        _retry(cascade, requests, tries, number, timed)
    found = {at: tuple(each) for at, each in zip(wanted, tries, strict=True)}
    return [
        draft.sampled({i: each for (at, i), each in found.items() if at == place}) for place, draft in enumerate(drafts)
    ]


def _retry(
    cascade: Cascade,
    requests: Sequence[RolloutRequest],
    tries: list[list[tuple[Completion, ...]]],
    number: int,
    timed: dict[str, float],
) -> None:
    """Retry each annotation that failed, with the verifier's log as feedback; skip it where the prompt is too long."""
    wanted, retries = [], []
    for at, request in enumerate(requests):
        for sample, attempts in enumerate(tries[at]):
            verdict = attempts[-1].verdict
            if verdict.outcome not in ("failed", "rejected"):
                continue
            text = cascade.domain.annotator.retry_prompt(request.task, attempts[-1].text, verdict.log)
            ids = tuple(cascade.policies[ANNOTATOR].encode_prompt(text))
            key = request.keys[sample]
            if len(ids) <= cascade.max_prompt_tokens:
                wanted.append((at, sample))
                retries.append(RolloutRequest(request.task, ids, (None if key is None else (*key, "again", number),)))
    for (at, sample), (one,) in zip(wanted, _rollouts(cascade, ANNOTATOR, retries, timed), strict=True):
        tries[at][sample] = (*tries[at][sample], replace(one, sample=sample))


def _written(cascade: Cascade, requests: Sequence[CascadeRequest], timed: dict[str, float]) -> list[tuple[Completion, ...]]:
    domain, policy = cascade.domain.writer, cascade.policies[WRITER]
    places = [place for place, one in enumerate(requests) if one.writer]
    rollouts = [
        RolloutRequest(one.task, tuple(policy.encode_prompt(domain.prompt(one.task))), one.writer)
        for one in (requests[place] for place in places)
    ]
    found = dict(zip(places, _rollouts(cascade, WRITER, rollouts, timed, DeferredVerifier(cascade.verifier)), strict=True))
    return [found.get(place, ()) for place in range(len(requests))]


def _rollouts(
    cascade: Cascade,
    role: str,
    requests: Sequence[RolloutRequest],
    timed: dict[str, float],
    verifier: DeferredVerifier | None = None,
) -> list[tuple[Completion, ...]]:
    """`verifier`: used in place of the cascade's own."""
    if not requests:
        return []
    domain = cascade.domain.writer if role == WRITER else cascade.domain.annotator
    with acting(cascade.policies, role) as policy:
        result = generate_and_verify(policy, domain, verifier or cascade.verifier, requests, cascade.sampling[role])
    for name, value in result.seconds.items():
        timed[f"{role}/{name}"] = timed.get(f"{role}/{name}", 0.0) + value
    return list(result.completions)


@dataclass(frozen=True)
class _Draft:
    """A task between its two stages."""

    cascade: Cascade
    request: CascadeRequest
    written: tuple[Completion, ...]
    bodies: tuple[str | None, ...]
    faults: tuple[Verdict | None, ...]
    prompts: tuple[tuple[str, tuple[int, ...]], ...]

    @classmethod
    def of(cls, cascade: Cascade, request: CascadeRequest, written: tuple[Completion, ...]) -> "_Draft":
        domain, policy = cascade.domain, cascade.policies[ANNOTATOR]
        bodies = [domain.body(one.text, request.task).text for one in written] or [domain.gold_body(request.task)]
        faults = [_fault(domain, one, body) for one, body in zip(written, bodies, strict=True)] if written else [None]
        prompts: list[tuple[str, tuple[int, ...]]] = []
        for i, body in enumerate(bodies):
            text = "" if faults[i] is not None else domain.annotator.prompt(domain.annotation(request.task, body, None))
            prompts.append((text, tuple(policy.encode_prompt(text)) if text else ()))
            if len(prompts[i][1]) > cascade.max_prompt_tokens:
                faults[i], prompts[i] = TOO_LONG, ("", ())
        return cls(cascade, request, written, tuple(bodies), tuple(faults), tuple(prompts))

    def first_of(self, place: int) -> int:
        """The index of the body whose annotations this body uses."""
        return self.bodies.index(self.bodies[place]) if self.request.shared else place

    def to_annotate(self) -> list[int]:
        return [i for i, fault in enumerate(self.faults) if fault is None and self.first_of(i) == i]

    def task_of(self, place: int) -> Task:
        domain, task = self.cascade.domain, self.request.task
        body = self.bodies[place]
        return domain.annotation(task, body, replace(task.problem, keep=domain.program(task, body)))

    def sampled(self, annotated: Mapping[int, tuple[tuple[Completion, ...], ...]]) -> Cascades:
        each = [() if fault is not None else annotated[self.first_of(i)] for i, fault in enumerate(self.faults)]
        return Cascades(self.request, self.bodies, self.written, self.faults, tuple(each), self.prompts)


def _fault(domain: TwoStage, written: Completion, body: str | None) -> Verdict | None:
    """Why a writer's completion cannot be annotated: it was truncated, holds no body, or a body that is not allowed."""
    if written.truncated or body is None:
        return written.verdict if written.verdict.outcome != "passed" else None
    violation = body_violation(domain.program(written.task, None), domain.program(written.task, body))
    return None if violation is None else Verdict("rejected", rule=violation.rule, log=violation.log)
