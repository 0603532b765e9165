"""The proof that no task, family or program of a target was in the training of a policy, from configurations, run
directories and data. There is no weaker answer: what is in common is named, and the study ends."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rlvr_exp.config.load import load
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.evaluation.arms import AFTER
from rlvr_exp.evaluation.leakage import KINDS, Common, common, material
from rlvr_exp.records import manifest
from rlvr_exp.records.fingerprint import initial_weights
from rlvr_exp.records.rollout_files import read_evaluation
from rlvr_exp.studies.lineage import Training, Unknown, check_same_data, domain_of, shown, trained_by
from rlvr_exp.studies.study import Run
from rlvr_exp.tasks.base import Domain, Task

SHOTS = "solved examples in the prompt"
SHOWN = 3
"""Tasks that a message names."""


class Proof(NamedTuple):
    """What was compared."""

    sentence: str
    rows: list[dict[str, Any]]
    """Tasks, families and programs of each training, and of the target."""


def refuse_before(training: Config, target: Config) -> None:
    """Raises InputError where configurations alone show that something of the target would be in training, or that the
    initial policy would not be measured on it."""
    if initial_weights(training) != initial_weights(target):
        raise InputError(_other_start("the training"))
    domain = domain_of(target)
    measured = [*domain.splits().get(target.evaluation.split, ())]
    _refuse_common([*trained_by(training, "the training"), *shown(target, domain, SHOTS)], domain, measured)


def proof(trained: Sequence[Run], initial: Sequence[Run], after: Sequence[Run]) -> Proof:
    """Of completed runs.

    Args:
        initial: runs that measured the initial policy on the target.
        after: runs that measured the trained ones on it.

    Raises:
        InputError: something of the target was in training, or records and data do not fit.
    """
    config, domain, target = _target([*initial, *after])
    found: dict[str, Training | Unknown] = {}
    for run in trained:
        _refuse_other_start(run, initial)
        for one in trained_by(load(run.directory / "config.yaml"), run.job.name, run.directory):
            found.setdefault(one.where, one)
    known = _refuse_common([*found.values(), *shown(config, domain, SHOTS)], domain, target)
    unknown = [one.where for one in found.values() if isinstance(one, Unknown)]
    rows = [_counts(where, tasks) for where, tasks in [*((one.where, one.tasks) for one in known), ("target", target)]]
    return Proof(_in_words(len(target), known, unknown), rows)


def _target(measured: Sequence[Run]) -> tuple[Config, Domain, list[Task]]:
    """The tasks that runs have measured on, from their own data."""
    config = load(measured[0].directory / "config.yaml")
    domain = domain_of(config)
    answered = set[str]()
    for run in measured:
        check_same_data(domain, run.directory)
        answered |= {one.completion.task.id for one in read_evaluation(run.directory, AFTER)}
    target = [task for task in domain.splits().get(config.evaluation.split, ()) if task.id in answered]
    if strangers := sorted(answered - {task.id for task in target}):
        what = f"tasks were measured that are not in split {config.evaluation.split!r}"
        raise InputError(InputProblem("study.target", what, ", ".join(strangers[:SHOWN])))
    return config, domain, target


def _refuse_other_start(trained: Run, initial: Sequence[Run]) -> None:
    """The run that measures the initial policy has to start with the weights that training started with."""
    ours = manifest.section(trained.directory, "start")
    if not any(manifest.section(run.directory, "start") == ours for run in initial):
        raise InputError(_other_start(trained.job.name))


def _other_start(where: str) -> InputProblem:
    what = "the target is measured with another policy than the one that training starts with"
    remedy = "name it in study.words, or in study.target with data that choose another; random weights have no success to gain on"
    return InputProblem("study.command", what, where, "", "", remedy)


def _refuse_common(trained: Iterable[Training | Unknown], domain: Domain, target: Sequence[Task]) -> list[Training]:
    """The trainings that are known, none of which has anything in common with the target."""
    known, own = [one for one in trained if isinstance(one, Training)], material(domain, target)
    shared = {one.where: found for one in known if (found := common(own, one.domain, one.tasks))}
    if shared:
        raise InputError(*(_problem(where, found) for where, found in shared.items()))
    return known


def _problem(where: str, found: Sequence[Common]) -> InputProblem:
    counts = {kind: len({one.target for one in found if one.kind == kind}) for kind in KINDS}
    parts = [f"{count} by their {kind}" for kind, count in counts.items() if count]
    first = ", ".join(f"{one.target} ({one.kind} of {one.trained})" for one in found[:SHOWN])
    families = sorted({one.family for one in found})
    what = f"tasks of the target were in its training: {where}"
    remedy = f"study.families=[{families[0]},...] holds families out, of a policy that has not imitated them either"
    return InputProblem("study.target", what, f"{', '.join(parts)}: {first}", "nothing in common", "", remedy)


def _in_words(target: int, known: Sequence[Training], unknown: Sequence[str]) -> str:
    parts = ", ".join(f"{len(one.tasks):,} of {one.where}" for one in known)
    proved = (
        f"No task, family or program of the target's {target} tasks is among the tasks that were trained on"
        f" ({parts}), by the data and records of the runs."
    )
    if not unknown:
        return proved
    return f"{proved} What {', '.join(unknown)} was trained on before is not known."


def _counts(where: str, tasks: Sequence[Task]) -> dict[str, Any]:
    families, programs = {task.family for task in tasks}, {task.gold for task in tasks if task.gold}
    return {"of": where, "tasks": len(tasks), "families": len(families), "programs": len(programs)}
