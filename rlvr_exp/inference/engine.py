"""Solves tasks: samples, verifies, retries with the verifier's feedback, and keeps the best completion.

Every draw takes its number from (seed, task id, attempt, sample, position), so that a task's answer does not depend on
the other tasks of its batch. Owns no verifier and writes no file.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import GenerationConfig, PreTrainedModel

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import load as load_config
from rlvr_exp.config.model import Model, at_checkpoint
from rlvr_exp.config.needs import formatter_missing, weights_missing
from rlvr_exp.config.stage_options import Infer
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.episodes.environment import Environment
from rlvr_exp.episodes.environments.retry import Retry, rank, too_long
from rlvr_exp.episodes.episode import POLICY, Draws, Episode
from rlvr_exp.episodes.types import TokenCount, TokenSample, unsampled
from rlvr_exp.evaluation.vote import Polls, Voted
from rlvr_exp.inference.solution import Attempt, Solution, Summary, readable
from rlvr_exp.launch.inference_inputs import InferenceTask, check_vote, from_row, voting_domain
from rlvr_exp.models.policy import Policy, load_policy
from rlvr_exp.rollouts.engines.base import SamplingEngine
from rlvr_exp.rollouts.engines.journaled import Journaled
from rlvr_exp.rollouts.engines.local import LocalEngine
from rlvr_exp.rollouts.kept_prefixes import NO_TURNS, Turns
from rlvr_exp.rollouts.run_episodes import TOO_LONG, EpisodeRunner, Player, generate_and_verify
from rlvr_exp.rollouts.sampler import causal_model
from rlvr_exp.rollouts.sampling_params import FinishedSample, SampleKey, SamplingParams
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.tasks.formats.fields import Fault, Fields
from rlvr_exp.tasks.formats.rows import fault_of, laid_out
from rlvr_exp.verifiers.base import Direct, KeepsOutputs, Request, Verdict, Verifier, executor_of


@dataclass(frozen=True)
class Beams:
    """Yields completions as rlvr_exp.rollouts.sampler.stream does, the likeliest first; keys, filters and the turns before
    are not used.

    Completions are compared by their mean log-probability a token.
    """

    width: int

    def __call__(
        self,
        model: nn.Module,
        prompts: Sequence[Sequence[int]],
        keys: Sequence[Sequence[SampleKey]],
        sampling: SamplingParams,
        turns: Turns = NO_TURNS,
    ) -> Iterator[FinishedSample]:
        inner = causal_model(model)
        was_training = inner.training
        inner.eval()
        try:
            for place, (prompt, wanted) in enumerate(zip(prompts, keys, strict=True)):
                for sample, ids in enumerate(self._best(inner, prompt, len(wanted), sampling)):
                    yield FinishedSample(place, sample, _sampled(ids, sampling.eos_ids))
        finally:
            inner.train(was_training)

    @torch.inference_mode()
    def _best(
        self, model: PreTrainedModel, prompt: Sequence[int], count: int, sampling: SamplingParams
    ) -> list[list[int]]:
        given = torch.tensor([list(prompt)], device=model.device)
        # Every field is set: an omitted field would be taken from the checkpoint's own generation_config.json.
        search = GenerationConfig(
            num_beams=self.width,
            num_return_sequences=count,
            max_new_tokens=sampling.max_new_tokens,
            eos_token_id=list(sampling.eos_ids),
            pad_token_id=model.generation_config.pad_token_id,
            do_sample=False,
            temperature=1.0,
            top_k=50,
            top_p=1.0,
            repetition_penalty=1.0,
            length_penalty=1.0,
            no_repeat_ngram_size=0,
            early_stopping=False,
            use_cache=True,
        )
        found = model.generate(given, attention_mask=torch.ones_like(given), generation_config=search)
        return [row[len(prompt) :] for row in found.tolist()]


def _sampled(ids: Sequence[int], ends: Sequence[int]) -> TokenSample:
    """Up to the first end token; like a greedy token's, the log-probability of each counts as 0."""
    end = next((place for place, token in enumerate(ids) if token in ends), None)
    kept = tuple(ids if end is None else ids[: end + 1])
    return TokenSample(kept, (0.0,) * len(kept), truncated=end is None)


@torch.inference_mode()
def logprob(model: nn.Module, prompt: Sequence[int], ids: Sequence[int]) -> float:
    """Log-probability of the tokens `ids` after the prompt, all together, at temperature 1 and without filters.

    Computed for this sequence alone, so that no other sequence of a batch changes a bit of it.
    """
    inner = causal_model(model)
    was_training = inner.training
    inner.eval()
    try:
        row = torch.tensor([[*prompt, *ids]], device=inner.device)
        logits = inner(input_ids=row, use_cache=False, logits_to_keep=len(ids) + 1).logits[0, :-1]
    finally:
        inner.train(was_training)
    chances = logits.float().log_softmax(-1)
    wanted = torch.tensor(list(ids), device=chances.device)
    return chances.gather(-1, wanted[:, None]).sum(dtype=torch.float64).item()


