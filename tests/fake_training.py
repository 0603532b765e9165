"""Learners and a tracker that do nothing but note what they are asked for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from rlvr_exp.models.policy import Policy
from rlvr_exp.training.checkpoints import Checkpoints, Contents


class Part:
    """A part of a checkpoint."""

    def __init__(self, state: Mapping[str, Any]):
        self.state = state

    def state_dict(self) -> Mapping[str, Any]:
        return self.state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.state = state


class FakeLearner:
    """Counts its updates, and notes every call in a list that learners share.

    Args:
        period: updates on each batch.
    """

    figures: ClassVar = {"loss": "loss"}

    def __init__(self, role: str = "policy", told: list[str] | None = None, period: int = 1):
        self.role, self.told, self._period = role, [] if told is None else told, period
        self.steps = 0
        self.ready = True
        self.checkpoint_parts: dict[str, Any] = {}

    @property
    def needs_rollouts(self) -> bool:
        return self.steps % self._period == 0

    def begin(self, folder: Path | None = None) -> None:
        if folder is not None:
            self.steps = int((folder / "steps").read_text())
        self.told.append(f"{self.role} begins at {self.steps}")

    def take(self, rollouts: Any) -> None:
        self.told.append(f"{self.role} takes {rollouts}")

    def update(self) -> None:
        self.steps += 1
        self.told.append(f"{self.role} updates")

    def row(self) -> dict[str, float]:
        return {"loss": float(self.steps), "time/update": 0.5}

    def save(self, folder: Path) -> None:
        (folder / "steps").write_text(str(self.steps))

    def end(self) -> None:
        self.told.append(f"{self.role} ends")


class FakeTracker:
    """The last row, of all metrics that were logged for its step."""

    def __init__(self) -> None:
        self.last: dict[str, float] = {}
        self.last_step = 0
        self.steps: list[int] = []

    def log(self, step: int, row: Mapping[str, float]) -> None:
        self.last = {**(self.last if step == self.last_step else {}), **row}
        if step != self.last_step:
            self.steps.append(step)
        self.last_step = step

    def samples(self, *_: Any) -> None: ...


def contents_of(policy: Policy, learner: FakeLearner | None = None, **parts: Any) -> Contents:
    """A policy that learns alone, and further parts."""
    learner = learner or FakeLearner()
    return Contents(policy, {learner.role: learner}, parts)


def kept(checkpoints: Checkpoints) -> list[int]:
    """The steps of all checkpoints."""
    return sorted(int(path.name[5:]) for path in checkpoints.root.glob("step_*"))


def named(checkpoints: Checkpoints, link: str) -> str:
    """The checkpoint that a link names; empty: there is none."""
    path = checkpoints.root / link
    return path.resolve().name if path.exists() else ""
