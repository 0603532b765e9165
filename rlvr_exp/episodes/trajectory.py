"""What a teacher did with a task, action by action, as a row of a file."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rlvr_exp.verifiers.base import Verdict

SHOWN = 300
"""Characters of a log that are kept."""


@dataclass(frozen=True)
class Step:
    """An answer to one state."""

    before: str
    """The text that it was shown."""
    answer: str
    """As it was written."""
    action: str | None
    """The action in it; None: there is none."""
    after: str | None
    """The text that came of it; None: none."""
    outcome: str
    log: str
    tokens: int


@dataclass(frozen=True)
class Trajectory:
    """The steps of one branch of an episode."""

    task: str
    sample: int
    teacher: str
    steps: Sequence[Step]
    about: Mapping[str, Any]
    """What the task is, for who reads the file."""

    def row(self) -> dict[str, Any]:
        """`outcome` is that of the last text."""
        steps = [asdict(step) for step in self.steps]
        outcome = self.steps[-1].outcome
        return {
            "id": f"{self.task}#{self.sample}",
            "task": self.task,
            "teacher": self.teacher,
            "outcome": outcome,
            **self.about,
            "steps": steps,
        }


def step_of(before: str, answer: str, action: str | None, verdict: Verdict, tokens: int) -> Step:
    after = verdict.outputs[0] if verdict.outputs else None
    log = f"{verdict.reason}: {verdict.log}"[:SHOWN] if verdict.outcome != "passed" else ""
    return Step(before, answer, action, after, verdict.outcome, log, tokens)


def counts(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Trajectories, those that ended right, steps and tokens."""
    steps = [step for row in rows for step in row["steps"]]
    return {
        "trajectories": len(rows),
        "passed": sum(row["outcome"] == "passed" for row in rows),
        "steps": len(steps),
        "tokens": sum(step["tokens"] for step in steps),
    }