class NullVerifier(Direct):
    """Stands in where no verifier is given: it only detects completions without a candidate."""

    name, version = "none", "1"

    def judge(self, request: Request) -> Verdict:
        fault = request.candidate.text is None
        return Verdict("failed", "parse", log=request.candidate.fault) if fault else Verdict("no_verdict")


class Engine:
    """A policy that solves tasks.

    Args:
        options: how a task is searched; files and the choice of tasks are not used.
        limits: `max_prompt_tokens` and `max_completion_tokens`, as a `model` node has them.
        verifier: verifies completions, and belongs to the caller; None: they are parsed and not verified.
        domain: words and reads a `Task` given alone. Rows bring their own, unless they are of its kind.
        seed: of the draws.
        engine: what samples; None: our own sampler.
    """

    def __init__(
        self,
        policy: Policy,
        options: Infer,
        limits: Model,
        verifier: Verifier | None = None,
        domain: Domain | None = None,
        seed: int = 0,
        engine: SamplingEngine | None = None,
    ):
        self.policy, self.options, self.seed = policy, options, seed
        self._verifier, self._domain, self._limits = verifier or NullVerifier(), domain, limits
        self._judges = verifier is not None
        self._executor = executor_of(self._verifier, "infer.vote") if options.vote else None
        beams = LocalEngine(Beams(options.width)) if options.decoding == "beam" else None
        if beams is not None:
            engine = engine.around(beams) if isinstance(engine, Journaled) else beams
        self._generate = partial(generate_and_verify, engine=engine)
        self._draws = Draws(seed, "infer", greedy=options.decoding == "greedy")

    def solve(self, task: InferenceTask | Task | Fields) -> Solution:
        """Solve one task: a row (see rlvr_exp.launch.inference_inputs), or a Task of the engine's domain.

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

    def summary(self) -> Summary:
        """Counts of its results, without any so far."""
        return Summary()

    def in_words(self, row: Mapping[str, Any]) -> str:
        """A result's row for a person."""
        return readable(row)

    def inference_task(self, task: InferenceTask | Task | Fields) -> InferenceTask:
        """A task with its domain. Raises InputError."""
        item = self._with_domain(task)
        if self._executor is not None:
            check_vote([item])
        return item

    def _with_domain(self, task: InferenceTask | Task | Fields) -> InferenceTask:
        if isinstance(task, InferenceTask):
            return task
        if isinstance(task, Mapping):
            try:
                return from_row(task, self._domain)
            except Fault as fault:
                raise InputError(InputProblem("task", str(fault))) from fault
        if self._domain is None:
            remedy = "load(..., domain=DOMAIN), the one that the task is from"
            what = "a Task is worded by its domain, and none was given"
            raise InputError(InputProblem("task", what, task.id, remedy=remedy))
        return InferenceTask(task.id, task, self._domain)

    def _solved(self, items: Sequence[InferenceTask]) -> list[Solution]:
        by_domain: dict[int, list[int]] = defaultdict(list)
        for place, item in enumerate(items):
            by_domain[id(item.domain)].append(place)
        found: dict[int, Solution] = {}
        for places in by_domain.values():
            runner = self._runner(items[places[0]].domain)
            begun = [
                runner.environment.reset(items[place].task, self._draws, range(self.options.samples))
                for place in places
            ]
            ended = runner.run(begun)
            voted = self._votes([items[place] for place in places], ended)
            for place, episode, vote in zip(places, ended, voted, strict=True):
                found[place] = replace(self._solution(items[place], episode), voted=vote)
        return [found[place] for place in range(len(items))]

    def _votes(self, items: Sequence[InferenceTask], episodes: Sequence[Episode]) -> Sequence[Voted | None]:
        """The votes of all completions; of tasks of one domain."""
        if self._executor is None:
            return [None] * len(items)
        polls = Polls(self._executor, voting_domain(items[0]), self.options.vote)
        for item, episode in zip(items, episodes, strict=True):
            polls.add(item.task, [turn.completion for turn in episode.turns])
        return polls.close()

    def _runner(self, domain: Domain) -> EpisodeRunner:
        environment = Retry(domain, best=True, attempts=self.options.max_attempts)
        return EpisodeRunner(environment, {POLICY: self._player(self.policy, domain)}, self._verifier, self._generate)

    def _player(self, policy: Policy, domain: Domain, limits: Model | None = None) -> Player:
        limits = limits or self._limits
        longest, options = limits.max_completion_tokens, self.options
        sampling = SamplingParams.of(options, policy, longest, options.batch_size, domain)
        return Player(policy, sampling, min(limits.max_prompt_tokens, policy.max_tokens - longest))

    def _attempts(self, episode: Episode) -> list[Attempt]:
        return attempts_of(episode)

    def _chosen(self, attempts: list[Attempt]) -> Attempt:
        return max(attempts, key=lambda one: rank(one.completion))

    def _logprob(self, attempt: Attempt) -> float | None:
        if isinstance(attempt.completion.sampled, TokenCount):  # An endpoint's.
            given = attempt.completion.sampled.logprobs
            return None if given is None else sum(given)
        return logprob(self.policy.model, attempt.prompt, attempt.completion.sampled.ids)

    def _solution(self, item: InferenceTask, episode: Episode) -> Solution:
        attempts = self._attempts(episode)
        if not attempts:
            return Solution(item.id, unsampled(item.task, 0, TOO_LONG), attempt=0, attempts=0, verified=True)
        best = self._chosen(attempts)
        found = best.completion
        return Solution(
            id=item.id,
            completion=found,
            attempt=best.attempt,
            attempts=max(one.attempt for one in attempts),
            verified=self._judges or found.verdict.outcome != "no_verdict",
            fault=fault_of(item.task.problem, found.candidate),
            logprob=self._logprob(best),
            earlier=tuple(one for one in attempts if one is not best),
            formatted=laid_out(item.task.problem, found.candidate) if self.options.format else None,
        )


