"""Repeats a step's sampling and update, from the newest sound checkpoint before it, as the run did.

The run is resumed from that checkpoint in a separate folder and ends after the step; then rollouts and the row of
metrics are compared with those that the run wrote. The run itself is only read. Exact where a resume is: on CPU, under
the same versions.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from rlvr_exp.config.load import load as load_config
from rlvr_exp.config.options import SCHEMAS
from rlvr_exp.core.errors import InputError, Interrupted
from rlvr_exp.core.sealed import OtherFormat, check_sound
from rlvr_exp.launch.resume import steps_of
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.initial_weights import changed_initial_weights, initial_weights
from rlvr_exp.records.rollout_files import read_rollouts, rollout_steps
from rlvr_exp.records.tracking import read_metrics
from rlvr_exp.stages.reinforcement import collector_of, train
from rlvr_exp.stages.shared.components import build_components
from rlvr_exp.stages.shared.fit import open_tracker

MACHINE = ("time/", "system/")
"""Metrics that differ between any two runs."""
FILES = "rlvr_exp.records.tracking.Files"


@dataclass(frozen=True)
class UpdateReplay:
    """The result of a replayed update."""

    checkpoint: str
    """The checkpoint that the replay started from; empty: the update was not replayed."""
    why: str = ""
    """Why it was not replayed."""
    samples: int = 0
    """Samples of the step with other tokens or another verdict."""
    metrics: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    """Metrics of the step that differ: as logged, as replayed."""

    @property
    def differences(self) -> int:
        return self.samples + len(self.metrics)


class UntilStep(RunContext):
    """A context that requests a stop at the end of a given step, or with the run that it is a part of."""

    def __init__(self, directory: Path, last: int, parent: RunContext):
        self._last, self._parent = last, parent
        super().__init__(directory, lambda event: parent.heartbeat())

    @property
    def interrupted(self) -> bool:
        return self.steps >= self._last or self._parent.interrupted

    @interrupted.setter
    def interrupted(self, value: bool) -> None:
        """Ignored: only the step decides."""


def replay_update(run: Path, step: int, context: RunContext) -> UpdateReplay:
    """Sample and train from the checkpoint up to the step, in the folder `again` of the run directory."""
    found = checkpoint_before(run, step)
    if found is None:
        return UpdateReplay("", f"no sound checkpoint before step {step} is there")
    config = load_config(run / "config.yaml")
    if config.parallel.distributed:
        return UpdateReplay("", "the run had several processes, and this is one")
    if changed := list(changed_initial_weights(check_sound(found).get("start", {}), initial_weights(config))):
        return UpdateReplay("", f"the run began from another model: {changed[0].what}")
    config.tracking = SCHEMAS[FILES]()
    if hasattr(config.curriculum, "override"):
        config.curriculum.override = manifest.override_after(run, int(found.name.partition("_")[2]))
    scratch = context.directory / "again"
    _prepare(run, found, scratch)
    part = UntilStep(scratch, step, context)
    with open_tracker(config, part) as tracker, build_components(config, part) as components:
        try:
            train(components, config, part, collector_of(components, config, part), tracker)
        except Interrupted:
            if context.interrupted:
                raise
    shutil.rmtree(scratch / "checkpoints")  # The replay's own checkpoints; the run has its own.
    return compare_step(run, scratch, step, found)


def checkpoint_before(run: Path, step: int) -> Path | None:
    """The newest sound checkpoint before the given step. Raises OtherFormat where another version wrote it."""
    for path in steps_of(run):
        if int(path.name.partition("_")[2]) < step:
            try:
                check_sound(path)
            except OtherFormat:
                raise
            except InputError:
                continue
            return path.resolve()
    return None


def _prepare(run: Path, checkpoint: Path, scratch: Path) -> None:
    (scratch / "checkpoints").mkdir(parents=True)
    for name in ("config.yaml", manifest.NAME, "metrics.jsonl"):
        shutil.copy(run / name, scratch / name)
    manifest.mark_resumed(scratch, checkpoint, [], datetime.now().astimezone().isoformat(timespec="seconds"))


def compare_step(run: Path, scratch: Path, step: int, checkpoint: Path) -> UpdateReplay:
    """Compare the step in both folders."""
    old, new = (read_rollouts(rollout_steps(folder)[step]) for folder in (run, scratch))
    differing = sum(one != other for one, other in zip(old, new, strict=False)) + abs(len(old) - len(new))
    before, after = (_row(folder, step) for folder in (run, scratch))
    names = [name for name in dict.fromkeys((*before, *after)) if not name.startswith(MACHINE)]
    metrics = {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}
    return UpdateReplay(str(checkpoint), "", differing, metrics)


def _row(directory: Path, step: int) -> Mapping[str, Any]:
    """The row of a step; empty where rows are rarer than steps and this step has none."""
    return next((row for row in read_metrics(directory) if row["step"] == step), {})
