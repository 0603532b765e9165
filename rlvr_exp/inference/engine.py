"""The inference engine solves tasks in any environment. It samples, verifies, and reports an answer for each task.

The seed of every draw comes from (seed, task id, attempt, sample, position), so the answer of a task does not depend on
the other tasks of its batch. The engine owns no verifier and writes no file.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from rlvr_exp.episodes.environments import Retry
from rlvr_exp.episodes.episode import POLICY, Draws, Episode, Turn
from rlvr_exp.episodes.types import TokenCount, TokenSample, unsampled
from rlvr_exp.evaluation.vote import Polls, Voted
from rlvr_exp.inference.adaptation import Adaptation, ShownRuns
from rlvr_exp.inference.solution import Attempt, Solution
from rlvr_exp.launch.inference_inputs import InferenceTask, check_shown, check_vote, from_row, voting_domain
from rlvr_exp.models.policy import Policy, acting, load_policy
from rlvr_exp.rollouts.engines.base import SamplingEngine
from rlvr_exp.rollouts.engines.journaled import Journaled
from rlvr_exp.rollouts.engines.local import LocalEngine
from rlvr_exp.rollouts.kept_prefixes import NO_TURNS, Turns
from rlvr_exp.rollouts.run_episodes import TOO_LONG, EpisodeRunner, Player, generate_and_verify
from rlvr_exp.rollouts.sampler import causal_model
from rlvr_exp.rollouts.sampling_params import FinishedSample, SampleKey, SamplingParams
from rlvr_exp.tasks.base import Domain, ShowsCases, Task
from rlvr_exp.tasks.formats.fields import Fault, Fields
from rlvr_exp.tasks.formats.rows import fault_of, laid_out
from rlvr_exp.verifiers.base import Direct, KeepsOutputs, Request, Verdict, Verifier, executor_of


@dataclass(frozen=True)
class Beams:
    """Yield completions as rlvr_exp.rollouts.sampler.stream does, the most likely first. Keys, filters and earlier
    turns are not used.

    Completions are compared by their mean log-probability per token.
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
    """Return the sample up to the first end token. Each log-probability counts as 0, as for a greedy token."""
    end = next((place for place, token in enumerate(ids) if token in ends), None)
    kept = tuple(ids if end is None else ids[: end + 1])
    return TokenSample(kept, (0.0,) * len(kept), truncated=end is None)


