"""Success on held-out tasks: before and after training, written into the run directory, and between steps."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlvr_exp.config.engine import is_server
from rlvr_exp.config.run import Evaluation, Select, planned
from rlvr_exp.config.schema import Config, trains
from rlvr_exp.core.errors import InputError, Interrupted
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.core.phase import EVALUATE, phase
from rlvr_exp.evaluation.bits import gold_costs, with_gold_costs
from rlvr_exp.evaluation.evaluate_episodes import evaluate_episodes
from rlvr_exp.evaluation.excess_code import EvaluationExcess, excess_section
from rlvr_exp.evaluation.leakage import apart, check_selection
from rlvr_exp.evaluation.metrics import METRICS, Rate, rates_from, strata_rates
from rlvr_exp.evaluation.saved import measurement, recall, remember, save, saved_rates
from rlvr_exp.evaluation.text_similarity import metrics_by_role
from rlvr_exp.evaluation.vote import EvaluationVote
from rlvr_exp.launch.preflight import excess_problems, no_vote
from rlvr_exp.models.parameters import gathered_weights
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.resumable_jsonl import FOLDER, CompletionJournal
from rlvr_exp.records.rollout_files import EvalSample, When
from rlvr_exp.report.tasks import save_task_index, save_task_table
from rlvr_exp.rollouts.distributed import broadcast_object, rank
from rlvr_exp.rollouts.engines.journaled import Journaled
from rlvr_exp.stages.shared.components import RunComponents, evaluation_runner, held_out_tasks, sampled_weights
from rlvr_exp.tasks.base import HasEditTests, HoldsBackCases, Task
from rlvr_exp.training.loop import Measurement
from rlvr_exp.verifiers.base import PROMPT_TOO_LONG, executor_of
from rlvr_exp.verifiers.line_coverage import LineCoverageRunner

UNIT = "completions"
SUCCESS = ("pass_at_1", "pass_at_1_greedy")


def evaluate_before(components: RunComponents, config: Config, context: RunContext) -> dict[str, Rate]:
    """Evaluate before training. A resumed run reads a finished evaluation from its directory."""
    known = broadcast_object(
        saved_rates(context.directory, "before") if manifest.resumed_from(context.directory) else None
    )
    return evaluate_and_save(components, config, context, "before") if known is None else known


def evaluate_and_save(components: RunComponents, config: Config, context: RunContext, when: When) -> dict[str, Rate]:
    """Evaluate on the held-out tasks, write the evaluation into the run directory, and return its rates."""
    scored = _scored(components, config, context, when)
    if when == "before" or not context.before:  # Once a run: the tasks are the same.
        _note_too_long(scored, config, context)
    rates = _save(components, context, when, scored, config.evaluation)
    if when == "after" or not trains(config.stage):  # A training that stops before its first checkpoint reads it again.
        journal_path(context, when).unlink(missing_ok=True)
    if when == "after" and rank() == 0:  # What other measurements of the run have left, too.
        shutil.rmtree(context.directory / FOLDER, ignore_errors=True)
    return rates


def _scored(components: RunComponents, config: Config, context: RunContext, when: When) -> list[EvalSample]:
    """The samples of a new evaluation, or of another run that measured the same policy on the same tasks before
    training."""
    options = config.evaluation
    if when != "before" or not options.remember:
        return _measured(components, config, context, when)
    place = measurement(options.remember, context.directory, options.split)
    scored = broadcast_object(recall(place))
    if scored is None:
        scored = _measured(components, config, context, when)
        remember(place, scored)
    else:
        context.progress(kind="note", text=f"measured before training by an earlier run: {place}")
    return scored


def _measured(components: RunComponents, config: Config, context: RunContext, when: When) -> list[EvalSample]:
    name = f"evaluate {when}" if trains(config.stage) else "held out"
    context.progress(kind="wait", name=name)

    tasks, options = components.held_out, config.evaluation
    with phase(EVALUATE), ExitStack() as stack:
        extras = _extras(components, config, stack)

        def answered(samples: Sequence[EvalSample]) -> None:
            for extra in extras.values():
                extra.answered(samples)

        journal = CompletionJournal(journal_path(context, when), weights_of(components))
        scored = evaluated(components, config, context, name, journal, tasks, options, answered)
        for what, extra in extras.items():
            context.progress(kind="wait", name=f"{name}: {what}")
            scored = extra.marked(scored)
        if config.evaluation.bits:
            context.progress(kind="wait", name=f"{name}: bits of the golds")
            scored = with_gold_costs(scored, gold_costs(components.policy, components.domain, tasks))
    return scored


def evaluated(
    components: RunComponents,
    config: Config,
    context: RunContext,
    name: str,
    journal: CompletionJournal,
    tasks: Sequence[Task],
    options: Evaluation,
    answered: Callable[[Sequence[EvalSample]], None] | None = None,
    interrupts: bool = True,
) -> list[EvalSample]:
    """Run `evaluate_episodes`. Each finished completion goes into the journal, and progress is reported.

    Args:
        interrupts: whether a requested stop ends the evaluation.

    Raises:
        Interrupted: a stop was requested. A run that resumes this one does not sample the completions of the journal
            again.
    """
    success: float | None = None

    def report(done: int, total: int, rate: float | None, worked: float) -> None:
        figures = {"tokens_per_second": rate, "success": success}
        with nullcontext() if interrupts else suppress(Interrupted):
            context.progress(kind="phase", name=name, done=done, total=total, unit=UNIT, worked=worked, **figures)

    def progress(done: int, total: int, share: float | None) -> None:
        nonlocal success
        success = share
        engine.show()

    engine = Journaled(components.engine, journal, len(tasks) * (options.samples + options.greedy), report)
    if engine.kept:
        context.progress(kind="note", text=f"{name}: {engine.kept} completions are known from {journal.path}")
    runner = evaluation_runner(replace(components, engine=engine), config, options)
    with closing(journal):
        try:
            return evaluate_episodes(runner, tasks, options, config.seed, progress, answered, engine.episodes_begin)
        except Interrupted as stop:
            raise Interrupted(
                f"{stop}; {engine.done} completions are kept, run.resume={context.directory} goes on"
            ) from stop


def journal_path(context: RunContext, name: str) -> Path:
    """The journal of this rank. It is in the run directory, because the other ranks' own directories are removed at
    their end."""
    own = (
        context.directory.parents[1] / FOLDER / f"{name}.rank{rank()}" if rank() else context.directory / FOLDER / name
    )
    return own.with_name(f"{own.name}.jsonl")


def weights_of(components: RunComponents) -> str:
    """A hash of the weights that sample. All ranks call this together."""
    with ExitStack() as stack:
        for policy in components.policies.values() if not is_server(components.engine) else ():
            stack.enter_context(gathered_weights(policy.model))
        return content_hash(sampled_weights(components.policies, components.engine))


def _extras(
    components: RunComponents, config: Config, stack: ExitStack
) -> dict[str, EvaluationVote | EvaluationExcess]:
    """Further measurements of the same completions, which run while the next tasks are sampled."""
    found: dict[str, EvaluationVote | EvaluationExcess] = {}
    if config.evaluation.vote:
        found["vote"] = _vote(components, config.evaluation.vote)
    if config.evaluation.excess_code:
        if problems := tuple(excess_problems(components.domain, config.evaluation.split)):
            raise InputError(*problems)
        runner = stack.enter_context(closing(LineCoverageRunner(config.sandbox)))
        found["excess code"] = _excess(components, runner)
    return found


def _vote(components: RunComponents, answers: int) -> EvaluationVote:
    """Raises InputError if the verifier, or a user's domain, does not support a vote."""
    option, domain = "evaluation.vote", components.domain
    if not isinstance(domain, HoldsBackCases):
        raise InputError(no_vote(domain, option))
    return EvaluationVote(executor_of(components.verifier, option), domain, answers)


