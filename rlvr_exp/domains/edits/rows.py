"""Rows of edits: the record that ingestion writes, the metadata of a folder of records, and the rows that an edit task reads.

Rows are read below a folder, or from one file: JSON lines (plain, `.gz` or `.xz`), Parquet and tables of `save_to_disk`. A
row's split is its own `split`, else the split that its file, or its file's folder, is named after. The published sets of
edits that `data=code` reads are rows, too.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import write_json
from rlvr_exp.domains.edits.action import parse_action
from rlvr_exp.domains.edits.schema import ActionFault
from rlvr_exp.tasks.code_sets import load as load_set
from rlvr_exp.tasks.formats.base import CodeInputs
from rlvr_exp.tasks.rows import Row, once, rows_below


@dataclass(frozen=True)
class NormalizedRecord:
    """An instruction, a text before it and, if it is known, the text after it."""

    id: str
    """Unique within its source."""
    source: str
    """Name of the set that it comes from."""
    language: str
    """As rlvr_exp.domains.edits.schema names it."""
    instruction: str
    before: str
    after: str | None
    """None: a task without an answer, for teachers."""
    tests: str = ""
    """Source of tests of the edited text, by pytest; empty: none."""
    licence: str = ""
    """SPDX identifier; empty if the set names none."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Further data of its set, in values of JSON."""

    def to_row(self) -> dict[str, Any]:
        """A row of JSONL, with every field."""
        return asdict(self)


METADATA = "metadata.json"


@dataclass(frozen=True)
class DatasetMetadata:
    """The origin of rows, the options and versions that made them, and their counts."""

    sources: Mapping[str, Mapping[str, str]]
    """By set: SHA-256 of every file that was read, by its path below the set's."""
    licences: Mapping[str, int]
    """Rows by licence, as the sets name them; empty: not named."""
    languages: Mapping[str, int]
    counts: Mapping[str, Any]
    """Lines read, rows kept by split and source, lines dropped by reason."""
    options: Mapping[str, Any]
    """The options that decide the rows, and the seed."""
    versions: Mapping[str, str]
    """Versions of the package and of the libraries that decide the rows."""
    files: Mapping[str, str]
    """SHA-256 of every file of rows."""

    def write(self, folder: Path) -> None:
        """Write it into the folder of the splits."""
        write_json(folder / METADATA, asdict(self))


@dataclass(frozen=True)
class Wrong:
    """An answer that no verifier may pass."""

    text: str
    is_action: bool


@dataclass(frozen=True)
class EditRow(NormalizedRecord):
    """A record, with the parts of its set that say how it is learned and judged."""

    split: str = ""
    """Empty if nothing says it."""
    family: str = ""
    difficulty: float = 0.0
    lazy_instruction: str = ""
    """The instruction in a few words; empty if there is one style."""
    action: str = ""
    """A gold ast-grep action, as JSON; empty if none is known."""
    wrong: tuple[Wrong, ...] = ()
    state: str = ""
    """The results of earlier steps, if the edit is one step of several."""
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
    language, action = row.text("language", "python"), row.text("action", "")
    try:
        if action:
            parse_action(action, language)
    except ActionFault as fault:
        raise InputError(InputProblem(f"{row.where}, action", "no ast-grep action", str(fault))) from fault
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


def _wrong(row: Row, value: Any) -> Wrong:
    if isinstance(value, Mapping) and len(value) == 1:
        ((kind, text),) = value.items()
        if kind in ("text", "action") and isinstance(text, str):
            return Wrong(text, kind == "action")
    allowed = '{"text": TEXT} or {"action": TEXT}'
    raise InputError(InputProblem(f"{row.where}, wrong", "no wrong answer", repr(value)[:60], allowed))


def published(path: Path, name: str) -> list[EditRow]:
    """The rows of a set, all in the split that it says. Raises InputError if the set is missing or damaged."""
    found = []
    for record in load_set(path, name):
        inputs, lazy, tests = record.inputs, record.lazy, record.tests
        assert isinstance(inputs, CodeInputs) and tests is not None, "a set of edits has programs and tests"
        row = EditRow(
            id=record.id,
            source=name,
            language="python",
            instruction=inputs.instruction,
            before=inputs.before,
            after=record.gold,
            tests=tests.tests,
            split=record.split,
            family=record.family,
            lazy_instruction=lazy.instruction if isinstance(lazy, CodeInputs) else "",
            script=record.script,
        )
        found.append(row)
    return found
