"""The roles of a cascade as they learn: each an algorithm, an optimizer, a trainer and a log of its own.

A role's metrics stand under its name in the row of the run's step, `cascade/...` says what came of both; times stand
under `time/ROLE/...`. Roles that learn in one step learn from the same cascades. Who takes a turn is
rlvr_exp.stages.cascade's.
"""

import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from rlvr_exp.algorithms import credit
from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.algorithms.experience import Experience
from rlvr_exp.algorithms.probing import Probing
from rlvr_exp.algorithms.resumable import Resumable
from rlvr_exp.algorithms.roles import Roles
from rlvr_exp.config import build
from rlvr_exp.config.batching import Limits
from rlvr_exp.core.errors import GuardStop, Interrupted
from rlvr_exp.evaluation.metrics import rates_from
from rlvr_exp.evaluation.separation import check_separation
from rlvr_exp.models.adapters import adapter_metrics
from rlvr_exp.rollouts.cascade import ANNOTATOR, ROLES
from rlvr_exp.rollouts.cascade_collect import CascadeCollector, Collected, Paid
from rlvr_exp.rollouts.groups import Groups
from rlvr_exp.rollouts.sharing import added, rank
from rlvr_exp.run.callbacks import Metrics
from rlvr_exp.run.guards import Guards
from rlvr_exp.run.guards_trend import Trends
from rlvr_exp.run.job import Job
from rlvr_exp.run.rollout_files import Rollout, write_rollouts
from rlvr_exp.run.rollout_rows import rollout_rows
from rlvr_exp.run.saving import Measure
from rlvr_exp.run.step_log import StepLog
from rlvr_exp.run.tracking import Tracker
from rlvr_exp.stages.cascade_setup import CascadeParts, answered
from rlvr_exp.stages.judging import system_metrics
from rlvr_exp.stages.reinforcement import trainer_arguments
from rlvr_exp.stages.setup import held_out_tasks, training_tasks
from rlvr_exp.stages.training import SUCCESS


def of_role(config, role: str):
    """The configuration as a role's trainer reads it: its own steps, groups and group size."""
    options, algorithm = config.cascade, config.algorithm
    steps = max(1, options.steps_of(role, algorithm.max_steps))
    sizes = {"max_steps": steps}
    if role == ANNOTATOR:
        bodies = 1 if options.bodies == "gold" else algorithm.group_size
        sizes |= {"prompts_per_step": algorithm.prompts_per_step * bodies, "group_size": options.annotations}
    return replace(config, algorithm=replace(algorithm, **sizes))


def algorithm_of(config, role: str) -> Algorithm:
    longest, folder = config.model.max_completion_tokens, config.model.path
    return build(of_role(config, role).algorithm, max_completion_tokens=longest, checkpoint=folder)


def collector_of(parts: CascadeParts, config, job: Job) -> CascadeCollector:
    """The collector of a run: its tasks come from the curriculum, its draws from the run's seed."""
    options, algorithm = config.cascade, config.algorithm
    batch = algorithm.rollout_batch_size or config.evaluation.batch_size
    algorithms = {role: algorithm_of(config, role) for role in ROLES}
    return CascadeCollector(
        cascade=parts.cascade(config, algorithm, batch, options.attempts),
        options=options,
        reward=build(config.reward),
        curriculum=build(config.curriculum, tasks=training_tasks(parts.writer, config, job), seed=config.seed),
        tasks_per_step=algorithm.prompts_per_step,
        bodies=algorithm.group_size,
        filters={role: one.group_filter() for role, one in algorithms.items()},
        shapes={role: one.shaped for role, one in algorithms.items()},
        credit=_counterfactual if options.credit == "counterfactual" else _shared,
        seed=config.seed,
    )


def _shared(paid: Paid) -> list[float | None]:
    return credit.shared(paid.cascades)


def _counterfactual(paid: Paid) -> list[float | None]:
    return credit.counterfactual(paid.others)