def _excess(components: RunComponents, runner: LineCoverageRunner) -> EvaluationExcess:
    domain = components.domain
    assert isinstance(domain, HasEditTests)  # `excess_problems` refuses other domains.
    actions = not domain.answers_are_programs
    executor = executor_of(components.verifier, "evaluation.excess_code") if actions else None
    return EvaluationExcess(runner, domain, executor)


def _note_too_long(scored: Sequence[EvalSample], config: Config, context: RunContext) -> None:
    tasks = {one.completion.task.id for one in scored}
    long = {one.completion.task.id for one in scored if one.verdict.bucket == PROMPT_TOO_LONG}
    if long:
        text = f"{len(long)} of {len(tasks)} held-out prompts are longer than the policy takes"
        limit = f"model.max_prompt_tokens={config.model.max_prompt_tokens}"
        context.progress(kind="note", text=f"{text} ({limit}): they count as failures ({PROMPT_TOO_LONG})")


def _save(
    components: RunComponents, context: RunContext, when: When, scored: Sequence[EvalSample], evaluation: Evaluation
) -> dict[str, Rate]:
    play, domain = components.play, components.domain
    tasks: Sequence[Task] = components.held_out
    metrics = (*METRICS, *evaluation.further)
    roles, strata = ({}, {}) if play else (metrics_by_role(domain, scored), strata_rates(domain, scored, metrics))
    excess = excess_section(scored) if evaluation.excess_code else {}
    parts: Mapping[str, Any] = {"roles": roles, "strata": strata, "excess_code": excess}
    sections = {name: part for name, part in parts.items() if part}
    if play is not None:
        tasks = [replace(task, gold=play.gold(task)) for task in tasks]
        metrics, sections = play.metrics, play.sections(scored)
    save_task_index(context.directory, tasks)
    rates = save(context.directory, when, scored, metrics, sections)
    save_task_table(context.directory)
    return rates


