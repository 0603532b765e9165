"""Episodes of given tasks, generated and verified: one runner for training, evaluation and inference, for every environment.

`generate_and_verify` samples the completions of requests. A completion goes to the verifier when it ends, while the others
are still being sampled. `EpisodeRunner` answers the requests of all live episodes together, wave by wave, so that none
waits for another. Tasks are chosen, and rewards are computed, elsewhere.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rlvr_exp.core.phase import GENERATE, VERIFY, go_over, phase
from rlvr_exp.episodes.environment import Environment, Run
from rlvr_exp.episodes.episode import Answer, Episode, Execute, Judge, Request, Sample, Turn
from rlvr_exp.episodes.types import PENDING, TRUNCATED, Completion, TokenCount, TokenSample, unsampled
from rlvr_exp.models.policy import Policy, acting
from rlvr_exp.rollouts.distributed import (
    all_gather_object,
    all_gather_rollouts,
    data_parallel,
    interleave,
    ranks,
    shard,
)
from rlvr_exp.rollouts.engines.base import Drawn, RolloutRequest, SamplingEngine
from rlvr_exp.rollouts.engines.local import LocalEngine
from rlvr_exp.rollouts.kept_prefixes import KeptPrefixes
from rlvr_exp.rollouts.sampling_params import SamplingParams
from rlvr_exp.tasks.base import Candidate, Domain
from rlvr_exp.verifiers.base import PROMPT_TOO_LONG, Execution, Verdict, Verifier, executor_of
from rlvr_exp.verifiers.base import Request as VerifierRequest


@dataclass(frozen=True)
class RolloutResult:
    """The verified completions of a list of requests."""

    completions: tuple[tuple[Completion, ...], ...]
    """The completions of each request, in the order of its keys."""
    seconds: Mapping[str, float]
    """Wall seconds: `generate`, and `verify`, the wait for pending verdicts after sampling had ended."""


class DeferredVerifier:
    """A verifier for verdicts that can wait. It verifies only completions without a candidate, at no cost; all others
    are PENDING."""

    def __init__(self, verifier: Verifier):
        self._verifier = verifier

    def as_ready(self, requests: Iterable[VerifierRequest]) -> Iterator[tuple[int, Verdict]]:
        for index, request in enumerate(requests):
            yield index, self._verifier.verify([request])[0] if request.candidate.text is None else PENDING


@data_parallel
def generate_and_verify(
    policy: Policy,
    domain: Domain,
    verifier: Verifier | DeferredVerifier,
    requests: Sequence[RolloutRequest],
    sampling: SamplingParams,
    engine: SamplingEngine | None = None,
) -> RolloutResult:
    """Sample the completions of every request and verify them; a `DeferredVerifier` leaves them pending.
    `engine`: samples the completions; None: our own sampler."""
    loop = _RolloutLoop(policy, domain, requests, sampling, engine or LocalEngine())
    with phase(GENERATE):
        for index, verdict in verifier.as_ready(loop.verifier_requests()):
            loop.record_verdict(loop.submitted[index], verdict)
    completions = tuple(tuple(loop.done[place, i] for i in range(len(one.keys))) for place, one in enumerate(requests))
    return RolloutResult(completions, loop.seconds())


def verify_completions(verifier: Verifier, drawn: Sequence[Completion]) -> RolloutResult:
    """Verify completions that were sampled earlier: a `RolloutResult` with one completion for each. All ranks call this
    together."""
    began = time.perf_counter()
    with phase(VERIFY):
        completions = tuple((one,) for one in verified(verifier, shard(drawn)))
    return all_gather_rollouts(RolloutResult(completions, {"verify": time.perf_counter() - began}))


def verified(verifier: Verifier, completions: Sequence[Completion]) -> list[Completion]:
    """The same completions with their verdicts; truncated ones are not verified."""
    ended = [VerifierRequest(one.task.problem, one.candidate) for one in completions if not one.truncated]
    verdicts = iter(verifier.verify(ended))
    return [replace(one, verdict=TRUNCATED if one.truncated else next(verdicts)) for one in completions]


class _RolloutLoop:
    """The state of one `generate_and_verify`: completions that have ended are parsed and wait for their verdicts."""

    def __init__(
        self,
        policy: Policy,
        domain: Domain,
        requests: Sequence[RolloutRequest],
        sampling: SamplingParams,
        engine: SamplingEngine,
    ):
        self._policy, self._domain, self._requests, self._sampling = policy, domain, requests, sampling
        self._engine = engine
        self._began = self._generated = time.perf_counter()
        self.submitted: list[tuple[int, int]] = []
        """(request, sample) of each verification, in the order of submission."""
        self._parsed: dict[tuple[int, int], Completion] = {}
        """Completions that wait for their verdicts, by request and sample."""
        self._asked: dict[tuple[int, int], float] = {}
        """When each of them was asked for; earlier than this batch for one that an earlier process has sampled."""
        self.done: dict[tuple[int, int], Completion] = {}

    def verifier_requests(self) -> Iterator[VerifierRequest]:
        """A verification request for each completion as it ends."""
        for one in self._engine.draw(self._policy, self._domain, self._requests, self._sampling):
            place, found = (one.request, one.sample), self._completion(one)
            self._parsed[place], self._asked[place] = found, time.perf_counter() - found.drawn
            verdict = TRUNCATED if one.verdict is None and found.truncated else one.verdict
            if verdict is not None:
                self.record_verdict(place, verdict)
            else:
                self.submitted.append(place)
                yield VerifierRequest(found.task.problem, found.candidate)
        self._generated = time.perf_counter()
        go_over(VERIFY)

    def _completion(self, one: Drawn) -> Completion:
        task = self._requests[one.request].task
        drawn = time.perf_counter() - self._began if one.seconds is None else one.seconds
        parsed = self._domain.parse(one.text, task) if one.verdict is None else Candidate(None, one.verdict.log)
        return Completion(task, one.sample, one.sampled, one.text, parsed, drawn=drawn, version=one.version)

    def record_verdict(self, place: tuple[int, int], verdict: Verdict) -> None:
        seconds = time.perf_counter() - self._asked.pop(place)
        self.done[place] = replace(self._parsed.pop(place), verdict=verdict, seconds=seconds)

    def seconds(self) -> dict[str, float]:
        return {"generate": self._generated - self._began, "verify": time.perf_counter() - self._generated}


TOO_LONG = Verdict("failed", bucket=PROMPT_TOO_LONG, log="the prompt is longer than the policy takes; it is never cut")
Asked = tuple[int, Request]
"""The index of an episode, and one of its requests."""


@dataclass(frozen=True)
class Player:
    """Who answers for a role."""

    policy: Policy
    sampling: SamplingParams
    max_prompt_tokens: int
    """Longer prompts are not sampled."""


@dataclass(frozen=True)
class EpisodeRunner:
    """
    Args:
        players: by role.
        generate: samples and verifies; as `generate_and_verify`.

    Raises:
        InputError: the environment has tools, and the verifier runs no programs.
    """

    environment: Environment
    players: Mapping[str, Player]
    verifier: Verifier
    generate: Callable[..., RolloutResult] = generate_and_verify
    seconds: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    """Wall seconds by (role, phase): `generate`, and `verify`, the wait for verdicts after sampling had ended."""

    def __post_init__(self) -> None:
        if self.environment.tools:
            executor_of(self.verifier, "environment=tools")

    def run(self, episodes: Sequence[Episode]) -> list[Episode]:
        """The same episodes at their end. All ranks call this together."""
        # Turns may follow each other, but ranks deal out the requests of each wave: a parent may be another rank's.
        keeps = not self.environment.one_group and ranks() == 1
        episodes, kept = list(episodes), {role: KeptPrefixes() for role in self.players if keeps}
        plays = [self.environment.run(one) for one in episodes]
        wave = {place: asked for place, play in enumerate(plays) if (asked := _next(play, None))}
        while wave:
            for one in kept.values():
                one.next_wave()
            answers = self._answer([(place, one) for place, asked in wave.items() for one in asked], episodes, kept)
            taken = {
                place: [episodes[place].take(one, next(answers)) for one in asked] for place, asked in wave.items()
            }
            wave = {place: asked for place, given in taken.items() if (asked := _next(plays[place], given))}
        return episodes

    def _answer(
        self, asked: Sequence[Asked], episodes: Sequence[Episode], kept: Mapping[str, KeptPrefixes]
    ) -> Iterator[Answer]:
        """The answer to each request, in their order."""
        results: dict[int, Answer] = {}
        batches: dict[tuple[str, bool], dict[int, Sample]] = defaultdict(dict)
        for number, (_, one) in enumerate(asked):
            if isinstance(one, Sample):
                batches[one.role, one.pending][number] = one
        for role, pending in sorted(batches, key=lambda batch: (self.environment.roles.index(batch[0]), batch[1])):
            wanted = batches[role, pending]
            of = {number: episodes[asked[number][0]] for number in wanted}
            results |= self._sample(role, pending, wanted, of, kept.get(role))
        executed = {number: one for number, (_, one) in enumerate(asked) if isinstance(one, Execute)}
        if executed:
            began = time.perf_counter()
            results |= zip(
                executed, _executions(self.verifier, [one.request for one in executed.values()]), strict=True
            )
            self.seconds[next(iter(executed.values())).role, "verify"] += time.perf_counter() - began
        judged = {number: one for number, (_, one) in enumerate(asked) if isinstance(one, Judge)}
        if judged:
            given = [Completion(one.task, 0, TokenCount(0, False), "", one.candidate) for one in judged.values()]
            result = verify_completions(self.verifier, given)
            self.seconds[next(iter(judged.values())).role, "verify"] += result.seconds["verify"]
            results |= {number: one.verdict for number, (one,) in zip(judged, result.completions, strict=True)}
        return (results[number] for number in range(len(asked)))

    def _sample(
        self,
        role: str,
        pending: bool,
        wanted: Mapping[int, Sample],
        of: Mapping[int, Episode],
        kept: KeptPrefixes | None,
    ) -> dict[int, list[Turn]]:
        player = self.players[role]
        prompts = {number: self._encoded(player.policy, of[number], one) for number, one in wanted.items()}
        follows = {number: _followed(of[number], one) for number, one in wanted.items()}
        merged: dict[tuple[int, tuple[int, ...] | str, tuple[int, ...]], list[int]] = defaultdict(list)
        for number, prompt in prompts.items():
            if len(prompt) <= player.max_prompt_tokens:  # Episodes of one task share the work for their prompt.
                merged[id(wanted[number].task), prompt or wanted[number].prompt, follows[number]].append(number)
        requests = [
            RolloutRequest(
                wanted[numbers[0]].task,
                prompts[numbers[0]],
                tuple(key for number in numbers for key in wanted[number].keys),
                wanted[numbers[0]].prompt,
                follows[numbers[0]],
                kept,
            )
            for numbers in merged.values()
        ]
        found: dict[int, list[Completion]] = {}
        for numbers, completions in zip(merged.values(), self._rollouts(role, pending, requests), strict=True):
            drawn = iter(completions)
            for number in numbers:
                found[number] = [replace(next(drawn), sample=index) for index in range(len(wanted[number].keys))]
        turns = {}
        for number, one in wanted.items():  # Nothing is learned from a prompt that is too long.
            answers = found.get(number) or [unsampled(one.task, index, TOO_LONG) for index in range(len(one.keys))]
            turns[number] = [
                Turn(one.role, one.prompt, prompts[number], answer, key, one.parent, one.learn and number in found)
                for answer, key in zip(answers, one.keys, strict=True)
            ]
        return turns

    def _encoded(self, policy: Policy, episode: Episode, one: Sample) -> tuple[int, ...]:
        if not one.goes_on:
            return tuple(policy.encode_prompt(one.prompt, self.environment.tools if one.parent is None else ()))
        assert one.parent is not None
        turn = episode.turns[one.parent]
        assert isinstance(turn.completion.sampled, TokenSample), "a result can stand after known tokens alone"
        drawn = turn.completion.sampled.ids
        return (*turn.prompt_ids, *policy.after_call(drawn), *policy.encode_result(one.prompt, drawn))

    def _rollouts(self, role: str, pending: bool, requests: Sequence[RolloutRequest]) -> Sequence[Sequence[Completion]]:
        if not requests:
            return ()
        verifier = DeferredVerifier(self.verifier) if pending else self.verifier
        policies = {name: player.policy for name, player in self.players.items()}
        with acting(policies, role) as policy:
            domain, sampling = self.environment.domain(role), self.players[role].sampling
            if stops := self.environment.stops:
                sampling = replace(sampling, stop=(*sampling.stop, *stops))
            result = self.generate(policy, domain, verifier, requests, sampling)
        for name, value in result.seconds.items():
            self.seconds[role, name] += value
        return result.completions


def _executions(verifier: Verifier, requests: Sequence[VerifierRequest]) -> list[Execution]:
    """The executions of programs, shared among the ranks. All ranks call this together."""
    executor = executor_of(verifier, "environment=tools")
    running = [executor.execute(one) for one in shard(requests)]
    return interleave(all_gather_object([one.result() for one in running]))


def _next(play: Run, answers: list[Answer] | None) -> Sequence[Request]:
    """The next requests of an episode; empty: it has ended. An environment that requests nothing continues at once."""
    try:
        asked = next(play) if answers is None else play.send(answers)
        while not asked:
            asked = play.send([])
    except StopIteration:
        return ()
    return asked


def _followed(episode: Episode, one: Sample) -> tuple[int, ...]:
    """The tokens of the turn that a request builds on, without the last one drawn; none of another role's, or if tokens are not
    known."""
    turn = None if one.parent is None else episode.turns[one.parent]
    if turn is None or turn.role != one.role or not isinstance(turn.completion.sampled, TokenSample):
        return ()
    return (*turn.prompt_ids, *turn.completion.sampled.ids[:-1])