class CascadeSteps:
    """The steps of a run: samples each when a role first asks for it, and tells what came of it.

    Args:
        trends: what the process uses.
    """

    def __init__(
        self, parts: CascadeParts, config, job: Job, collector: CascadeCollector, tracker: Tracker, trends: Trends
    ):
        self._parts, self.job, self._collector = parts, job, collector
        self._trends, self._steps = trends, config.algorithm.max_steps
        self._every = config.run.log_every_steps
        self.tracker = tracker
        self.learners: dict[str, Learner] = {}
        self.now = 0
        """The step at hand, counted from 0."""
        self._collected: Collected | None = None
        """Of the step at hand, once it is sampled."""
        self._shown: list[Rollout] = []
        """Of the last step that was sampled."""
        self._seed = config.seed
        self._rows: list[dict[str, float]] = []
        """Of the steps since the last row was logged."""

    def begin(self, step: int) -> None:
        self.now, self._collected = step, None
        for learner in self.learners.values():
            learner.learned = None

    def collected(self) -> Collected:
        if self._collected is None:
            self._collected = self._collector.collect(self.now)
            unsound = self._collector.reward.take_unsound()
            for learner in self.learners.values():
                learner.guards.updates.rewards(unsound)
        return self._collected

    def end(self, seconds: float) -> None:
        """The roles have learned: leave the rollouts, note what came of the cascades."""
        row = {"time/step": seconds}
        if self._collected is not None:
            rows = self._rollouts(self._collected)
            write_rollouts(self.job.directory, self.now + 1, rows)
            self._shown = rows
            row |= cascade_metrics(self._collected)
        self._rows.append(row)
        for line in self._trends.step(self.now + 1, self._steps):
            self.job.progress(kind="note", text=line)

    def _rollouts(self, collected: Collected) -> list[Rollout]:
        """Of both roles, groups numbered through; those of a role that did not learn are frozen."""
        rows: list[Rollout] = []
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
        """The run's part in the row of the step, where one is due."""
        step = self.now + 1
        if step % self._every and step != self._steps:
            return False
        names = dict.fromkeys(name for row in self._rows for name in row)
        row = {name: fmean(one[name] for one in self._rows if name in one) for name in names}
        collected = {f"collected/{name}": value for name, value in self._collector.metrics().items()}
        normalizer = {f"reward/normalizer_{name}": value for name, value in self._collector.reward.metrics().items()}
        counted = added(system_metrics(self._parts.writer.verifier))
        self.tracker.log(step, {**row, **collected, **normalizer, **self._trends.metrics(), **counted})
        self.tracker.samples(self._shown, self._seed)
        self.job.progress(kind="step", step=step, total=self._steps, success=row.get("cascade/success/mean"))
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
        """Plain values: what the next row is made of, but for times, which no two runs share."""
        return {
            "rows": [{name: one for name, one in row.items() if not name.startswith("time/")} for row in self._rows]
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._rows = list(state["rows"])


def cascade_metrics(collected: Collected) -> dict[str, float]:
    """What came of a step's cascades: proved, who failed and how, and what each role is credited with."""
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


class RoleGuards(Guards):
    """Of one role: its skipped updates. What the process uses is watched once, for all roles."""

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_):
        """Nothing: the run's own loop looks."""

    def metrics(self) -> Mapping[str, float]:
        return self.updates.metrics()


class Learner:
    """One role that learns."""

    def __init__(self, role: str, parts: CascadeParts, config, steps: CascadeSteps, scratch: Path):
        self.role, self._steps, self.policy = role, steps, parts.policies[role]
        self.algorithm, config = algorithm_of(config, role), of_role(config, role)
        self.guards = RoleGuards(config.run.guards, steps.job)
        self.log = StepLog(self.algorithm.regularised, self.algorithm.group_filter().mode != "keep")
        self.learned: Experience | None = None
        """What the step at hand was learned from."""
        own = replace(parts.writer, policy=self.policy)
        self.trainer = self.algorithm.trainer(
            self.policy,
            trainer_arguments(own, config, self.algorithm, scratch),
            build(config.optimizer).make(self.policy.model),
            self.experience,
            [Metrics(_Named(role, steps), _Quiet(steps.job), self.row, self.log.updated), self.guards],
            Limits(config.algorithm.max_tokens_per_device, config.model.max_prompt_tokens),
        )
        self.trainer.told, self.trainer.guard = self.told, self.guards.updates
        self.probing = Probing(config.run.probe, self.trainer, self.policy, _prompts(role, parts))
        self.trainer.add_callback(self.probing)
        self.trainer.notes |= {"steps": self.log, "probe": self.probing, "clipping": self.trainer.clipping}

    def experience(self, _: int) -> Experience:
        """What the run's step teaches the role. Raises GuardStop where its books do not add up."""
        groups: Groups = self._steps.collected().of(self.role)
        learned = self.algorithm.experience(groups, self.policy.pad_id)
        self.log.record(groups, learned)
        return learned

    def told(self, learned: Experience) -> None:
        self.learned = learned

    def row(self) -> dict[str, float]:
        """What happened since the last row."""
        own = {**self.log.metrics(), **adapter_metrics(self.policy.model)}
        return {**own, **self.probing.metrics(), **self.guards.metrics()}


