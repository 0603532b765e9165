"""The start of a run: its first step, or the newest sound checkpoint of its directory.

The parent decides before anything starts, and the manifest names the checkpoint. A run with other options, other data, other
initial weights or another run's checkpoint is refused with every difference, and its directory is not changed. Never imports
torch.
"""

import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rlvr_exp.config.load import build, resolved
from rlvr_exp.config.run import AUTO
from rlvr_exp.config.schema import Config, measures, repeatable, resumable, trains
from rlvr_exp.config.schema_check import Checked
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.sealed import STEP, OtherFormat, check_sound
from rlvr_exp.launch.children import of_node
from rlvr_exp.records.context import COMPLETED, read_summary
from rlvr_exp.records.directory import problem_with
from rlvr_exp.records.manifest import (
    MAX_STEPS,
    PACKAGES,
    changed_data,
    changed_initial_weights,
    differences,
    flat,
    initial_weights,
    run_fingerprint,
    trajectory_options,
    versions,
)
from rlvr_exp.records.resumable_jsonl import FOLDER as JOURNALS
from rlvr_exp.records.rollout_files import rollout_steps

PASSED = ("summary.json", "report.html", "evaluation/after.json", "evaluation/after.jsonl.gz")
"""Files about the end of a run. A resumed run writes them again."""


@dataclass(frozen=True)
class Start:
    """How a run starts."""

    checkpoint: Path | None = None
    """The checkpoint to resume from; None: a run that starts at its first step."""
    step: int = 0
    damaged: tuple[Path, ...] = ()
    """Newer checkpoints that are not sound."""
    completed: bool = False
    """No steps are left to do."""
    notes: tuple[str, ...] = ()
    """Notes for a person, one line each."""


def directory_of(config: Config) -> Path | None:
    """The run directory that the options name; None: a new directory with its default name."""
    named = config.run.resume if config.run.resume not in ("", AUTO) else config.run.dir
    return Path(named) if named else None


def continuing(config: Config, root: Path) -> str:
    """The command that continues an interrupted run, on this machine; empty if the stage cannot be continued."""
    if config.run.trial or not (trains(config.stage) or measures(config.stage)):
        return ""
    kept = steps_of(root) or measures(config.stage) or (root / JOURNALS).is_dir()
    words = [f"run.resume={root}"] if kept else [f"run.resume={AUTO}", f"run.dir={root}"]
    words += [f"parallel.node={config.parallel.node}"] if config.parallel.nodes > 1 else []
    return shlex.join(["python", "-m", "rlvr_exp", *words])


def problem_before(config: Config) -> InputProblem | None:
    """The reason why a run cannot start or be resumed in its directory, judged by the files; None if there is none."""
    directory, resume = directory_of(config), config.run.resume
    if directory is None:
        return None
    if not resume:
        return problem_with(of_node(config.parallel, directory), resumable(config.stage))
    if resume != AUTO and not (directory / "config.yaml").is_file():
        near = str(directory.parents[1]) if STEP.fullmatch(directory.name) and len(directory.parents) > 1 else ""
        remedy = "name the run directory, or use run.resume=auto run.dir=DIR, which starts a new run if there is none"
        return InputProblem("run.resume", "no run is there", resume, "a run directory, with checkpoints/", near, remedy)
    return None


def begin(checked: Checked, root: Path) -> Start:
    """Decide how the run starts. Reads the complete checkpoint that it resumes from; writes nothing.

    Args:
        root: the run directory.

    Raises:
        InputError: no checkpoint exists or is sound, or the checkpoint does not fit.
    """
    if not checked.config.run.resume:
        return Start()
    if not steps_of(root):
        return _restart(checked, root)
    checkpoint, manifest, damaged = newest_sound(root)
    _check_fit(checked, checkpoint, manifest)
    start = Start(
        checkpoint, manifest["step"], tuple(path for path, _ in damaged), notes=tuple(_notes(manifest, damaged))
    )
    return Start(completed=True, step=manifest["step"]) if _completed(checked, root, manifest) else start


def steps_of(root: Path) -> list[Path]:
    """The checkpoints of a run directory, newest first."""
    found = [path for path in (root / "checkpoints").glob("step_*") if STEP.fullmatch(path.name)]
    return sorted(found, key=lambda path: int(path.name.partition("_")[2]), reverse=True)


def newest_sound(root: Path) -> tuple[Path, Mapping[str, Any], list[tuple[Path, InputError]]]:
    """The newest sound checkpoint, its manifest, and the newer checkpoints with the fault of each.

    Raises:
        OtherFormat: another version wrote them.
        InputError: none is sound; with the fault of each.
    """
    damaged: list[tuple[Path, InputError]] = []
    for path in steps_of(root):
        try:
            manifest = check_sound(path)
        except OtherFormat:
            raise
        except InputError as fault:
            damaged.append((path, fault))
            continue
        return path.resolve(), manifest, damaged
    raise InputError(*(problem for _, fault in damaged for problem in fault.problems))


