"""The catalogue of ast-grep: its rules and commands are the actions, the texts that it documents the edits.

`extracted.jsonl` has an entry a line, `catalog/LANGUAGE/ID.md` its prose: the title and the description are the instruction.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from rlvr_exp.config.prepare import EditActions
from rlvr_exp.core.errors import InputError
from rlvr_exp.corpora.edit_actions.reading import Place, Proposal, edit_in, row_of
from rlvr_exp.corpora.edit_actions.trial import Program
from rlvr_exp.corpora.edit_sets.draft import INCOMPLETE, Dropped
from rlvr_exp.corpora.edit_sets.lines import nothing_there, read_lines
from rlvr_exp.corpora.edit_sets.normalize import NO_INSTRUCTION
from rlvr_exp.tasks.edits.action import parse_action
from rlvr_exp.tasks.edits.reading import ActionFault
from rlvr_exp.tasks.edits.rows import EditRow
from rlvr_exp.tasks.rows import Row

NAME, ENTRIES = "ast_grep_catalog", "extracted.jsonl"
NO_TEXTS = "it documents no text before and after"
NO_ACTION = "it has neither a rule nor a command"
_TITLE = re.compile(r"^## (.*?)(?:<Badge.*)?$", re.MULTILINE)
_DESCRIPTION = re.compile(r"^### Description\n(.*?)(?=^<!--|^### )", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def files(root: Path) -> list[Path]:
    if not (root / ENTRIES).is_file():
        raise nothing_there(root, ENTRIES)
    return [root / ENTRIES]


def read(file: Path, _: EditActions, __: Program) -> Iterator[tuple[Place, EditRow | None, Proposal | Dropped]]:
    """Every entry, the edit that it documents, if it does, and the proposal or why there is none."""
    for line in read_lines(file):
        edit = None
        try:
            row = row_of(file, line)
            values = _values(row, file.parent)
            edit = edit_in(Row(values, row.where))
            by_tree = row.text("check") == "fix-same-but-blanks"
            found: Proposal | Dropped = Proposal({**values, "action": _action(row)}, edit, "train", by_tree)
        except InputError as fault:
            found = Dropped(INCOMPLETE, str(fault))
        except Dropped as fault:
            found = fault
        yield Place(file, line.number, line.position), edit, found


def _values(row: Row, folder: Path) -> dict[str, object]:
    """A row of data=edits, without its action."""
    before, after = (row.texts(key) if row.values.get(key) else () for key in ("diff_before", "diff_after"))
    if not before or not after:
        raise Dropped(NO_TEXTS)
    name = f"{row.text('language')}/{row.text('id')}"
    title, description = _prose(folder / "catalog" / f"{name}.md")
    return {
        "id": f"{NAME}/{name}",
        "source": NAME,
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
        raise Dropped(NO_ACTION)
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
