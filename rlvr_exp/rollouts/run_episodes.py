"""Runs episodes: the requests of all live ones are answered together, wave by wave, so that none waits for another, and completions are
verified as they finish. One runner for training, evaluation and inference, and for every environment.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rlvr_exp.episodes.environment import Environment, Run
from rlvr_exp.episodes.episode import Answer, Episode, Judge, Request, Sample, Turn
from rlvr_exp.episodes.types import Completion, TokenCount, TokenSample, unsampled
from rlvr_exp.models.policy import Policy
from rlvr_exp.models.role_policies import acting
from rlvr_exp.rollouts.distributed import ranks
from rlvr_exp.rollouts.kept_prefixes import KeptPrefixes
from rlvr_exp.rollouts.rollout_loop import (
    DeferredVerifier,
    RolloutRequest,
    RolloutResult,
    generate_and_verify,
    verify_completions,
)
from rlvr_exp.rollouts.sampling_params import SamplingParams
from rlvr_exp.verifiers.base import PROMPT_TOO_LONG, Verdict, Verifier

TOO_LONG = Verdict("failed", bucket=PROMPT_TOO_LONG, log="the prompt is longer than the policy takes; it is never cut")
Asked = tuple[int, Request]
"""The index of an episode, and what it asks for."""


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
    """

    environment: Environment
    players: Mapping[str, Player]
    verifier: Verifier
    generate: Callable[..., RolloutResult] = generate_and_verify
    seconds: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    """Wall seconds by (role, phase): `generate`, and `verify`, the wait for verdicts after sampling had ended."""

    def run(self, episodes: Sequence[Episode]) -> list[Episode]:
        """The same episodes at their end. All ranks call this together."""
        episodes, kept = list(episodes), self._kept()
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

    def _kept(self) -> dict[str, KeptPrefixes]:
        """For each role, where turns may follow each other. Ranks deal out the requests of a wave anew: the turn that one follows may
        be another rank's."""
        return {} if self.environment.one_group or ranks() > 1 else {role: KeptPrefixes() for role in self.players}

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
            follows = {number: _followed(episodes[asked[number][0]], one) for number, one in wanted.items()}
            results |= self._sample(role, pending, wanted, follows, kept.get(role))
        judged = {number: one for number, (_, one) in enumerate(asked) if isinstance(one, Judge)}
        results |= self._judge(judged) if judged else {}
        return (results[number] for number in range(len(asked)))

    def _sample(
        self,
        role: str,
        pending: bool,
        wanted: Mapping[int, Sample],
        follows: Mapping[int, tuple[int, ...]],
        kept: KeptPrefixes | None,
    ) -> dict[int, list[Turn]]:
        player = self.players[role]
        prompts = {number: tuple(player.policy.encode_prompt(one.prompt)) for number, one in wanted.items()}
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
        return {
            number: _turns(one, prompts[number], found[number]) if number in found else _unsampled(one, prompts[number])
            for number, one in wanted.items()
        }

    def _rollouts(self, role: str, pending: bool, requests: Sequence[RolloutRequest]) -> Sequence[Sequence[Completion]]:
        if not requests:
            return ()
        verifier = DeferredVerifier(self.verifier) if pending else self.verifier
        policies = {name: player.policy for name, player in self.players.items()}
        with acting(policies, role) as policy:
            domain, sampling = self.environment.domain(role), self.players[role].sampling
            result = self.generate(policy, domain, verifier, requests, sampling)
        for phase, value in result.seconds.items():
            self.seconds[role, phase] += value
        return result.completions

    def _judge(self, wanted: Mapping[int, Judge]) -> dict[int, Verdict]:
        given = [Completion(one.task, 0, TokenCount(0, False), "", one.candidate) for one in wanted.values()]
        result = verify_completions(self.verifier, given)
        self.seconds[next(iter(wanted.values())).role, "verify"] += result.seconds["verify"]
        return {number: one.verdict for number, (one,) in zip(wanted, result.completions, strict=True)}


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
    """The tokens of the turn that a request builds on, without the last one drawn; none of another role's, or where tokens are not
    known."""
    turn = None if one.parent is None else episode.turns[one.parent]
    if turn is None or turn.role != one.role or not isinstance(turn.completion.sampled, TokenSample):
        return ()
    return (*turn.prompt_ids, *turn.completion.sampled.ids[:-1])


def _turns(request: Sample, prompt: tuple[int, ...], completions: Sequence[Completion]) -> list[Turn]:
    return [
        Turn(request.role, request.prompt, prompt, completion, key, request.parent, request.learn)
        for completion, key in zip(completions, request.keys, strict=True)
    ]


def _unsampled(request: Sample, prompt: tuple[int, ...]) -> list[Turn]:
    """The turns of a prompt that is too long: nothing is learned from them."""
    completions = [unsampled(request.task, index, TOO_LONG) for index in range(len(request.keys))]
    return [replace(turn, learn=False) for turn in _turns(request, prompt, completions)]
