"""Readers of rows that get an action: each line with the action to prove, or dropped with the reason.

`RowReader` reads rows of `data=edits`, in JSON lines and tables. A row keeps its own action, which is proved as well.
`CatalogueReader` reads ast-grep's catalogue: its rules and commands are the actions, and its pages give the instructions
(`extracted.jsonl` has an entry a line, `catalog/LANGUAGE/ID.md` the title and the description). `TrajectoryReader` reads
trajectories of +stage=collect: a step has the text that a teacher saw, its action, and the text that followed.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from rlvr_exp.core.errors import InputError
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.core.seeds import uniform
from rlvr_exp.domains.edits.action import ended_as, is_done, parse_action
from rlvr_exp.domains.edits.derive.search import Program, Search
from rlvr_exp.domains.edits.derive.trees import Rule
from rlvr_exp.domains.edits.ingest.lines import Line, nothing_there, read_lines, row_files
from rlvr_exp.domains.edits.ingest.normalize import (
    INCOMPLETE,
    NO_INSTRUCTION,
    NO_TEXT,
    UNCHANGED,
    UNKNOWN,
    UNREADABLE,
    Dropped,
)
from rlvr_exp.domains.edits.options import EditActions, Trajectories
from rlvr_exp.domains.edits.reading import ActionFault, language_of
from rlvr_exp.domains.edits.rows import EditRow, edit_of
from rlvr_exp.tasks.rows import Row, split_named_for, split_of

NO_AFTER = "no text after"
NO_ACTION = "its rules are no action"
CATALOGUE, ENTRIES = "ast_grep_catalog", "extracted.jsonl"
NO_TEXTS = "it documents no text before and after"
NO_RULE = "it has neither a rule nor a command"
TRAJECTORIES = "trajectories"
SCHEMA = 1
"""Version of the rows of trajectories."""
NOT_RIGHT, NOTHING_FOLLOWS, TWICE, DONE_STEP = (
    "its trajectory does not end right",
    "no text came of it",
    "the same step as another",
    "it says `done`",
)
_TITLE = re.compile(r"^## (.*?)(?:<Badge.*)?$", re.MULTILINE)
_DESCRIPTION = re.compile(r"^### Description\n(.*?)(?=^<!--|^### )", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True)
class Place:
    """A line of a file."""

    file: Path
    number: int
    position: int
    """Where the next line begins."""


@dataclass(frozen=True)
class Proposal:
    """A row with the action that is to be proved."""

    values: Mapping[str, Any]
    """The row as it is read, with its action."""
    edit: EditRow
    split: str
    by_tree: bool = False
    """Equal syntax trees count as equal texts; the text after becomes the one that ast-grep makes."""


Found = tuple[Place, EditRow | None, Proposal | Dropped]
"""A line, its edit if it has one, and the proposal or the reason why there is none."""


class Reader(Protocol):
    """Proposes rows with actions."""

    @property
    def name(self) -> str:
        """Name of the set."""

    def files(self, root: Path) -> list[Path]: ...

    def read(self, file: Path, program: Program) -> Iterator[Found]: ...


def row_of(file: Path, line: Line) -> Row:
    """Raises Dropped."""
    if line.fault:
        raise Dropped(UNREADABLE, line.fault)
    return Row(line.values, f"{file.name}, line {line.number}", split_named_for(file))


def edit_in(row: Row) -> EditRow:
    """The edit of a row as data=edits has it: the text after ends as the text before. Raises Dropped."""
    try:
        edit = edit_of(row)
        language_of(edit.language)
        "".join((edit.instruction, edit.before, edit.after or "")).encode()
    except InputError as fault:
        raise Dropped(INCOMPLETE, str(fault)) from fault
    except ActionFault as fault:
        raise Dropped(UNKNOWN, str(fault)) from fault
    except UnicodeEncodeError as fault:
        raise Dropped(NO_TEXT) from fault
    return edit if edit.after is None else replace(edit, after=ended_as(edit.after, edit.before))


class RowReader:
    name = "rows"

    def __init__(self, options: EditActions):
        self._options = options

    def files(self, root: Path) -> list[Path]:
        return row_files(root)

    def read(self, file: Path, program: Program) -> Iterator[Found]:
        search = Search(self._options.max_characters, self._options.max_share, program)
        for line in read_lines(file):
            edit = None
            try:
                row = row_of(file, line)
                edit = edit_in(row)
                found: Proposal | Dropped = _proposed(row, edit, split_of(row), search)
            except Dropped as fault:
                found = fault
            except InputError as fault:  # The split has an unknown name.
                found = Dropped(UNREADABLE, fault.problems[0].what)
            yield Place(file, line.number, line.position), edit, found


def _proposed(row: Row, edit: EditRow, split: str, search: Search) -> Proposal:
    if edit.after is None:
        raise Dropped(NO_AFTER)
    if edit.before == edit.after:
        raise Dropped(UNCHANGED)
    language = language_of(edit.language)
    action = edit.action or _written(search.rules(edit.before, edit.after, language), language)
    return Proposal({**row.values, "after": edit.after, "action": action}, edit, split)


def _written(rules: list[Rule], language: str) -> str:
    """The only rule, or the list of them, as JSON. Raises Dropped."""
    action = json.dumps(rules[0] if len(rules) == 1 else rules, ensure_ascii=False)
    try:
        parse_action(action, language)
    except ActionFault as fault:
        raise Dropped(NO_ACTION, str(fault)) from fault
    return action


class CatalogueReader:
    name = CATALOGUE

    def __init__(self, options: EditActions):
        pass

    def files(self, root: Path) -> list[Path]:
        if not (root / ENTRIES).is_file():
            raise nothing_there(root, ENTRIES)
        return [root / ENTRIES]

    def read(self, file: Path, program: Program) -> Iterator[Found]:
        for line in read_lines(file):
            edit = None
            try:
                row = row_of(file, line)
                values = _documented(row, file.parent)
                edit = edit_in(Row(values, row.where))
                by_tree = row.text("check") == "fix-same-but-blanks"
                found: Proposal | Dropped = Proposal({**values, "action": _action(row)}, edit, "train", by_tree)
            except InputError as fault:
                found = Dropped(INCOMPLETE, str(fault))
            except Dropped as fault:
                found = fault
            yield Place(file, line.number, line.position), edit, found


def _documented(row: Row, folder: Path) -> dict[str, object]:
    """A row of data=edits, without its action."""
    before, after = (row.texts(key) if row.values.get(key) else () for key in ("diff_before", "diff_after"))
    if not before or not after:
        raise Dropped(NO_TEXTS)
    name = f"{row.text('language')}/{row.text('id')}"
    title, description = _prose(folder / "catalog" / f"{name}.md")
    return {
        "id": f"{CATALOGUE}/{name}",
        "source": CATALOGUE,
        "language": _language(row),
        "instruction": f"{title}\n\n{description}".strip(),
        "lazy_instruction": title,
        "before": "\n".join(before),
        "after": "\n".join(after),
        "licence": "MIT",
        "metadata": {"check": row.text("check")},
    }


def _language(row: Row) -> str:
    """The rule's own, else the folder's."""
    try:
        return parse_action(row.text("rule", ""), row.text("language")).steps[0][0].language
    except (ActionFault, InputError):
        return row.text("language")


def _action(row: Row) -> str:
    """The rule, or the commands, one after the other. Raises Dropped."""
    if row.values.get("rule"):
        return json.dumps({"rule_yaml": row.text("rule")}, ensure_ascii=False)
    commands = row.texts("commands")
    if not commands:
        raise Dropped(NO_RULE)
    return json.dumps({"cli": commands[0] if len(commands) == 1 else commands}, ensure_ascii=False)


def _prose(page: Path) -> tuple[str, str]:
    """Title and description. Raises Dropped where there is no title."""
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise Dropped(NO_INSTRUCTION, str(fault)) from fault
    title, description = _TITLE.search(text), _DESCRIPTION.search(text)
    if title is None:
        raise Dropped(NO_INSTRUCTION, f"no title in {page.name}")
    return title[1].strip(), _LINK.sub(r"\1", description[1]).strip() if description else ""


class TrajectoryReader:
    """Reads trajectories, each step of which is a row or is dropped."""

    name = TRAJECTORIES

    def __init__(self, options: Trajectories):
        self._options = options
        self._seen: set[str] = set()

    def files(self, root: Path) -> list[Path]:
        return row_files(root)

    def read(self, file: Path, program: Program) -> Iterator[Found]:
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
        split = "dev" if uniform(0, TRAJECTORIES, task) < self._options.dev_fraction else "train"
        return [(Row(_step_values(row, step, number), row.where), split) for number, step in enumerate(steps)]

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


def _step_values(row: Row, step: dict[str, Any], number: int) -> dict[str, Any]:
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