def prepare(start: Start, directory: Path, root: Path) -> None:
    """Restore the directory to its state when the checkpoint was written, except for metrics, which the tracker
    truncates. Damaged checkpoints are moved to a hidden name."""
    for path in start.damaged if directory == root else ():
        aside = path.with_name(f".{path.name}.damaged")
        shutil.rmtree(aside, ignore_errors=True)
        path.replace(aside)
    for name in PASSED:
        (directory / name).unlink(missing_ok=True)
    for step, path in rollout_steps(directory).items():
        if step > start.step:
            path.unlink()
    if start.checkpoint is None:
        for name in ("metrics.jsonl", "metrics.csv"):
            (directory / name).unlink(missing_ok=True)
        shutil.rmtree(directory / "evaluation", ignore_errors=True)


def _restart(checked: Checked, root: Path) -> Start:
    """Restart a run that stopped before its first checkpoint. Other contents are not overwritten. The journal keeps the
    completions of an unfinished measurement."""
    journaled = (root / JOURNALS).is_dir()
    named, measured = checked.config.run.resume != AUTO, measures(checked.config.stage)
    if named and not measured and not journaled:
        remedy = f"run.resume=auto run.dir={root} starts over"
        raise InputError(InputProblem("run.resume", "holds no checkpoint", str(root), "a run with one", "", remedy))
    problem = problem_with(root)
    if problem is None:
        return Start(notes=("no checkpoint: the run starts from the beginning",))
    if not (root / "config.yaml").is_file():
        raise InputError(problem)
    theirs, ours = trajectory_options(_written(root)), trajectory_options(resolved(checked))
    if found := list(differences(theirs, ours)):
        raise InputError(*found)
    if measured and (read_summary(root) or {}).get("status") == COMPLETED:
        found = _changed(checked.config, run_fingerprint(root))
        if not found:
            return Start(completed=True)
        if named:
            raise InputError(*found)
    if not repeatable(checked.config.stage):  # A chain or a study with its own runs.
        return Start(notes=("the run continues with the existing results",))
    kept = "; completions that have ended are not sampled again" if journaled else ""
    return Start(notes=(f"the run stopped without a checkpoint: it starts over{kept}",))


def _written(root: Path) -> dict[str, Any]:
    return yaml.safe_load((root / "config.yaml").read_text(encoding="utf-8"))


def _check_fit(checked: Checked, checkpoint: Path, manifest: Mapping[str, Any]) -> None:
    """Raises InputError with every option, split and file of the initial weights that differs from the checkpoint's, and if
    the checkpoint is past the configured steps."""
    ours = resolved(checked)
    found = list(differences(manifest["config"], trajectory_options(ours)))
    found += _changed(checked.config, manifest, [problem.where.partition(".")[0] for problem in found])
    steps = ours["algorithm"]["max_steps"]
    if steps < manifest["step"]:
        found.append(InputProblem(MAX_STEPS, "the checkpoint is past it", str(steps), f"{manifest['step']} or more"))
    if found:
        raise InputError(*found)


def _changed(config: Config, about: Mapping[str, Any], differ: Sequence[str] = ()) -> list[InputProblem]:
    """Splits of the data and files of the initial weights with other contents than at the start of the run.

    Args:
        about: the run's fingerprint.
        differ: nodes with other options. Their contents are not compared.
    """
    found: list[InputProblem] = []
    if "data" not in differ:
        found += changed_data(about["data"], data_fingerprints(config))
    if "model" not in differ:
        found += changed_initial_weights(about.get("start", {}), initial_weights(config))
    return found


def data_fingerprints(config: Config) -> dict[str, str]:
    """The content hash of each split of the data."""
    domain = build(config.data)
    return {name: domain.fingerprint(name) for name in domain.splits()}


def _completed(checked: Checked, root: Path, manifest: Mapping[str, Any]) -> bool:
    """Whether the run completed, and no further steps are configured."""
    status, written = (read_summary(root) or {}).get("status"), (root / "config.yaml").is_file()
    max_steps = flat(_written(root) if written else {}).get(MAX_STEPS, manifest["max_steps"])
    return status == COMPLETED and checked.config.algorithm.max_steps <= max_steps


def _notes(manifest: Mapping[str, Any], damaged: list[tuple[Path, InputError]]) -> Iterator[str]:
    for path, fault in damaged:
        yield f"{path.name} is damaged and moved aside: {fault.problems[0].where}: {fault.problems[0].what}"
    now = versions()
    for name in ("rlvr_exp", "python", *PACKAGES):
        if manifest["versions"].get(name) != now.get(name):
            yield f"not bit for bit: written under {name} {manifest['versions'].get(name)}, resumed under {now.get(name)}"
