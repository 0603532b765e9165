"""Steps of trajectories (+stage=collect) as rows: the text that a teacher was shown, its action, and what came of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlvr_exp.config.prepare import Trajectories
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.core.seeds import uniform
from rlvr_exp.corpora.edit_actions.build import make_rows
from rlvr_exp.corpora.edit_actions.reading import NO_ACTION, Place, Proposal, edit_in, row_of
from rlvr_exp.corpora.edit_actions.trial import Program
from rlvr_exp.corpora.edit_sets.draft import INCOMPLETE, Dropped
from rlvr_exp.corpora.edit_sets.lines import Line, read_lines, row_files
from rlvr_exp.corpora.edit_sets.normalize import UNCHANGED
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.edits.action import is_done, parse_action
from rlvr_exp.tasks.edits.reading import ActionFault
from rlvr_exp.tasks.edits.rows import EditRow
from rlvr_exp.tasks.rows import Row

NAME = "trajectories"
SCHEMA = 1
"""Of the rows."""
NOT_RIGHT, NOTHING_FOLLOWS, TWICE, DONE_STEP = (
    "its trajectory does not end right",
    "no text came of it",
    "the same step as another",
    "it says `done`",
)


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write the splits and their pages. Raises InputError as rows of edits do."""
    return make_rows(config, context, TrajectoryReader(config.prepare))


class TrajectoryReader:
    """Reads trajectories, each step of which is a row or is dropped."""

    NAME = NAME

    def __init__(self, options: Trajectories):
        self._options = options
        self._seen: set[str] = set()

    def files(self, root: Path) -> list[Path]:
        return row_files(root)

    def read(self, file: Path, program: Program) -> Iterator[tuple[Place, EditRow | None, Proposal | Dropped]]:
        """Every step of every line, the edit that it is, if it is one, and the proposal or why there is none."""
        for line in read_lines(file):
            place = Place(file, line.number, line.position)
            try:
                steps = self._steps(file, line)
            except (InputError, Dropped) as fault:
                yield place, None, fault if isinstance(fault, Dropped) else Dropped(INCOMPLETE, str(fault))
                continue
            for row, split in steps:
                edit = None
                try:
                    _check_action(row)
                    edit = edit_in(row)
                    found: Proposal | Dropped = self._proposed(row, edit, split)
                except Dropped as fault:
                    found = fault
                yield place, edit, found

    def _steps(self, file: Path, line: Line) -> list[tuple[Row, str]]:
        """The rows of a trajectory, and their split, which is the task's."""
        row = row_of(file, line)
        task, steps = row.text("task"), row.values.get("steps")
        if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
            raise Dropped(INCOMPLETE, "steps: no list of objects")
        if self._options.right_only and row.text("outcome") != "passed":
            raise Dropped(NOT_RIGHT, row.text("outcome"))
        split = "dev" if uniform(0, NAME, task) < self._options.dev_fraction else "train"
        return [(Row(_values(row, step, number), row.where), split) for number, step in enumerate(steps)]

    def _proposed(self, row: Row, edit: EditRow, split: str) -> Proposal:
        if edit.after is None:
            raise Dropped(NOTHING_FOLLOWS)
        if is_done(edit.action) and not self._options.keep_done:
            raise Dropped(DONE_STEP)
        if edit.before == edit.after and not is_done(edit.action):
            raise Dropped(UNCHANGED)
        key = content_hash([edit.instruction, edit.before, edit.action])
        if key in self._seen:
            raise Dropped(TWICE)
        self._seen.add(key)
        return Proposal(row.values, edit, split)


def _check_action(row: Row) -> None:
    """Raises Dropped where the answer has no action."""
    given = row.values["action"]
    try:
        parse_action(given if isinstance(given, str) else "", row.text("language", "python"))
    except ActionFault as fault:
        raise Dropped(NO_ACTION, str(fault)) from fault


def _values(row: Row, step: dict[str, Any], number: int) -> dict[str, Any]:
    about = {"task": row.text("task"), "step": number, "teacher": row.text("teacher"), "schema": SCHEMA}
    kept = ("instruction", "language", "source", "family", "difficulty")
    return {
        "id": f"{row.text('id')}@{number}",
        **{name: row.values[name] for name in kept if name in row.values},
        "before": step.get("before"),
        "after": step.get("after"),
        "action": step.get("action"),
        "metadata": about,
    }
