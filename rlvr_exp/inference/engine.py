"""Solves tasks: samples, verifies, retries with the verifier's feedback, and keeps the best completion.

Every draw takes its number from (seed, task id, attempt, sample, position), so that a task's answer does not depend on
the other tasks of its batch. Owns no verifier and writes no file.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from rlvr_exp.config.infer import Infer
from rlvr_exp.config.model import Model
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.episodes.types import unsampled
from rlvr_exp.inference.beams import Beams
from rlvr_exp.inference.inputs import InferenceTask, from_row
from rlvr_exp.inference.layout import laid_out
from rlvr_exp.inference.scoring import logprob
from rlvr_exp.inference.solution import Attempt, Solution, rank
from rlvr_exp.inference.syntax import fault_of
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.rollout_loop import RolloutRequest, generate_and_verify
from rlvr_exp.rollouts.sampler import SampleKey, SamplingParams, stream
from rlvr_exp.tasks.arc.domain import Arc
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.tasks.row_formats import Fault, Fields
from rlvr_exp.verifiers.base import Direct, Request, Verdict, Verifier

TOO_LONG = Verdict("failed", bucket="prompt_too_long", log="the prompt is longer than the policy takes; it is never cut")


class NullVerifier(Direct):
    """Stands in where no verifier is given: it only detects completions without a candidate."""

    name, version = "none", "1"

    def judge(self, request: Request) -> Verdict:
        fault = request.candidate.text is None
        return Verdict("failed", "parse", log=request.candidate.fault) if fault else Verdict("no_verdict")


@dataclass
class _Search:
    """One task being solved."""

    item: InferenceTask
    attempts: list[Attempt] = field(default_factory=list)
    active: bool = True


class Engine:
    """A policy that solves tasks.

    Args:
        options: how a task is searched; files and the choice of tasks are not used.
        limits: `max_prompt_tokens` and `max_completion_tokens`, as a `model` node has them.
        verifier: verifies completions, and belongs to the caller; None: they are parsed and not verified.
        domain: words and reads a `Task` given alone. Rows bring their own; ARC rows are worded by it where it is an Arc.
        seed: of the draws.
    """

    def __init__(
        self,
        policy: Policy,
        options: Infer,
        limits: Model,
        verifier: Verifier | None = None,
        domain: Domain | None = None,
        seed: int = 0,
    ):
        self.policy, self.options, self.seed = policy, options, seed
        self._verifier, self._domain = verifier or NullVerifier(), domain
        self._judges = verifier is not None
        self._room = min(limits.max_prompt_tokens, policy.max_tokens - limits.max_completion_tokens)
        self._sampling = SamplingParams.of(options, policy, limits.max_completion_tokens, options.batch_size, domain)
        self._stream = Beams(options.width) if options.decoding == "beam" else stream
        self._arc = domain if isinstance(domain, Arc) else Arc()

    def solve(self, task: InferenceTask | Task | Fields) -> Solution:
        """Solve one task: a row (see rlvr_exp.inference.inputs), or a Task of the engine's domain.

        Raises:
            InputError: the row is not a task, or a Task was given and no domain.
            GuardStop: a guarded verifier has failed too often.
        """
        return next(self.solve_all([task]))

    def solve_all(self, tasks: Iterable[InferenceTask | Task | Fields]) -> Iterator[Solution]:
        """Solve any number of tasks, in order; `options.batch_size` completions are drawn at once. See `solve`."""
        items = map(self.inference_task, tasks)
        while batch := list(islice(items, self.options.at_once)):
            yield from self._solved(batch)

    def inference_task(self, task: InferenceTask | Task | Fields) -> InferenceTask:
        """A task with its domain. Raises InputError."""
        if isinstance(task, InferenceTask):
            return task
        if isinstance(task, Mapping):
            try:
                return from_row(task, self._arc)
            except Fault as fault:
                raise InputError(InputProblem("task", str(fault))) from fault
        if self._domain is None:
            remedy = "load(..., domain=DOMAIN), the one that the task is from"
            what = "a Task is worded by its domain, and none was given"
            raise InputError(InputProblem("task", what, task.id, remedy=remedy))
        return InferenceTask(task.id, task, self._domain)

    def _solved(self, items: Sequence[InferenceTask]) -> list[Solution]:
        searches = [_Search(one) for one in items]
        for attempt in range(1, self.options.max_attempts + 1):
            self._attempt(attempt, [one for one in searches if one.active])
        return [self._solution(one) for one in searches]

    def _attempt(self, attempt: int, searches: Sequence[_Search]) -> None:
        """Sample each task once; a search ends with a passing completion, a missing verdict, or a prompt too long."""
        by_domain: dict[int, list[tuple[_Search, RolloutRequest]]] = defaultdict(list)
        for search in searches:
            request = self._request(attempt, search)
            search.active = len(request.prompt) <= self._room
            if search.active:
                by_domain[id(search.item.domain)].append((search, request))
        for pending in by_domain.values():
            domain, requests = pending[0][0].item.domain, [request for _, request in pending]
            rollouts = generate_and_verify(self.policy, domain, self._verifier, requests, self._sampling, self._stream)
            for (search, request), completions in zip(pending, rollouts.completions, strict=True):
                best = max(completions, key=rank)  # The first of the best.
                search.attempts.append(Attempt(attempt, request.prompt, best))
                search.active = best.verdict.outcome not in ("passed", "no_verdict")

    def _request(self, attempt: int, search: _Search) -> RolloutRequest:
        task, domain = search.item.task, search.item.domain
        last = search.attempts[-1].completion if search.attempts else None
        words = domain.prompt(task) if last is None else domain.retry_prompt(task, last.text, feedback(last.verdict))
        return RolloutRequest(task, tuple(self.policy.encode_prompt(words)), self._keys(task, attempt))

    def _keys(self, task: Task, attempt: int) -> tuple[SampleKey, ...]:
        if self.options.decoding == "greedy":
            return (None,)
        return tuple((self.seed, "infer", task.id, attempt, sample) for sample in range(self.options.samples))

    def _solution(self, search: _Search) -> Solution:
        item = search.item
        if not search.attempts:
            return Solution(item.id, unsampled(item.task, 0, TOO_LONG), attempt=0, attempts=0, verified=True)
        best = max(search.attempts, key=lambda one: rank(one.completion))
        found = best.completion
        return Solution(
            id=item.id,
            completion=found,
            attempt=best.attempt,
            attempts=len(search.attempts),
            verified=self._judges or found.verdict.outcome != "no_verdict",
            fault=fault_of(item.task.problem, found.candidate),
            logprob=logprob(self.policy.model, best.prompt, found.sampled.ids),
            earlier=tuple(one for one in search.attempts if one is not best),
            formatted=laid_out(item.task.problem, found.candidate) if self.options.format else None,
        )


def feedback(verdict: Verdict) -> str:
    """The feedback of a verdict for the next prompt."""
    return f"{verdict.reason}: {verdict.log}" if verdict.log else verdict.reason


def settings_of(options: Infer) -> dict[str, Any]:
    """The options that decide answers, next to the tasks, the policy and the verifier."""
    names = ("decoding", "temperature", "top_k", "top_p", "min_p", "stop", "samples", "max_attempts", "verify", "format")
    found = {name: getattr(options, name) for name in names}
    return found | ({"beams": options.width} if options.decoding == "beam" else {})
