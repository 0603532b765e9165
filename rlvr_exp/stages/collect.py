"""Collect trajectories of a teacher: a policy, an endpoint, or the actions in the data. Each action is verified.

Trajectories are written batch by batch. The completions of a batch in progress are in a journal next to them. The same
command with the same output continues after both.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from rlvr_exp.config.engine import is_server
from rlvr_exp.config.load import build
from rlvr_exp.config.model import OF_PROMPTS
from rlvr_exp.config.schema import Config
from rlvr_exp.config.solutions import Collect
from rlvr_exp.core.errors import GuardStop, Interrupted
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.core.statistics import mean_interval
from rlvr_exp.episodes.episode import Draws
from rlvr_exp.evaluation.metrics import Rate
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.resumable_jsonl import CompletionJournal, ResumableJsonl, journal_beside
from rlvr_exp.rollouts.engines.base import SamplingEngine
from rlvr_exp.rollouts.engines.journaled import Journaled
from rlvr_exp.rollouts.engines.server import COST
from rlvr_exp.stages.shared.components import (
    RunComponents,
    device,
    in_first_process,
    load_policies,
    model_section,
    runner_of,
    sampled_weights,
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
from rlvr_exp.stages.shared.start import check_shown, collected_tasks, in_steps
from rlvr_exp.tasks.base import ContinuesEdits, Task
from rlvr_exp.verifiers.base import KeepsOutputs, Request, Verdict, Verifier
from rlvr_exp.verifiers.guarded import NoVerdictGuard

SHOWN = 300
"""A step keeps this many characters of the log."""


Row = dict[str, Any]
Teach = Callable[[Sequence[tuple[Task, int]], SamplingEngine | None], list[Row]]
"""Return the trajectories of pairs of a task and the index of a sample, in order. The given engine samples the
completions."""


def step_of(domain: ContinuesEdits, task: Task, answer: str, action: str | None, verdict: Verdict, tokens: int) -> Row:
    """Return the answer to one state, as a row of the file.

    Args:
        action: the action in the answer; None if it has no action.
    """
    after = verdict.outputs[0] if verdict.outputs else None
    log = f"{verdict.reason}: {verdict.log}"[:SHOWN] if verdict.outcome != "passed" else ""
    found = {"before": domain.state(task), "answer": answer, "action": action, "after": after}
    return {**found, **domain.noted(task, answer), "outcome": verdict.outcome, "log": log, "tokens": tokens}


def trajectory(domain: ContinuesEdits, task: Task, sample: int, teacher: str, steps: Sequence[Row]) -> Row:
    """Return the steps of one branch of an episode as a row. `outcome` is the outcome of the last text."""
    found = {"id": f"{task.id}#{sample}", "task": task.id, "teacher": teacher, "outcome": steps[-1]["outcome"]}
    return {**found, **domain.described(task), "steps": list(steps)}


@dataclass(frozen=True)
class _Teacher:
    domain: ContinuesEdits
    verifier: Verifier
    teach: Teach
    who: Any
    """Identifies the teacher: a hash of its weights, or the name of the served model."""
    engine: SamplingEngine | None = None
    """Samples the completions; None if the teacher samples nothing."""

    def counted(self) -> Mapping[str, float]:
        return {} if self.engine is None else self.engine.metrics()


class TrajectoryFile(ResumableJsonl):
    """The file of trajectories. `provenance` has everything that determines them."""

    option = "collect.output"

    @staticmethod
    def fits(row: Any) -> bool:
        return isinstance(row, dict) and {"id", "task", "outcome", "steps"} <= row.keys()


def run(config: Config, context: RunContext) -> StageResult:
    options = config.collect
    assert options is not None  # The stage has its node.
    opened = _golds(config, context) if options.teacher == "golds" else _policy(config, context, options)
    with opened as teacher:
        tasks = collected_tasks(config, teacher.domain)
        target = Path(options.output or context.directory / "trajectories.jsonl")
        provenance = _provenance(config, options, tasks, teacher, context)
        journal = journal_beside(target, provenance)
        with TrajectoryFile(target, provenance) as out, closing(journal):
            return _Collecting(options, context, out, teacher, journal).run(tasks)


@contextmanager
def _golds(config: Config, context: RunContext) -> Iterator[_Teacher]:
    domain = in_steps(build_domain(config, context, in_first_process))
    with NoVerdictGuard(build_verifier(config), config.verifier.max_no_verdict_rate) as verifier:
        check_verifier_match(verifier, collected_tasks(config, domain))
        kept = KeepsOutputs(verifier, "verifier", remember=False)
        yield _Teacher(domain, verifier, lambda asked, _: reference_trajectories(domain, kept, asked), "golds")


def reference_trajectories(domain: ContinuesEdits, verifier: Verifier, asked: Sequence[tuple[Task, int]]) -> list[Row]:
    """Return trajectories of the actions in the data. Each action applies one rule and is verified; the last one is
    `done`. All tasks advance together, step by step. A trajectory ends early if an action produces no text.

    Args:
        verifier: keeps outputs (rlvr_exp.verifiers.base.KeepsOutputs).
    """
    answers = {task.id: iter(domain.gold_steps(task)) for task, _ in asked}
    steps: dict[str, list[Row]] = {task.id: [] for task, _ in asked}
    live = [task for task, _ in asked]
    while live:
        given = [(task, answer) for task in live if (answer := next(answers[task.id], None)) is not None]
        parsed = [(task, answer, domain.parse(answer, task)) for task, answer in given]
        found = [verifier.submit(Request(task.problem, candidate)) for task, _, candidate in parsed]
        live = []
        for (task, answer, candidate), one in zip(parsed, found, strict=True):
            step = step_of(domain, task, answer, candidate.text, one.result(), 0)
            steps[task.id].append(step)
            if step["after"] is not None:
                live.append(domain.after_step(task, step["after"], answer))
    return [trajectory(domain, task, 0, "golds", steps[task.id]) for task, _ in asked if steps[task.id]]


@contextmanager
def _policy(config: Config, context: RunContext, options: Collect) -> Iterator[_Teacher]:
    if config.parallel.threads:
        torch.set_num_threads(config.parallel.threads)
    domain = in_steps(build_domain(config, context, in_first_process))
    environment = build(config.environment, domain=domain)
    check_shown(environment)
    engine = start_engine(config, context)
    context.progress(kind="wait", name="load the policy")
    policies = load_policies(config, engine, domain, context)
    with NoVerdictGuard(build_verifier(config), config.verifier.max_no_verdict_rate) as verifier:
        check_verifier_match(verifier, collected_tasks(config, domain))
        components = RunComponents(domain, policies, verifier, (), engine)
        manifest.update(context.directory, device=device(), model=model_section(policies, engine))
        name, draws = "endpoint" if is_server(config.engine) else "policy", Draws(config.seed, "collect")

        def teach(asked: Sequence[tuple[Task, int]], batch: SamplingEngine | None) -> list[Row]:
            played = replace(components, engine=batch or engine)
            runner = runner_of(environment, played, config, options, options.batch_size)
            episodes = runner.run([environment.reset(task, draws, (sample,)) for task, sample in asked])
            return [
                trajectory(
                    domain,
                    episode.task,
                    episode.samples[0],
                    name,
                    [
                        step_of(domain, one.task, one.text, one.candidate.text, one.verdict, one.tokens)
                        for one in (turn.completion for turn in episode.turns)
                    ],
                )
                for episode in episodes
            ]

        yield _Teacher(domain, verifier, teach, sampled_weights(policies, engine), engine)


def _provenance(
    config: Config, options: Collect, tasks: Sequence[Task], teacher: _Teacher, context: RunContext
) -> dict[str, Any]:
    described = checked_description(teacher.verifier, context)
    manifest.update(context.directory, verifier=described, tasks=len(tasks))
    drawing = ("samples", "temperature", "top_k", "top_p", "min_p", "stop")
    sampled = options.teacher == "policy"
    return {
        "tasks": content_hash([[task.id, teacher.domain.task_prompt(task)] for task in tasks]),
        "teacher": options.teacher,
        "weights": teacher.who,
        "seed": config.seed if sampled else 0,
        "decoding": {name: getattr(options, name) for name in drawing} if sampled else {},
        "model": {name: getattr(config.model, name) for name in OF_PROMPTS} if sampled else {},
        "steps": config.environment.steps if sampled else 0,
        "verifier": decides(config, described),
    }


class _Collecting:
    """A pass over the tasks. It counts existing trajectories and does not repeat them."""

    def __init__(
        self, options: Collect, context: RunContext, out: TrajectoryFile, teacher: _Teacher, journal: CompletionJournal
    ):
        self._options, self._context, self._out, self._teacher = options, context, out, teacher
        self._journal = journal
        self._done = Counter[str](trajectories=0, passed=0, steps=0, tokens=0)
        self._known: set[str] = set()
        self._passed: dict[str, list[float]] = defaultdict(list)
        """By task, 1.0 for each trajectory that ended correctly and 0.0 for each other one."""
        self._unanswered = 0
        """Number of trajectories that an endpoint or a verifier broke off. They are not written; the same command
        repeats them."""
        self._count(list(out.existing()))
        self._before, self._began = len(self._known), time.monotonic()

    def run(self, tasks: Sequence[Task]) -> StageResult:
        """Collect all trajectories. Before it raises Interrupted or GuardStop, it writes every finished one."""
        asked = [(task, sample) for task in tasks for sample in range(self._options.samples)]
        left = [one for one in asked if f"{one[0].id}#{one[1]}" not in self._known]
        batch = self._batch(len(asked))
        if self._before or (batch and batch.kept):
            kept = f" and the {batch.kept} completions of {self._journal.path}" if batch and batch.kept else ""
            text = f"resuming after the {self._before} trajectories of {self._out.path}{kept}"
            self._context.progress(kind="note", text=text)
        if left:
            self._show(len(asked))
        for start in range(0, len(left), self._options.batch_size):
            self._check_budget()
            shown = self._shown(left[start : start + self._options.batch_size], batch, len(asked))
            rows = [row for row in shown if row["outcome"] != "no_verdict"]
            self._unanswered += len(shown) - len(rows)
            for row in rows:
                self._out.write(row)
            self._count(rows)
            if batch:
                batch.episodes_end()
            with suppress(Interrupted):
                self._show(len(asked))
            if self._context.interrupted and len(self._known) + self._unanswered < len(asked):
                raise self._stopped(len(asked))
        self._journal.remove()
        self._context.metrics = self._metrics()
        means = [fmean(one) for one in self._passed.values()]
        if not means:
            raise GuardStop(
                f"none of {self._unanswered} trajectories has a verdict. The same command asks for them again"
            )
        rate = Rate(*mean_interval(means), n=len(means), samples=self._options.samples)
        done = f"{self._done['trajectories']} trajectories, {self._done['steps']} steps, {rate.value:.1%} end right"
        self._context.progress(kind="note", text=f"{done}: {self._out.path}")
        if self._unanswered:
            text = f"{self._unanswered} trajectories were broken off without a verdict and are not written: the same command asks for them again"
            self._context.progress(kind="note", text=text)
        return StageResult(after={"collect_success": rate}, metrics=self._context.metrics)

    def _batch(self, total: int) -> Journaled | None:
        """Return the teacher's engine with a journal. Progress counts trajectories, because their number of actions is
        unknown."""

        def report(done: int, _: int, rate: float | None, __: float) -> None:
            self._context.progress(
                kind="phase",
                name="collect",
                done=len(self._known),
                total=total,
                completions=done,
                tokens_per_second=rate,
            )

        return None if self._teacher.engine is None else Journaled(self._teacher.engine, self._journal, 0, report)

    def _shown(self, asked: Sequence[tuple[Task, int]], batch: Journaled | None, total: int) -> list[dict[str, Any]]:
        try:
            return self._teacher.teach(asked, batch)
        except Interrupted as stop:
            raise self._stopped(total) from stop

    def _stopped(self, total: int) -> Interrupted:
        self._context.metrics = self._metrics()
        return Interrupted(
            f"stopped after {len(self._known)} of {total} trajectories; {self._out.path}. "
            "The same command with this collect.output continues there and samples no completion again that has ended"
        )

    def _show(self, total: int) -> None:
        self._context.progress(kind="phase", name="collect", done=len(self._known), total=total)

    def _check_budget(self) -> None:
        options, tokens = self._options, self._done["tokens"]
        cost = self._teacher.counted().get(COST, 0.0)
        limits = [("max_tokens", options.max_tokens, tokens), ("max_cost", options.max_cost, cost)]
        for name, limit, spent in limits:
            if 0 < limit <= spent:
                self._context.metrics = self._metrics()
                raise GuardStop(
                    f"{tokens} tokens were sampled{f' at a cost of {cost:g}' if cost else ''}, collect.{name}={limit}; {len(self._known)} "
                    f"trajectories are in {self._out.path}. The same command with a larger limit continues there"
                )

    def _count(self, rows: Sequence[dict[str, Any]]) -> None:
        for row in rows:
            self._known.add(row["id"])
            self._passed[row["task"]].append(float(row["outcome"] == "passed"))
        steps = [step for row in rows for step in row["steps"]]
        passed = sum(row["outcome"] == "passed" for row in rows)
        self._done.update(trajectories=len(rows), passed=passed, steps=len(steps))
        self._done.update(tokens=sum(step["tokens"] for step in steps))

    def _metrics(self) -> dict[str, Any]:
        seconds = time.monotonic() - self._began
        return {
            **{f"collect/{name}": value for name, value in self._done.items()},
            "collect/no_verdict": self._unanswered,
            **system_metrics(self._teacher.verifier),
            **self._teacher.counted(),
            "system/trajectories_from_before": self._before,
            "time/collect": seconds,
            "time/trajectories_per_second": (len(self._known) - self._before) / seconds if seconds else 0.0,
        }
