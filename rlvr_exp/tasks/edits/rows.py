"""Rows of edits from files: normalised records, with what an edit task may have besides.

Read below a folder, or from one file: JSON lines (plain, `.gz` or `.xz`), Parquet and tables of `save_to_disk`. A row's split
is its own `split`, else the split that its file, or its file's folder, is named after.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.code.files import Row, once, rows_below
from rlvr_exp.tasks.edits.action import parse_action
from rlvr_exp.tasks.edits.faults import ActionFault
from rlvr_exp.tasks.edits.metadata import METADATA
from rlvr_exp.tasks.edits.record import NormalizedRecord


@dataclass(frozen=True)
class Wrong:
    """An answer that no verifier may pass."""

    text: str
    is_action: bool


@dataclass(frozen=True)
class EditRow(NormalizedRecord):
    """A record, and how it is learned and judged where its set says so."""

    split: str = ""
    """Empty where nothing says it."""
    family: str = ""
    difficulty: float = 0.0
    lazy_instruction: str = ""
    """The instruction in a few words; empty where there is one style."""
    action: str = ""
    """A gold ast-grep action, as JSON; empty where none is known."""
    wrong: tuple[Wrong, ...] = ()
    state: str = ""
    """What was done and found so far, where the edit is one step of several."""
    think: str = ""
    """The reasoning before the action."""
    state_update: str = ""
    """The state after it."""
    script: str = ""
    """Tests that the edited program precedes in one script, of a published set that has them so."""


def load(path: Path) -> list[EditRow]:
    """Every row at or below a path, by file and line.

    Raises:
        InputError: nothing is there, any file, row or key is wrong, or an id stands twice.
    """
    remedy = "point data.path at rows with instruction, before and after"
    nothing = InputProblem(str(path), "no edits here", allowed="JSON lines or tables", remedy=remedy)
    return once(rows_below(path, edit_of, nothing, leaving=METADATA), path)


def edit_of(row: Row, split: str = "") -> EditRow:
    """The edit of a row. Raises InputError naming the key."""
    values = row.values
    language = row.text("language", "python")
    action = _action(row, language)
    return EditRow(
        id=row.text("id"),
        source=row.text("source", "rows"),
        language=language,
        instruction=row.text("instruction"),
        before=row.text("before"),
        after=None if values.get("after") is None else row.text("after"),
        tests=row.text("tests", ""),
        licence=row.text("licence", ""),
        metadata=values.get("metadata") or {},
        split=split,
        family=row.text("family", row.text("source", "rows")),
        difficulty=row.real("difficulty", 0.0),
        lazy_instruction=row.text("lazy_instruction", ""),
        action=action,
        wrong=tuple(_wrong(row, one) for one in values.get("wrong") or ()),
        state=row.text("state", ""),
        think=row.text("think", ""),
        state_update=row.text("state_update", ""),
    )


def _action(row: Row, language: str) -> str:
    action = row.text("action", "")
    try:
        if action:
            parse_action(action, language)
    except ActionFault as fault:
        raise InputError(InputProblem(f"{row.where}, action", "no ast-grep action", str(fault))) from fault
    return action


def _wrong(row: Row, value: Any) -> Wrong:
    if isinstance(value, Mapping) and len(value) == 1:
        ((kind, text),) = value.items()
        if kind in ("text", "action") and isinstance(text, str):
            return Wrong(text, kind == "action")
    allowed = '{"text": TEXT} or {"action": TEXT}'
    raise InputError(InputProblem(f"{row.where}, wrong", "no wrong answer", repr(value)[:60], allowed))
