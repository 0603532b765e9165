"""Checkpoints of a run: folders that plain `from_pretrained` loads, whole or absent, with checksums.

`checkpoints/step_000050/` appears by one rename; `latest` and `best` are links to one of them, replaced in one step.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch

from rlvr_exp.core.errors import GuardStop
from rlvr_exp.core.files import write_json
from rlvr_exp.models.policy import Policy

STEP = re.compile(r"step_(\d{6,})")


class Stateful(Protocol):
    """Anything whose state is part of a checkpoint."""

    def state_dict(self) -> Mapping[str, Any]: ...


class Checkpoints:
    """Writes and prunes the checkpoints of one run directory.

    Args:
        settings: the `run.checkpoint` node.
        stateful: what else belongs to a checkpoint, by name; `state.json` holds each one's `state_dict()`.
    """

    def __init__(self, run_dir: Path, settings, stateful: Mapping[str, Stateful] | None = None):
        self.root = run_dir / "checkpoints"
        self.every_steps, self.keep = settings.every_steps, settings.keep
        self._stateful = stateful or {}

    def due(self, step: int) -> bool:
        return step > 0 and step % self.every_steps == 0

    def save(self, step: int, policy: Policy) -> Path:
        """Write the policy as of `step`; a step already there stays as it is.

        Raises:
            GuardStop: a weight is not a number; nothing is written, so `latest` stays sound.
        """
        final = self.root / f"step_{step:06d}"
        if not final.exists():
            self._write(step, policy, final)
        self._link("latest", final)
        self._prune()
        return final

    def mark_best(self, step: int) -> None:
        self._link("best", self.root / f"step_{step:06d}")

    @property
    def best(self) -> Path | None:
        """The folder that `best` names, if any does."""
        link = self.root / "best"
        return link.resolve() if link.exists() else None

    def _write(self, step: int, policy: Policy, final: Path) -> None:
        broken = [name for name, value in policy.model.named_parameters() if not torch.isfinite(value).all()]
        if broken:
            raise GuardStop(
                f"step {step}: {len(broken)} weights hold values that are not finite, first {broken[0]}; no checkpoint was "
                "written and the last one is sound. Lower optimizer.lr, or look at this step's samples in rollouts/"
            )
        temporary = self.root / f".{final.name}.tmp"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        policy.model.save_pretrained(temporary)
        policy.tokenizer.save_pretrained(temporary)
        write_json(temporary / "state.json", {name: part.state_dict() for name, part in self._stateful.items()})
        sums = {path.name: _checksum(path) for path in sorted(temporary.iterdir())}
        write_json(temporary / "checkpoint.json", {"step": step, "sha256": sums})
        os.replace(temporary, final)

    def _link(self, name: str, target: Path) -> None:
        temporary = self.root / f".{name}.tmp"
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(target.name)
        os.replace(temporary, self.root / name)

    def _prune(self) -> None:
        steps = sorted(path for path in self.root.iterdir() if STEP.fullmatch(path.name))
        for path in steps[: -self.keep]:
            if path != self.best:
                # Renamed first: what stands under a checkpoint's name is whole, also while it is being removed.
                doomed = self.root / f".{path.name}.tmp"
                os.replace(path, doomed)
                shutil.rmtree(doomed)


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
