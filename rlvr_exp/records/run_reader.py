"""Reads the rollouts that a run stored, and their fingerprint, for stages that process them later. Never writes."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.records.rollout_files import RolloutRow, read_rollouts, rollout_steps


@dataclass(frozen=True)
class RunReader:
    """The rollouts of a run directory.

    Raises:
        InputError: there are none.
    """

    directory: Path

    def __post_init__(self) -> None:
        if not self.files:
            raise InputError(
                InputProblem(str(self.directory), "holds no rollouts", remedy="name a run that has rollouts/")
            )

    @property
    def files(self) -> dict[int, Path]:
        """The files by step, ascending."""
        return rollout_steps(self.directory)

    def fingerprint(self) -> str:
        """Hash of all files and their names."""
        digest = hashlib.blake2b(digest_size=16)
        for path in self.files.values():
            digest.update(path.name.encode() + hashlib.blake2b(path.read_bytes()).digest())
        return digest.hexdigest()

    def rows(self) -> Iterator[RolloutRow]:
        """Every row, in the order of the steps."""
        for path in self.files.values():
            yield from read_rollouts(path)
