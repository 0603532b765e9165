"""The steps of a cascade's run: each is sampled when the first role requests it, and logged once the roles have been
trained.

Roles that learn in the same step are trained on the same cascades. rlvr_exp.stages.cascade decides whose turn it is,
rlvr_exp.stages.cascade_roles trains a role.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from statistics import fmean
from typing import Any

from rlvr_exp.algorithms import credit_assignment
from rlvr_exp.config import build
from rlvr_exp.core.errors import GuardStop, Interrupted
from rlvr_exp.evaluation.leakage import check_leakage
from rlvr_exp.evaluation.metrics import rates_from
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.rollout_files import VerifiedCompletion, write_rollouts
from rlvr_exp.records.tracking import Tracker
from rlvr_exp.rollouts.cascade import ROLES
from rlvr_exp.rollouts.cascade_collect import CascadeCollector, Collected, Paid
from rlvr_exp.rollouts.distributed import all_reduce_counters
from rlvr_exp.stages.cascade_components import CascadeComponents, score_cascade
from rlvr_exp.stages.cascade_roles import Learner, algorithm_of
from rlvr_exp.stages.components import held_out_tasks, rl_split, training_tasks
from rlvr_exp.stages.fit import SUCCESS
from rlvr_exp.stages.verifier_setup import system_metrics
from rlvr_exp.training.guards_trend import ResourceTrends
from rlvr_exp.training.rollout_rows import rollout_rows
from rlvr_exp.training.saving import EvalFn


def collector_of(components: CascadeComponents, config, context: RunContext) -> CascadeCollector:
    """The collector of a run: tasks come from the curriculum, random draws from the run's seed."""
    options, algorithm = config.cascade, config.algorithm
    tasks = training_tasks(components.writer, config, context, rl_split(components.domain.writer))
    batch = algorithm.rollout_batch_size or config.evaluation.batch_size
    algorithms = {role: algorithm_of(config, role) for role in ROLES}
    by_gold = options.credit == "counterfactual" and options.counterfactual == "gold"
    return CascadeCollector(
        cascade=replace(components.cascade(config, algorithm, batch, options.attempts), graft_all=by_gold),
        options=options,
        reward=build(config.reward),
        curriculum=build(config.curriculum, tasks=tasks, seed=config.seed),
        tasks_per_step=algorithm.prompts_per_step,
        bodies=algorithm.group_size,
        filters={role: one.group_filter() for role, one in algorithms.items()},
        shapes={role: one.shaped for role, one in algorithms.items()},
        credit=_counterfactual if options.credit == "counterfactual" else _shared,
        seed=config.seed,
    )


def _shared(paid: Paid) -> list[float | None]:
    return credit_assignment.shared(paid.cascades)


def _counterfactual(paid: Paid) -> list[float | None]:
    return credit_assignment.counterfactual(paid.others)


