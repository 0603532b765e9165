"""What the number of tasks allows, before the run starts: the smallest difference that held-out tasks show, and steps that
repeat a task."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rlvr_exp.config.algorithm import ReinforcementLearning
from rlvr_exp.config.compose import compose_lenient
from rlvr_exp.config.schema import Config, reads, trains
from rlvr_exp.core.errors import InputError
from rlvr_exp.core.measures import FEW, counted, detectable
from rlvr_exp.launch.preflight import domain_of, measured_tasks, rl_split
from rlvr_exp.launch.resume import directory_of
from rlvr_exp.records import manifest
from rlvr_exp.stages.shared.start import start_problems
from rlvr_exp.tasks.base import Domain

FOLDS = 5
OF_THE_RUN = ("run.", "seed=", "evaluation.remember=", "evaluation.split=", "evaluation.skip=", "data.fold", "executor")
"""Words of a run that its cross-validation does not take over: it decides these itself."""


def sample_size(config: Config, words: Sequence[str]) -> list[tuple[str, str]]:
    """Name and text of each line on the size of the held-out set; nothing if the stage measures no policy or its data cannot be
    read here. `words`: the run's command."""
    if not reads(config, "evaluation") or config.benchmark is not None:
        return []
    try:
        domain = domain_of(config)
        tasks = measured_tasks(config, domain.sizes()) if domain is not None else 0
    except InputError:  # Faulty data are refused before.
        return []
    if not tasks:
        return []
    lines = [("warning", text) for text in _repeats(config, domain)]
    lines.append(("detectable", detectable(tasks, config.evaluation.samples, config.evaluation.greedy)))
    if tasks < FEW:
        lines += [("warning", text) for text in _warnings(config, tasks, words)]
    return lines


def _repeats(config: Config, domain: Domain) -> Iterator[str]:
    if not reads(config, "curriculum") or not isinstance(config.algorithm, ReinforcementLearning):
        return
    split, prompts = rl_split(domain), config.algorithm.prompts_per_step
    tasks = domain.sizes().get(split, 0)
    if 0 < tasks < prompts:
        yield (
            f"each step repeats tasks: it takes {prompts} prompts, and split {split!r} has {counted(tasks)}. "
            f"Bring more data, or set algorithm.prompts_per_step={tasks}"
        )


def _warnings(config: Config, tasks: int, words: Sequence[str]) -> Iterator[str]:
    verb = "is" if tasks == 1 else "are"
    yield f"only {counted(tasks)} of split {config.evaluation.split!r} {verb} measured: its rates and differences will be uncertain"
    if not trains(config.stage):
        yield f"measure {FEW} tasks or more: bring more data, or name a larger split by evaluation.split"
        return
    started = _starting_words(config, words)
    if started is None:
        return
    command = cross_validation(config, started)
    if command is None:
        yield f"bring more data: these tasks cannot be cut into folds for study=cross_validation, and {FEW} tasks or more are needed"
    else:
        yield f"a cross-validation measures every task once, by a training for each fold: {shlex.join(command)}"


def _starting_words(config: Config, words: Sequence[str]) -> Sequence[str] | None:
    """Words that start the run from its first step. For a run that is resumed by its directory alone they come from its manifest;
    None if these do not give its configuration."""
    directory = directory_of(config)
    if not config.run.resume or directory is None or any(word.startswith("+stage=") for word in words):
        return words
    started: dict[str, str] = {}
    for command in (*(one[3:] for one in manifest.commands(directory)), words):
        started |= {word.lstrip("+").partition("=")[0]: word for word in command if not word.startswith("run.")}
    found = compose_lenient([*started.values()])
    same = not found.problems and replace(found.config, run=config.run) == config
    return [*started.values()] if same else None


def cross_validation(config: Config, words: Sequence[str]) -> list[str] | None:
    """The command of a cross-validation of the run that can start on this machine; None: there is none."""
    domain = domain_of(config)
    if domain is None or not domain.makes_folds:
        return None
    kept = [word for word in words if not word.startswith(OF_THE_RUN)]
    first = [word for word in kept if word.startswith("+stage=")]
    others = [word for word in kept if word not in first]
    for folds in range(min(FOLDS, sum(domain.sizes().values())), 1, -1):
        own = [f"study.command={_listed(first)}", f"study.words={_listed(others)}", f"study.folds={folds}"]
        command = ["+stage=study", "study=cross_validation", *(word for word in own if not word.endswith("=[]"))]
        checked = compose_lenient(command)
        if not checked.problems and not any(start_problems(checked.config, True)):
            return ["python", "-m", "rlvr_exp", *command]
    return None


def _listed(words: Sequence[str]) -> str:
    """Words as a list on the command line, each in quotes."""
    quoted = (word.replace("\\", "\\\\").replace('"', '\\"') for word in words)
    return "[" + ",".join(f'"{word}"' for word in quoted) + "]"