@torch.inference_mode()
def logprob(model: nn.Module, prompt: Sequence[int], ids: Sequence[int]) -> float:
    """Return the total log-probability of the tokens `ids` after the prompt, at temperature 1 and without filters.

    It is computed for this sequence alone, so that no other sequence of a batch changes a bit of it.
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
    """Replaces a missing verifier. It only detects completions without a candidate."""

    name, version = "none", "1"

    def judge(self, request: Request) -> Verdict:
        fault = request.candidate.text is None
        return Verdict("failed", "parse", log=request.candidate.fault) if fault else Verdict("no_verdict")


class Engine:
    """One or several policies that solve tasks in an environment.

    Args:
        policies: by role, or the only policy.
        options: the search for an answer. The engine ignores the options of files and of the selection of tasks.
        limits: `max_prompt_tokens` and `max_completion_tokens`, as in a `model` node; by role if there are several.
        verifier: verifies completions. The caller closes it. None: completions are parsed and not verified.
        domain: makes the prompt of a `Task` and parses its completions. Rows bring their own domain, unless they are of
            its kind.
        seed: of the draws.
        engine: samples the completions; None for the built-in sampler.
        environment: of the domain; None for up to `options.max_attempts` attempts with the verifier's feedback.
    """

    def __init__(
        self,
        policies: Policy | Mapping[str, Policy],
        options: Infer,
        limits: Model | Mapping[str, Model],
        verifier: Verifier | None = None,
        domain: Domain | None = None,
        seed: int = 0,
        engine: SamplingEngine | None = None,
        environment: Environment | None = None,
    ):
        self.policies = dict(policies) if isinstance(policies, Mapping) else {POLICY: policies}
        self.limits = dict(limits) if isinstance(limits, Mapping) else dict.fromkeys(self.policies, limits)
        self.options, self.seed, self.environment = options, seed, environment
        self._verifier, self._domain, self._sampler = verifier or NullVerifier(), domain, engine
        if verifier is not None and environment is not None and environment.keeps_outputs:
            self._verifier = KeepsOutputs(verifier, "environment", remember=False)
        self._judges = verifier is not None
        self._executor = executor_of(self._verifier, "infer.vote") if options.vote else None
        self.adaptation: Adaptation | None = None
        """The adapter that learns each task; None with `infer.adapt=none`."""
        if options.adapt != "none":
            self.adaptation = Adaptation(self.policy, executor_of(self._verifier, "infer.adapt"), seed)
            self.policies = dict.fromkeys(self.policies, self.adaptation.policy)
        beams = LocalEngine(Beams(options.width)) if options.decoding == "beam" else None
        if beams is not None:
            engine = engine.around(beams) if isinstance(engine, Journaled) else beams
        self._generate = partial(generate_and_verify, engine=engine)
        self._draws = Draws(seed, "infer", greedy=options.decoding == "greedy")

    @property
    def policy(self) -> Policy:
        """The first policy to act."""
        return next(iter(self.policies.values()))

    def unverified(self) -> "Engine":
        """Return the same engine without a verifier, with one sample per task."""
        options = replace(self.options, verify=False, samples=1)
        return Engine(
            self.policies, options, self.limits, None, self._domain, self.seed, self._sampler, self.environment
        )

    def solve(self, task: InferenceTask | Task | Fields) -> Any:
        """Solve one task: a row (see rlvr_exp.launch.inference_inputs) or a Task of the engine's domain. Return a
        `Solution`, or the result type of the environment.

        Raises:
            InputError: the row is not a task, or the engine has no domain for a Task.
            GuardStop: a guarded verifier has failed too often.
        """
        return next(self.solve_all([task]))

    def solve_all(self, tasks: Iterable[InferenceTask | Task | Fields]) -> Iterator[Any]:
        """Solve any number of tasks, in order. `options.batch_size` completions are sampled at once. See `solve`."""
        items = map(self.inference_task, tasks)
        while batch := list(islice(items, self.options.at_once)):
            yield from self._solved(batch)

    def inference_task(self, task: InferenceTask | Task | Fields) -> InferenceTask:
        """Return a task with its domain. Raises InputError."""
        if isinstance(task, Mapping):
            item = self._from_row(task)
        elif isinstance(task, InferenceTask):
            item = task
        elif self._domain is not None:
            item = InferenceTask(task.id, task, self._domain)
        else:
            remedy = "load(..., domain=DOMAIN), the one that the task is from"
            what = "a Task is worded by its domain, and none was given"
            raise InputError(InputProblem("task", what, task.id, remedy=remedy))
        if self._executor is not None:
            check_vote([item])
        if self.adaptation is not None:
            check_shown([item])
        return item

    def _from_row(self, row: Fields) -> InferenceTask:
        if self.environment is not None and (task := self.environment.read(row, self._judges)) is not None:
            assert self._domain is not None, "the environment's"
            return InferenceTask(task.id, task, self._domain)
        try:
            return from_row(row, self._domain)
        except Fault as fault:
            raise InputError(InputProblem("task", str(fault))) from fault

    def _solved(self, items: Sequence[InferenceTask]) -> list[Any]:
        by_domain: dict[int, list[int]] = defaultdict(list)
        for place, item in enumerate(items):
            by_domain[id(item.domain)].append(place)
        found: dict[int, Any] = {}
        for places in by_domain.values():
            domain = items[places[0]].domain
            environment = self.environment or Retry(domain, best=True, attempts=self.options.max_attempts)
            players = {role: self._player(role, environment.domain(role)) for role in self.policies}
            runner = EpisodeRunner(environment, players, self._verifier, self._generate)
            asked = [items[place] for place in places]
            ended, runs = self._episodes(asked, environment, runner)
            voted = self._votes(asked, ended, runs)
            for place, episode, vote in zip(places, ended, voted, strict=True):
                found[place] = replace(self._solution(items[place], environment, episode), voted=vote)
        return [found[place] for place in range(len(items))]

    def _episodes(
        self, items: Sequence[InferenceTask], environment: Environment, runner: EpisodeRunner
    ) -> tuple[list[Episode], list[ShownRuns]]:
        """The episode of each task, and the executions of its programs on the shown cases, as far as they are known."""
        samples = range(self.options.samples)
        if self.adaptation is None:
            begun = [environment.reset(item.task, self._draws, samples) for item in items]
            return runner.run(begun), [{} for _ in items]
        found = [self._adapted(self.adaptation, item, environment, runner) for item in items]
        return [episode for episode, _ in found], [runs for _, runs in found]

    def _adapted(
        self, adaptation: Adaptation, item: InferenceTask, environment: Environment, runner: EpisodeRunner
    ) -> tuple[Episode, ShownRuns]:
        """One episode of all rounds. The adapter learns between them."""
        assert isinstance(item.domain, ShowsCases)
        whole = environment.reset(item.task, self._draws, range(self.options.samples))
        size = -(-self.options.samples // self.options.adapt_rounds)
        with adaptation.of_task(item.domain, item.task) as task:
            for start in range(0, self.options.samples, size):
                samples = whole.samples[start : start + size]
                [episode] = runner.run([environment.reset(item.task, self._draws, samples)])
                for turn in episode.turns:
                    numbered = replace(turn.completion, sample=start + turn.completion.sample)
                    whole.turns.append(replace(turn, index=len(whole.turns), completion=numbered))
                if not task.learn(episode.turns, last=start + size >= self.options.samples):
                    break
        return whole, task.runs

    def _player(self, role: str, domain: Domain) -> Player:
        policy, limits, options = self.policies[role], self.limits[role], self.options
        longest = limits.max_completion_tokens
        sampling = SamplingParams.of(options, policy, longest, options.batch_size, domain)
        return Player(policy, sampling, min(limits.max_prompt_tokens, policy.max_tokens - longest))

    def _votes(
        self, items: Sequence[InferenceTask], episodes: Sequence[Episode], runs: Sequence[ShownRuns]
    ) -> Sequence[Voted | None]:
        """Return the votes of all completions. The tasks have one domain."""
        if self._executor is None:
            return [None] * len(items)
        polls = Polls(self._executor, voting_domain(items[0]), self.options.vote)
        for item, episode, known in zip(items, episodes, runs, strict=True):
            polls.add(item.task, [turn.completion for turn in episode.turns], known)
        return polls.close()

    def _solution(self, item: InferenceTask, environment: Environment, episode: Episode) -> Any:
        answers = environment.answers(episode)
        if not answers:
            found = Solution(item.id, unsampled(item.task, 0, TOO_LONG), attempt=0, attempts=0, verified=True)
            return environment.solution(found, episode, self._judges)
        attempt, turn = best = environment.pick(answers)
        one = turn.completion
        found = Solution(
            id=item.id,
            completion=one,
            attempt=attempt,
            attempts=max(number for number, _ in answers),
            verified=self._judges or one.verdict.outcome != "no_verdict",
            fault=fault_of(item.task.problem, one.candidate),
            logprob=self._logprob(turn),
            earlier=tuple(Attempt(number, other.completion) for number, other in answers if (number, other) != best),
            formatted=laid_out(item.task.problem, one.candidate) if self.options.format else None,
        )
        return environment.solution(found, episode, self._judges)

    def _logprob(self, turn: Turn) -> float | None:
        sampled = turn.completion.sampled
        if isinstance(sampled, TokenCount):  # An endpoint's.
            return None if sampled.logprobs is None else sum(sampled.logprobs)
        with acting(self.policies, turn.role) as policy:
            return logprob(policy.model, turn.prompt_ids, sampled.ids)


def settings_of(options: Infer) -> dict[str, Any]:
    """Return the options that determine answers, besides the tasks, the policy and the verifier."""
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
    found |= {"adapt": options.adapt, "adapt_rounds": options.adapt_rounds} if options.adapt != "none" else {}
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
    """Load an engine for a checkpoint.

    Args:
        path: folder of a checkpoint or of an adapter; empty for the policy that `model` names, by default the embedded
            one.
        options: the search for an answer; by default one greedy attempt. If a verifier is given, answers are verified.
        verifier: verifies completions. The caller closes it. None: completions are not verified.
        domain: the domain of tasks that are given as `Task`. Rows need none.
        model: options of the policy; None for those of the run that wrote the checkpoint, or else the defaults.
        seed: of the draws.

    Raises:
        InputError: the checkpoint is missing or damaged, or the options cannot work. The error names every problem.
    """
    options = replace(options or Infer(), verify=verifier is not None)
    node = replace(model, path=str(path) or model.path) if model else _model_of(Path(path) if path else None)
    needed = [*weights_missing(node), *formatter_missing(options)]
    problems = [*options.problems(), *node.problems(), *(need.problem for need in needed)]
    if problems:
        raise InputError(*problems)
    return Engine(load_policy(node, seed), options, node, verifier, domain, seed)


def _model_of(path: Path | None) -> Model:
    """Return the `model` node for the policy at `path`. A checkpoint of a run has the options of the run, including
    prompts and lengths."""
    if path is None:
        return compose(["+stage=infer"]).config.model
    run = path.resolve().parent.parent / "config.yaml"
    node = load_config(run).model if run.is_file() else Model()
    return at_checkpoint(node, str(path))
