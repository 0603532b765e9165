"""Rows that get an action: a line at a time, each with what is proved of it, or dropped with the reason.

The rows are those of `data=edits`, in JSON lines and tables. A row that has an action keeps it, and that one is proved.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlvr_exp.config.prepare import EditActions
from rlvr_exp.core.errors import InputError
from rlvr_exp.corpora.edit_actions.nodes import Rule
from rlvr_exp.corpora.edit_actions.search import Search
from rlvr_exp.corpora.edit_actions.trial import Program
from rlvr_exp.corpora.edit_sets.draft import INCOMPLETE, UNREADABLE, Dropped
from rlvr_exp.corpora.edit_sets.languages import UNKNOWN
from rlvr_exp.corpora.edit_sets.lines import Line, read_lines, row_files
from rlvr_exp.corpora.edit_sets.normalize import NO_TEXT, UNCHANGED
from rlvr_exp.tasks.edits.action import ended_as, parse_action
from rlvr_exp.tasks.edits.languages import language_of
from rlvr_exp.tasks.edits.reading import ActionFault
from rlvr_exp.tasks.edits.rows import EditRow, edit_of
from rlvr_exp.tasks.rows import Row, split_named_for, split_of

NO_AFTER = "no text after"
NO_ACTION = "its rules are no action"


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


def files(root: Path) -> list[Path]:
    return row_files(root)


def read(
    file: Path, options: EditActions, program: Program
) -> Iterator[tuple[Place, EditRow | None, Proposal | Dropped]]:
    """Every line, the edit that it holds, if it holds one, and the proposal or why there is none."""
    search = Search(options.max_characters, options.max_share, program)
    for line in read_lines(file):
        edit = None
        try:
            row = row_of(file, line)
            edit = edit_in(row)
            found: Proposal | Dropped = _proposed(row, edit, split_of(row), search)
        except Dropped as fault:
            found = fault
        except InputError as fault:  # A split of no name that is known.
            found = Dropped(UNREADABLE, fault.problems[0].what)
        yield Place(file, line.number, line.position), edit, found


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
