"""What the roles of a cascade learn from, and what is logged of it."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from rlvr_exp.algorithms import credit_assignment
from rlvr_exp.config import build
from rlvr_exp.core.errors import Interrupted
from rlvr_exp.evaluation.leakage import check_leakage
from rlvr_exp.evaluation.metrics import rates_from
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.rollout_files import RolloutRow, write_rollouts
from rlvr_exp.rollouts.cascade import ROLES
from rlvr_exp.rollouts.cascade_collect import CascadeCollector, Collected, Paid
from rlvr_exp.stages.cascade_components import CascadeComponents, score_cascade
from rlvr_exp.stages.cascade_roles import algorithm_of
from rlvr_exp.stages.components import held_out_tasks, rl_split, training_tasks
from rlvr_exp.stages.fit import SUCCESS, selection_due
from rlvr_exp.stages.rollout_feed import collection_metrics
from rlvr_exp.training.loop import Measurement
from rlvr_exp.training.rl_learner import RLLearner, Rollouts
from rlvr_exp.training.rollout_rows import rollout_rows
from rlvr_exp.verifiers.base import Verifier


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


class CascadeFeed:
    """The rollouts of a cascade's roles: those that learn in the same step learn from the same cascades."""

    def __init__(self, collector: CascadeCollector, verifier: Verifier, directory: Path):
        self._collector, self._verifier, self._directory = collector, verifier, directory
        self._collected: Collected | None = None
        self.rows: Sequence[RolloutRow] = ()
        self._metrics: list[dict[str, float]] = []
        """Metrics of the steps since the last row was logged."""

    def collect(self, step: int) -> Rollouts:
        self._collected = self._collector.collect(step)
        self._metrics.append(cascade_metrics(self._collected))
        return Rollouts(step, self._collected.groups, self._collector.reward.pop_nonfinite())

    def write(self, learners: Mapping[str, RLLearner]) -> None:
        """Write the rollouts of both roles, with groups numbered consecutively; those of a role that does not learn in
        the step are frozen."""
        rows: list[RolloutRow] = []
        for role, groups in self._collected.groups.items():
            learner = learners.get(role)
            found = rollout_rows(
                groups, learner and learner.learned, learner is not None and learner.algorithm.regularised
            )
            first = rows[-1].group + 1 if rows else 0
            rows += [
                replace(one, group=first + one.group, cascade=about, fate="frozen" if learner is None else one.fate)
                for one, about in zip(found, self._collected.about[role], strict=True)
            ]
        write_rollouts(self._directory, self._collected.step + 1, rows)
        self.rows = rows

    def metrics(self) -> dict[str, float]:
        names = dict.fromkeys(name for row in self._metrics for name in row)
        row = {name: fmean(one[name] for one in self._metrics if name in one) for name in names}
        self._metrics = []
        return {**row, **collection_metrics(self._collector, self._verifier)}

    def state_dict(self) -> dict[str, Any]:
        """Plain values: the data of the next row."""
        return {"rows": list(self._metrics)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._metrics = list(state["rows"])


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


def held_out_success(components: CascadeComponents, config, context: RunContext) -> Measurement:
    """The cascade's success on the tasks of `run.select`, which no reported success includes. Writes no file.

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

    return Measurement(lambda step: selection_due(config, step), now)