class EpisodeEngine(Engine):
    """An `Engine` that plays episodes of an environment. The answer is the end of the best branch, which one of `options.samples`
    began; `attempt` counts the turns of the branch.

    Args:
        environment: makes the environment for the domain of a task.
    """

    def __init__(
        self,
        environment: Callable[[Domain], Environment],
        policy: Policy,
        options: Infer,
        limits: Model,
        verifier: Verifier | None = None,
        domain: Domain | None = None,
        seed: int = 0,
        engine: SamplingEngine | None = None,
    ):
        super().__init__(policy, options, limits, verifier, domain, seed, engine)
        self._environment = environment

    def _runner(self, domain: Domain) -> EpisodeRunner:
        environment, verifier = self._environment(domain), self._verifier
        if environment.keeps_outputs:
            verifier = KeepsOutputs(verifier, "environment", remember=False)
        return EpisodeRunner(environment, {POLICY: self._player(self.policy, domain)}, verifier, self._generate)

    def _attempts(self, episode: Episode) -> list[Attempt]:
        """The turns of the best branch."""
        turns = episode.turns
        ends = [at for at, turn in enumerate(turns) if not episode.children(at) and not too_long(turn.completion)]
        at, found = max(ends, key=lambda end: rank(turns[end].completion), default=None), list[Attempt]()
        while at is not None:
            found.insert(0, Attempt(episode.depth(at) + 1, turns[at].prompt_ids, turns[at].completion))
            at = turns[at].parent
        return found

    def _chosen(self, attempts: list[Attempt]) -> Attempt:
        return attempts[-1]

    def _solution(self, item: InferenceTask, episode: Episode) -> Solution:
        found = super()._solution(item, episode)
        made = found.completion.verdict.outputs
        return replace(found, edited=made[0] if made else None)


def attempts_of(episode: Episode) -> list[Attempt]:
    """The best completion of each attempt, in order; none where the first prompt was too long."""
    found: dict[int, Attempt] = {}
    for index, turn in enumerate(episode.turns):
        one = Attempt(episode.depth(index) + 1, turn.prompt_ids, turn.completion)
        best = found.get(one.attempt)
        if not too_long(turn.completion) and (
            best is None or rank(one.completion) > rank(best.completion)
        ):  # The first of the best.
            found[one.attempt] = one
    return list(found.values())


def settings_of(options: Infer) -> dict[str, Any]:
    """The options that decide answers, next to the tasks, the policy and the verifier."""
    names = (
        "decoding",
        "temperature",
        "top_k",
        "top_p",
        "min_p",
        "stop",
        "samples",
        "max_attempts",
        "verify",
        "format",
    )
    found = {name: getattr(options, name) for name in names}
    found |= {"beams": options.width} if options.decoding == "beam" else {}
    return found | ({"vote": options.vote} if options.vote else {})


def load(
    path: str | Path = "",
    options: Infer | None = None,
    *,
    verifier: Verifier | None = None,
    domain: Domain | None = None,
    model: Model | None = None,
    seed: int = 0,
) -> Engine:
    """An engine for a checkpoint.

    Args:
        path: folder of a checkpoint or of an adapter; empty: the embedded policy, or what `model` names.
        options: how a task is searched; by default greedily, once. It is verified where a verifier is given.
        verifier: verifies completions, and is closed by the caller; None: they are not verified.
        domain: the tasks' domain, where they are given as `Task`; rows need none.
        model: how the policy is loaded; None: as in the run that wrote the checkpoint, else by the defaults.
        seed: the seed of the draws.

    Raises:
        InputError: no such checkpoint, a damaged one, or options that cannot work; names every problem.
    """
    options = replace(options or Infer(), verify=verifier is not None)
    node = replace(model, path=str(path) or model.path) if model else _model_of(Path(path) if path else None)
    needed = [*weights_missing(node), *formatter_missing(options)]
    problems = [*options.problems(), *node.problems(), *(need.problem for need in needed)]
    if problems:
        raise InputError(*problems)
    return Engine(load_policy(node, seed), options, node, verifier, domain, seed)


def _model_of(path: Path | None) -> Model:
    """The `model` node for the policy at `path`: a run's checkpoint as in its run, prompts and lengths included."""
    if path is None:
        return compose(["+stage=infer"]).config.model
    run = path.resolve().parent.parent / "config.yaml"
    node = load_config(run).model if run.is_file() else Model()
    return at_checkpoint(node, str(path))