class Learners:
    """The training state of all roles that learn, as what is written into one checkpoint: `training/ROLE/`. A role that
    has not begun has none.

    Args:
        scratch: a folder of this run's process.
    """

    def __init__(self, roles: Roles, learners: Mapping[str, Learner], scratch: Path):
        self._roles, self._learners, self._scratch = roles, learners, scratch
        self._waiting: dict[str, Path] = {}
        """State of roles that have not had a turn since the run goes on: it is written as it was read."""

    def begin(self) -> None:
        """Let every role begin in its first turn, or go on from what was loaded."""
        for name in self._learners:
            folder = self._waiting.get(name)
            self._roles.add(name, partial(self._make, name), None if folder is None else str(folder))

    def _make(self, name: str, turn: TrainerCallback) -> Resumable:
        self._waiting.pop(name, None)
        trainer = self._learners[name].trainer
        trainer.add_callback(turn)
        return trainer

    def save_training(self, folder: Path) -> None:
        """Write into an existing folder. All ranks call this."""
        for name, one in self._learners.items():
            if name in self._waiting:
                if rank() == 0:
                    shutil.copytree(self._waiting[name], folder / name)
            elif one.trainer.state.global_step:
                (folder / name).mkdir(exist_ok=True)
                with self._roles.numbers(name):
                    one.trainer.save_training(folder / name)

    def load_training(self, folder: Path) -> None:
        """Called before `begin`, with weights in place. The folder may go while a role still waits."""
        for name, one in self._learners.items():
            if (folder / name).is_dir():
                one.trainer.load_training(folder / name)
                self._waiting[name] = self._scratch / "going on" / name
                shutil.copytree(folder / name, self._waiting[name])


class _Named:
    """The tracker as a role sees it: its metrics under its name, in the row of the run's step."""

    def __init__(self, role: str, steps: CascadeSteps):
        self._role, self._steps = role, steps

    def log(self, _: int, metrics: Mapping[str, float]) -> None:
        named = {self._name(name): value for name, value in metrics.items() if name != "time/step"}
        self._steps.tracker.log(self._steps.now + 1, named)

    def _name(self, name: str) -> str:
        head, _, rest = name.partition("/")
        return f"{head}/{self._role}/{rest}" if head in ("time", "system") else f"{self._role}/{name}"


class _Quiet:
    """The job as a role sees it: its steps are not the run's."""

    def __init__(self, job: Job):
        self._job = job

    def progress(self, **_: Any) -> None:
        self._job.sign()


def _prompts(role: str, parts: CascadeParts) -> list[list[int]]:
    """Two of a role's prompts, for its probe."""
    domain, tasks = parts.domain, parts.writer.held_out[:2]
    if role == ANNOTATOR:
        asked = [domain.annotator.prompt(domain.annotation(task, domain.gold_body(task), None)) for task in tasks]
    else:
        asked = [domain.writer.prompt(task) for task in tasks]
    return [parts.policies[role].encode_prompt(text) for text in asked]


def held_out_success(parts: CascadeParts, config, job: Job) -> Measure:
    """Measures the cascade on the tasks of `run.select`, which success is not reported of. Writes no file.

    Raises:
        InputError: there is no such split, or it shares tasks with what is reported of.
    """
    wanted = config.run.select
    options = replace(config.evaluation, split=wanted.split, tasks=wanted.tasks, samples=wanted.samples)
    tasks: Sequence = held_out_tasks(parts.domain.writer, options) if wanted.every_steps else ()
    check_separation(tasks, parts.writer.held_out)

    def progress(done: int, total: int) -> None:
        with suppress(Interrupted):  # The step ends first, with a checkpoint.
            job.progress(kind="phase", name="evaluate held-out", done=done, total=total)

    def now() -> Mapping[str, float]:
        start = time.perf_counter()
        scored = answered(parts, config, options, tasks, config.cascade.attempts, progress)
        rates = rates_from(scored, SUCCESS)
        return {f"held_out/{name}": rate.value for name, rate in rates.items()} | {
            "time/held_out": time.perf_counter() - start
        }

    return now
