"""Zero-shot transfer: the gain of a training on tasks of which it saw nothing, next to the gain on tasks like its own.

That no task, family or program of the target was in training is proved twice: from the configurations before any run, and from
the records of the runs before the answer. Without the proof there is no answer: the study names the common tasks and ends.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rlvr_exp.config import study as options
from rlvr_exp.config.load import load
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.measures import scale_of
from rlvr_exp.evaluation.arms import AFTER, BEFORE
from rlvr_exp.evaluation.leakage import KINDS, common, material
from rlvr_exp.records import manifest
from rlvr_exp.records.manifest import initial_weights
from rlvr_exp.records.rollout_files import read_evaluation
from rlvr_exp.report.plots import intervals
from rlvr_exp.runs.comparison import (
    Contrast,
    arm_values,
    difference_in_words,
    gain_row,
    level,
    paired_contrasts,
    points,
    undecidable,
)
from rlvr_exp.runs.lineage import TrainedTasks, Unknown, check_same_data, domain_of, shown, trained_by
from rlvr_exp.runs.study import Findings, Job, JobRun, MeasuredStudy, Rounds, check
from rlvr_exp.tasks.base import Domain, Task

TRAINED, BASE, TARGET = "trained", "base_on_target", "trained_on_target"
SEEN, UNSEEN = "seen", "unseen"


class ZeroShot(options.ZeroShot, MeasuredStudy):
    def trainings(self) -> list[Job]:
        return self.arm(TRAINED, self._held_out())

    def others(self) -> list[Job]:
        return self.measure_arm(BASE, [*self._held_out(), *self.target])

    def measurements(self, training: Job, checkpoint: str) -> list[Job]:
        return self.measure_arm(TARGET, [*self._held_out(), *self.target, *self.policy(checkpoint)], [training.seed])

    def rounds(self, root: Path, seed: int) -> Rounds:
        """Raises InputError: something of the target would be in training."""
        refuse_before(*(one.config for one in check([self.trainings()[0], self.others()[0]])))
        return super().rounds(root, seed)

    def summarise(self, runs: Sequence[JobRun]) -> Findings:
        of_arm = {arm: [run for run in runs if run.completed and run.job.arm == arm] for arm in (TRAINED, BASE, TARGET)}
        if lacking := [arm for arm, found in of_arm.items() if not found]:
            return Findings([f"Cannot tell: no run of {' and '.join(lacking)} completed."])
        proved = proof(of_arm[TRAINED], of_arm[BASE], of_arm[TARGET])
        after, before = arm_values(runs, self.metric), arm_values(of_arm[TRAINED], self.metric, BEFORE)
        pairs = {SEEN: (after[TRAINED], before[TRAINED]), UNSEEN: (after[TARGET], after[BASE])}
        gains = paired_contrasts(pairs, self.metric)
        ends = undecidable(dict(zip(("trained", "base"), pairs[UNSEEN], strict=True)))
        answer = [f"On unseen tasks: {ends}" if ends else self._headline(gains)]
        answer += [difference_in_words(f"on {name} tasks", one) for name, one in gains.items()]
        share = scale_of(self.metric).share
        rows = [
            {"tasks": name, "before": share(level(before)), "after": share(level(after)), **gain_row(one, self.metric)}
            for name, one in gains.items()
            for after, before in [pairs[name]]
        ]
        title, unit = f"{self.metric}: gain by training", "points, with 95% intervals over seeds and tasks"
        drawn = intervals(title, {name: points(one) for name, one in gains.items()}, unit)
        return Findings([*answer, proved.sentence], {"gains": rows, "proof": proved.rows}, {"gains": drawn})

    def _headline(self, gains: Mapping[str, Contrast]) -> str:
        if UNSEEN not in gains or SEEN not in gains:
            return f"Cannot tell: {self.metric} was not measured before and after training on the same tasks."
        (seen, unseen) = (100 * gains[name].value.value for name in (SEEN, UNSEEN))
        said = f"{self.metric} changes by {unseen:+.1f} points on unseen families, by {seen:+.1f} on those trained on"
        sure = [name for name in (SEEN, UNSEEN) if gains[name].sure]
        beyond = " and ".join(sure) if sure else "neither"
        return f"{said}; beyond chance: {beyond}."

    def _held_out(self) -> list[str]:
        return [f"data.unseen_families=[{','.join(self.families)}]"] if self.families else []


SHOTS = "solved examples in the prompt"
SHOWN = 3
"""Tasks that a message names."""


class Proof(NamedTuple):
    """The compared contents, and a sentence on them."""

    sentence: str
    rows: list[dict[str, Any]]
    """Tasks, families and programs of each training, and of the target."""


def refuse_before(training: Config, target: Config) -> None:
    """Raise InputError if the configurations show that the target shares content with the training, or that another policy than the
    initial one is measured."""
    if initial_weights(training) != initial_weights(target):
        raise InputError(_other_start("the training"))
    domain = domain_of(target)
    measured = [*domain.splits().get(target.evaluation.split, ())]
    _refuse_common([*trained_by(training, "the training"), *shown(target, domain, SHOTS)], domain, measured)


def proof(trained: Sequence[JobRun], initial: Sequence[JobRun], after: Sequence[JobRun]) -> Proof:
    """Of completed runs.

    Args:
        initial: runs that measured the initial policy on the target.
        after: runs that measured the trained ones on it.

    Raises:
        InputError: something of the target was in training, or records and data do not fit.
    """
    measured = [*initial, *after]
    config = load(measured[0].directory / "config.yaml")
    domain = domain_of(config)
    for run in measured:
        check_same_data(domain, run.directory)
    answered = {one.completion.task.id for run in measured for one in read_evaluation(run.directory, AFTER)}
    target = [task for task in domain.splits().get(config.evaluation.split, ()) if task.id in answered]
    if strangers := sorted(answered - {task.id for task in target}):
        what = f"tasks were measured that are not in split {config.evaluation.split!r}"
        raise InputError(InputProblem("study.target", what, ", ".join(strangers[:SHOWN])))
    starts, found = [manifest.section(run.directory, "start") for run in initial], dict[str, TrainedTasks | Unknown]()
    for run in trained:
        if manifest.section(run.directory, "start") not in starts:
            raise InputError(_other_start(run.job.name))
        for one in trained_by(load(run.directory / "config.yaml"), run.job.name, run.directory):
            found.setdefault(one.where, one)
    known = _refuse_common([*found.values(), *shown(config, domain, SHOTS)], domain, target)
    rows = [
        {
            "of": where,
            "tasks": len(tasks),
            "families": len({task.family for task in tasks}),
            "programs": len({task.gold for task in tasks if task.gold}),
        }
        for where, tasks in [*((one.where, one.tasks) for one in known), ("target", target)]
    ]
    parts = ", ".join(f"{len(one.tasks):,} of {one.where}" for one in known)
    sentence = (
        f"No task, family or program of the target's {len(target)} tasks is among the tasks that were trained on"
        f" ({parts}), by the data and records of the runs."
    )
    if unknown := ", ".join(one.where for one in found.values() if isinstance(one, Unknown)):
        sentence += f" What {unknown} was trained on before is not known."
    return Proof(sentence, rows)


def _refuse_common(
    trained: Iterable[TrainedTasks | Unknown], domain: Domain, target: Sequence[Task]
) -> list[TrainedTasks]:
    """The known trainings. Raises InputError if one of them has something in common with the target."""
    known, own, problems = [one for one in trained if isinstance(one, TrainedTasks)], material(domain, target), []
    for one in known:
        if not (found := common(own, one.domain, one.tasks)):
            continue
        counts = {kind: len({each.target for each in found if each.kind == kind}) for kind in KINDS}
        parts = ", ".join(f"{count} by their {kind}" for kind, count in counts.items() if count)
        first = ", ".join(f"{each.target} ({each.kind} of {each.trained})" for each in found[:SHOWN])
        family = min(each.family for each in found)
        what = f"tasks of the target were in its training: {one.where}"
        remedy = f"study.families=[{family},...] holds families out, of a policy that has not imitated them either"
        problems.append(InputProblem("study.target", what, f"{parts}: {first}", "nothing in common", "", remedy))
    if problems:
        raise InputError(*problems)
    return known


def _other_start(where: str) -> InputProblem:
    what = "the target is measured with another policy than the one that training starts with"
    remedy = "name it in study.words, or in study.target with data that choose another; random weights have no success to gain on"
    return InputProblem("study.command", what, where, "", "", remedy)