def selection(components: RunComponents, config: Config, context: RunContext) -> Select:
    """The options of the search for the best step. If the data lack the split, and no option sets the steps, a note
    says so and the run does not search."""
    found, wanted = planned(config), config.run.select
    if not found.every_steps or wanted.every_steps or components.domain.splits().get(found.split):
        return found
    context.progress(kind="note", text=f"no best step is looked for: the data has no split {found.split!r}")
    return replace(found, every_steps=0)


def held_out_success(components: RunComponents, config: Config, context: RunContext, wanted: Select) -> Measurement:
    """Measure verified success on the tasks of the selection. No reported success includes these tasks. Writes no file.

    Raises:
        InputError: the split does not exist, or it shares tasks with the reported ones.
    """
    every = wanted.every_steps
    options = replace(config.evaluation, split=wanted.split, tasks=wanted.tasks, skip=0, samples=wanted.samples)
    tasks: Sequence[Task] = held_out_tasks(components.domain, options) if every else ()
    check_selection(tasks, components.held_out)
    tasks, _ = apart(components.domain, tasks, components.held_out)
    manifest.update(context.directory, select={"split": wanted.split, "tasks": len(tasks), "every_steps": every})

    def now() -> Mapping[str, float]:
        start, weights = time.perf_counter(), weights_of(components)
        # By weights: a run that resumes from an earlier step comes to the same weights again, after measuring others.
        journal = CompletionJournal(journal_path(context, f"selection_{weights[:8]}"), weights)
        with phase(EVALUATE):  # After a requested stop the step ends first, with a checkpoint.
            scored = evaluated(
                components, config, context, "evaluate held-out", journal, tasks, options, interrupts=False
            )
        journal.remove()
        rates = rates_from(scored, SUCCESS)
        ends = {"": "value", "/low": "low", "/high": "high"}
        row = {f"held_out/{name}{end}": getattr(rate, of) for name, rate in rates.items() for end, of in ends.items()}
        return row | {"time/held_out": time.perf_counter() - start}

    return Measurement(lambda step: bool(every) and (step % every == 0 or step >= config.algorithm.max_steps), now)