class CascadeSteps:
    """The steps of a run: samples each when the first role requests it, and logs its results.

    Args:
        trends: forecasts of the process's resources.
    """

    def __init__(
        self,
        components: CascadeComponents,
        config,
        context: RunContext,
        collector: CascadeCollector,
        tracker: Tracker,
        trends: ResourceTrends,
    ):
        self._components, self.context, self._collector = components, context, collector
        self._trends, self._steps = trends, config.algorithm.max_steps
        self._every = config.run.log_every_steps
        self.tracker = tracker
        self.learners: dict[str, Learner] = {}
        self.now = 0
        """The current step, counted from 0."""
        self._collected: Collected | None = None
        """The cascades of the current step, once it is sampled."""
        self._shown: list[VerifiedCompletion] = []
        """Rollouts of the last sampled step."""
        self._seed = config.seed
        self._rows: list[dict[str, float]] = []
        """Metrics of the steps since the last row was logged."""

    def begin(self, step: int) -> None:
        self.now, self._collected = step, None
        for learner in self.learners.values():
            learner.learned = None

    def collected(self) -> Collected:
        if self._collected is None:
            self._collected = self._collector.collect(self.now)
            nonfinite = self._collector.reward.pop_nonfinite()
            for learner in self.learners.values():
                learner.guards.updates.rewards(nonfinite)
        return self._collected

    def end(self, seconds: float) -> None:
        """After the roles' updates: write the rollouts and record the cascades' metrics."""
        row = {"time/step": seconds}
        if self._collected is not None:
            rows = self._rollouts(self._collected)
            write_rollouts(self.context.directory, self.now + 1, rows)
            self._shown = rows
            row |= cascade_metrics(self._collected)
        self._rows.append(row)
        for line in self._trends.step(self.now + 1, self._steps):
            self.context.progress(kind="note", text=line)

    def _rollouts(self, collected: Collected) -> list[VerifiedCompletion]:
        """Rollouts of both roles, with groups numbered consecutively; those of a role that was not trained are
        frozen."""
        rows: list[VerifiedCompletion] = []
        for role, groups in collected.groups.items():
            learner = self.learners.get(role)
            learned = None if learner is None else learner.learned
            found = rollout_rows(groups, learned, learner is not None and learner.algorithm.regularised)
            first = rows[-1].group + 1 if rows else 0
            rows += [
                replace(one, group=first + one.group, cascade=about, fate="frozen" if learned is None else one.fate)
                for one, about in zip(found, collected.about[role], strict=True)
            ]
        return rows

    def log(self) -> bool:
        """Log the run's own metrics in the row of the step, where one is due."""
        step = self.now + 1
        if step % self._every and step != self._steps:
            return False
        names = dict.fromkeys(name for row in self._rows for name in row)
        row = {name: fmean(one[name] for one in self._rows if name in one) for name in names}
        collected = {f"collected/{name}": value for name, value in self._collector.metrics().items()}
        normalizer = {f"reward/normalizer_{name}": value for name, value in self._collector.reward.metrics().items()}
        counted = all_reduce_counters(system_metrics(self._components.writer.verifier))
        self.tracker.log(step, {**row, **collected, **normalizer, **self._trends.metrics(), **counted})
        self.tracker.samples(self._shown, self._seed)
        self.context.progress(kind="step", step=step, total=self._steps, success=row.get("cascade/success/mean"))
        self._rows = []
        return True

    def check(self, done: int, wanted: int) -> None:
        """Raises GuardStop where no step had anything to learn from, for any role."""
        if not any(one.log.steps_with_signal for one in self.learners.values()):
            raise GuardStop(
                f"{done} of {wanted} steps were done and none had anything to learn from: in every group all rewards were "
                "equal. Look at rollouts/: a cascade that always fails or always passes needs other tasks, a higher "
                "algorithm.temperature or policies that were trained on gold answers first"
            )

    def state_dict(self) -> dict[str, Any]:
        """Plain values: the data of the next row, except for times, which differ between runs."""
        return {
            "rows": [{name: one for name, one in row.items() if not name.startswith("time/")} for row in self._rows]
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._rows = list(state["rows"])


def cascade_metrics(collected: Collected) -> dict[str, float]:
    """Metrics of a step's cascades: proved, which role failed and how, and the credit of each role."""
    results = [one for one in collected.results if one.verdict.outcome != "no_verdict"]
    row: dict[str, float] = {"cascade/no_verdict": float(len(collected.results) - len(results))}
    if results:
        share = 1.0 / len(results)
        row["cascade/success/mean"] = share * sum(one.verdict.outcome == "passed" for one in results)
        for role in ROLES:
            row[f"cascade/failed_by/{role}"] = share * sum(one.failed_by == role for one in results)
        for kind, count in Counter(one.failure for one in results if one.failure).items():
            row[f"cascade/failure/{kind}"] = share * count
    for role, groups in collected.groups.items():
        paid = [reward for group in groups.sampled for reward in group.rewards if reward is not None]
        if paid:
            row[f"cascade/credit/{role}"] = fmean(paid)
            row[f"cascade/credit_spread/{role}"] = fmean(
                max(each) - min(each) if (each := [one for one in group.rewards if one is not None]) else 0.0
                for group in groups.sampled
            )
    return row


def held_out_success(components: CascadeComponents, config, context: RunContext) -> EvalFn:
    """Returns a function that evaluates the cascade on the tasks of `run.select`, which no reported success includes.
    Writes no file.

    Raises:
        InputError: there is no such split, or it shares tasks with the reported ones.
    """
    wanted = config.run.select
    options = replace(config.evaluation, split=wanted.split, tasks=wanted.tasks, skip=0, samples=wanted.samples)
    tasks: Sequence = held_out_tasks(components.domain.writer, options) if wanted.every_steps else ()
    check_leakage(tasks, components.writer.held_out)

    def progress(done: int, total: int) -> None:
        with suppress(Interrupted):  # The step ends first, with a checkpoint.
            context.progress(kind="phase", name="evaluate held-out", done=done, total=total)

    def now() -> Mapping[str, float]:
        start = time.perf_counter()
        scored = score_cascade(components, config, options, tasks, config.cascade.attempts, progress)
        rates = rates_from(scored, SUCCESS)
        return {f"held_out/{name}": rate.value for name, rate in rates.items()} | {
            "time/held_out": time.perf_counter() - start
        }

    return now
