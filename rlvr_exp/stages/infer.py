"""Solve tasks from a file, standard input or the data with a policy. Answers are JSON lines in the order of the tasks.

Every problem that can be detected early is reported before the first task starts. Answers are written batch by batch.
The completions of a batch in progress are in a journal next to them. The same command with the same output continues
after both.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from rlvr_exp.config.data import SINGLE_TURN
from rlvr_exp.config.model import OF_PROMPTS
from rlvr_exp.config.roles import of_role
from rlvr_exp.config.schema import Config
from rlvr_exp.config.stage_options import STDIN, Infer
from rlvr_exp.core.errors import Interrupted
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.episodes.episode import POLICY
from rlvr_exp.inference.adaptation import Adaptation
from rlvr_exp.inference.engine import Engine, settings_of
from rlvr_exp.inference.solution import Summary, readable
from rlvr_exp.launch.console import KEPT_INPUT
from rlvr_exp.launch.inference_inputs import (
    InferenceTask,
    check_shown,
    check_vote,
    from_file,
    select_tasks,
    tasks_of_domain,
)
from rlvr_exp.models.policy import Policy
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.resumable_jsonl import AnswerFile, CompletionJournal, journal_beside
from rlvr_exp.rollouts.engines.base import SamplingEngine
from rlvr_exp.rollouts.engines.journaled import Journaled
from rlvr_exp.stages.shared.components import (
    device,
    held_out_order,
    in_first_process,
    inference_environment,
    load_policies,
    model_section,
    play_of,
    sampled_weights,
    split_tasks,
    start_engine,
)
from rlvr_exp.stages.shared.data_and_verifier import (
    build_domain,
    build_verifier,
    check_verifier_match,
    checked_description,
    decides,
    system_metrics,
)
from rlvr_exp.tasks.base import Domain
from rlvr_exp.verifiers.base import Verifier
from rlvr_exp.verifiers.guarded import NoVerdictGuard


@dataclass(frozen=True)
class InferenceInputs:
    """The tasks to solve."""

    asks: Sequence[InferenceTask]
    content: str
    """A hash of the full content of the tasks."""
    source: str


def run(config: Config, context: RunContext) -> StageResult:
    options = config.infer
    assert options is not None  # The stage has its node.
    if config.parallel.threads:
        torch.set_num_threads(config.parallel.threads)
    context.progress(kind="wait", name="load the data and the policy")
    play = play_of(config, context)
    domain = play.domain if play else build_domain(config, context, in_first_process)
    inputs = inference_inputs(config, context.directory, domain)
    if options.vote:
        check_vote(inputs.asks)
    if options.adapt != "none":
        check_shown(inputs.asks)
    sampler = start_engine(config, context)
    policies = load_policies(config, sampler, domain, context)
    with _judging(config, options.verify) as verifier:
        if verifier is not None:
            check_verifier_match(verifier, (ask.task for ask in inputs.asks))
        description = None if verifier is None else checked_description(verifier, context)
        target = Path(options.output or context.directory / "answers.jsonl")
        provenance = _provenance(config, options, inputs, policies, sampler, description)
        batch = _Solving(sampler, verifier, inputs.asks, journal_beside(target, provenance), context, options)
        limits = {role: of_role(config, role).model for role in policies}
        environment = inference_environment(config, domain, play)
        engine = Engine(policies, options, limits, verifier, domain, config.seed, batch.sampler, environment)
        with AnswerFile(target, provenance) as out:
            manifest.update(
                context.directory,
                input={"source": inputs.source, "hash": inputs.content, "tasks": len(inputs.asks)},
                output=str(target),
                device=device(),
                model=model_section(policies, sampler),
                verifier=description,
            )
            return batch.run(engine, out)


def inference_inputs(config: Config, directory: Path, domain: Domain) -> InferenceInputs:
    """Return the configured tasks. Raises InputError if there are none, or if a task cannot be read."""
    options = config.infer
    assert options is not None  # The stage has its node.
    if not options.input:
        tasks = held_out_order(split_tasks(domain, options.split))
        source = f"{config.data.path or 'the embedded corpus'}, split {options.split}"
        asks, content = tasks_of_domain(tasks, domain), domain.fingerprint(options.split)
    else:
        stdin = options.input == STDIN
        path = directory / KEPT_INPUT if stdin else Path(options.input)
        source = "standard input" if stdin else options.input
        asks, rows = from_file(path, domain, source)
        content = content_hash(rows)
    kept = select_tasks(asks, options.ids, options.tasks)
    return InferenceInputs(kept, content_hash([content, [str(ask.id) for ask in kept]]), source)


@contextmanager
def _judging(config: Config, verify: bool) -> Iterator[Verifier | None]:
    if not verify:
        yield None
        return
    with NoVerdictGuard(build_verifier(config), config.verifier.max_no_verdict_rate) as verifier:
        yield verifier


def _provenance(
    config: Config,
    options: Infer,
    inputs: InferenceInputs,
    policies: Mapping[str, Policy],
    sampler: SamplingEngine,
    description: dict[str, Any] | None,
) -> dict[str, Any]:
    weights = sampled_weights(policies, sampler)
    return {
        "input": inputs.content,
        "prompts": content_hash([ask.domain.task_prompt(ask.task) for ask in inputs.asks]),
        "weights": weights.get(POLICY, weights),
        "model": {name: getattr(config.model, name) for name in ("dtype", "quantization", *OF_PROMPTS)},
        "roles": {role: asdict(own.model) for role, own in config.roles.items() if own.model is not None},
        "seed": config.seed,
        "decoding": settings_of(options),
        **_turns(config),
        "verifier": None if description is None else decides(config, description),
    }


def _turns(config: Config) -> dict[str, Any]:
    """Return the options of a multi-turn environment that determine the answers."""
    node = config.environment
    if hasattr(node, "of_answers"):
        return node.of_answers(config.data)
    if node._target_ != SINGLE_TURN:
        return {name: value for name, value in vars(node).items() if name != "_target_"}
    return {}


class _Solving:
    """A pass over the tasks. It counts tasks that already have an answer and does not repeat them."""

    def __init__(
        self,
        sampler: SamplingEngine,
        verifier: Verifier | None,
        asks: Sequence[InferenceTask],
        journal: CompletionJournal,
        context: RunContext,
        options: Infer,
    ):
        self._verifier, self._asks, self._journal, self._context = verifier, asks, journal, context
        self._total, self._options = len(asks), options
        self.sampler = Journaled(sampler, journal, self._total * self._options.samples, self._report)
        """Samples the completions."""
        self._counts, self._began, self._before = Summary(), time.monotonic(), 0
        self._adaptation: Adaptation | None = None

    def run(self, engine: Engine, out: AnswerFile) -> StageResult:
        """Answer all tasks. Raises Interrupted and GuardStop; `context.metrics` is set before."""
        self._counts = getattr(engine.environment, "summary", Summary)()
        self._adaptation = engine.adaptation
        done = {str(row["id"]) for row in map(self._counted, out.existing())}
        self._before, left = len(done), [ask for ask in self._asks if str(ask.id) not in done]
        self.sampler.skip(self._before * self._options.samples)
        if self._before or self.sampler.kept:
            kept = f" and the {self.sampler.kept} completions of {self._journal.path}" if self.sampler.kept else ""
            self._context.progress(kind="note", text=f"resuming after the {self._before} answers of {out.path}{kept}")
        size = self._options.at_once
        with closing(self._journal):
            for start in range(0, len(left), size):
                try:
                    self._answer(engine, left[start : start + size], out)
                except Interrupted as stop:
                    raise self._stopped(out) from stop
                if self._context.interrupted and self._counts.tasks < self._total:
                    raise self._stopped(out)
        self._journal.remove()
        with suppress(Interrupted):  # All is written.
            self.sampler.show()
        text = f"{self._counts.text()}; answers: {out.path}"
        self._context.progress(kind="note", text=text)
        rates = self._counts.rates(self._options.max_attempts, self._options.samples, self._options.voted)
        self._context.metrics = self._metrics()
        return StageResult(after=rates, metrics=self._context.metrics)

    def _stopped(self, out: AnswerFile) -> Interrupted:
        return Interrupted(
            f"stopped after {self._counts.tasks} of {self._total} tasks; answers so far: {out.path}. "
            "The same command with this infer.output continues there and samples no completion again that has ended"
        )

    def _answer(self, engine: Engine, asks: Sequence[InferenceTask], out: AnswerFile) -> None:
        in_words = getattr(engine.environment, "in_words", readable)
        self.sampler.episodes_begin(len(asks) * self._options.samples)
        try:
            for solution in engine.solve_all(asks):
                row = solution.row()
                out.write(row)
                self._counted(row)
                if not self._options.output:
                    self._context.progress(kind="row", row=row, text=in_words(row))
            self.sampler.episodes_end()
        finally:
            self._context.metrics = self._metrics()

    def _counted(self, row: dict[str, Any]) -> dict[str, Any]:
        self._counts.add(row)
        return row

    def _report(self, done: int, total: int, rate: float | None, worked: float) -> None:
        counts = {"done": done, "total": total, "unit": "completions", "worked": worked}
        self._context.progress(kind="phase", name="infer", tokens_per_second=rate, **counts)

    def _metrics(self) -> dict[str, Any]:
        seconds = time.monotonic() - self._began
        judged = system_metrics(self._verifier) if self._verifier is not None else {}
        rate = (self._counts.tasks - self._before) / seconds if seconds else 0.0
        return {
            **self._counts.metrics(),
            **judged,
            **self.sampler.metrics(),
            **(self._adaptation.metrics() if self._adaptation is not None else {}),
            "system/answers_from_before": self._before,
            "time/infer": seconds,
            "time/tasks_per_second": rate,
        }
