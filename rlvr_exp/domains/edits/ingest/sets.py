"""Readers of raw sets: each turns a line of a set into a draft. A reader keeps nothing between lines.

- CommitPackFT: commits of one file, JSON lines by language in `data/LANGUAGE/data.jsonl`. The instruction is the first line
  of the commit's message (`subject`), as in the set's own use, or the message.
- EditPackFT: the Python commits of CommitPackFT that passed its published filters, with CommitPackFT's keys. The column
  `instruction` is the instruction if there is one. `content`, the prompt that the release adds, is not read.
- SmellyCode: programs written with bad smells, and a table of labels. A label is a task without an answer. The table
  repeats its header between the labels.
- EditEval, and InstructCoder, whose test set it is: an instruction, an input and an output, possibly inside a context. A row
  with tests belongs to the published test set and stays in `test`; the others are drawn. Texts are complete modules: a piece
  is put into its context, as `data=code` does.
- OpenCodeEdit: edits of Python that models wrote, in two layouts: the triplets of its pipeline (OCEData), and chats for
  fine-tuning with the two programs next to them (OCEDataFT).
- rows: JSON lines of a user, with the keys of a normalized record, of which `instruction` and `before` are needed. `split`
  places a row, else the name of its file does. A row without an id gets one from its content.
"""

import re
from pathlib import Path
from typing import Any

from rlvr_exp.core.hashing import content_hash
from rlvr_exp.domains.edits.ingest.lines import nothing_there
from rlvr_exp.domains.edits.ingest.normalize import INCOMPLETE, Draft, Dropped, Place, SetReader
from rlvr_exp.tasks.edit_sets import EDIT_EVAL
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.rows import OTHER_NAMES, Row

MIT = "MIT"
OF_COMMITS = ("commit", "old_file", "new_file", "repos")
"""Keys of a commit that become metadata."""
TABLE = Path("Analysis", "GroundTruthLevel", "GroundTruth.csv")
ENDINGS = (".py", ".java", ".js", ".cpp", ".h")
"""Of a class with a header file and another, the other is what is edited."""
ENTIRE = "Entire Class"
HEADER, NO_SOURCE = "the table's header again", "no source of that class"
NO_TESTS = "its tests cannot be read as Python"
BEFORE, INSTRUCTION, AFTER = "code_before_purify", "instruct_purify", "code_after_purify"
_REQUEST = re.compile(r".*^## Instruction:\n(.*?)\n## Code After:\s*(?:/no_think)?\s*\Z", re.DOTALL | re.MULTILINE)
"""The last instruction of a chat's request: the program before it may have such a heading, too."""
PLACES = ("train", "dev", "test")


def read_commitpackft(row: Row, place: Place) -> Draft:
    return commit_of(row, row.text(place.options.instruction), row.text("lang"))


def commit_of(row: Row, instruction: str, language: str) -> Draft:
    """The draft of a commit; its id is the commit's hash and the file."""
    return Draft(
        f"{row.text('commit')}:{row.text('new_file', '')}",
        language,
        instruction.strip(),
        row.text("old_contents"),
        row.text("new_contents"),
        licence=row.text("license", ""),
        metadata={key: row.values[key] for key in OF_COMMITS if key in row.values},
    )


def read_editpackft(row: Row, place: Place) -> Draft:
    key = "instruction" if "instruction" in row.values else place.options.instruction
    return commit_of(row, row.text(key), row.text("lang", "Python"))


def _labels(root: Path) -> list[Path]:
    """The table of labels. Raises InputError where it is not there."""
    if not (root / TABLE).is_file():
        raise nothing_there(root, str(TABLE))
    return [root / TABLE]


def _programs(root: Path) -> list[Path]:
    """All files that decide the records."""
    return _labels(root) + sorted(file for file in root.glob("*/*") if file.suffix in ENDINGS)


def read_smelly_code(row: Row, place: Place) -> Draft:
    language, owner, smell = row.text("Language"), row.text("Class"), row.text("Code Smell")
    if (language, owner) == ("Language", "Class"):
        raise Dropped(HEADER)
    method, number = row.text("Method"), row.text("Code Smell #")
    where = f"class {owner}" if method in ("", ENTIRE) else f"`{method}` of class {owner}"
    detail = row.text("Type").strip()
    return Draft(
        f"{language}/{owner}/{number}/{row.where.rpartition(' ')[2]}",
        language,
        f"Remove the code smell {smell} in {where}." + (f" {detail}" if detail else ""),
        _source(place.root / language, owner),
        None,
        licence=MIT,
        metadata={"class": owner, "method": method, "smell": smell, "category": row.text("Category")},
    )


def _source(folder: Path, owner: str) -> str:
    """The file of a class: the one of its name, else the first that defines it."""
    found = sorted((file for file in folder.glob("*") if file.suffix in ENDINGS), key=_order)
    named = [file for file in found if file.stem.lower() == owner.lower()]
    for text in (file.read_text(encoding="utf-8-sig") for file in named or found):
        if named or re.search(rf"^\s*(?:export |public |abstract )*class {re.escape(owner)}\b", text, re.MULTILINE):
            return text
    raise Dropped(NO_SOURCE, f"{folder.name}/{owner}")


def _order(file: Path) -> tuple[int, str]:
    return ENDINGS.index(file.suffix), file.name


def read_edit_eval(row: Row, place: Place) -> Draft:
    instruction = row.text("instruction")
    if "test" not in row.values:
        before, after = row.text("input"), row.text("output")
        name = content_hash([instruction, before, after])[:16]
        return Draft(name, "python", instruction, before, after, licence=MIT)
    try:
        found = EDIT_EVAL.read(row)
    except (SyntaxError, ValueError, RecursionError) as fault:
        raise Dropped(NO_TESTS, str(fault)) from fault
    tests = found.tests.tests if isinstance(found.tests, PytestProblem) else ""
    (before,), split = found.negatives, "test"
    return Draft(found.id, "python", instruction, before, found.gold, tests, MIT, split=split)


def read_opencodeedit(row: Row, place: Place) -> Draft:
    chat = "messages" in row.values
    instruction = _instruction_of(row.values["messages"]) if chat else row.text(INSTRUCTION)
    before, after = (row.text("old_code"), row.text("new_code")) if chat else (row.text(BEFORE), row.text(AFTER))
    commit = row.values.get("commit", "")
    metadata = {"commit": commit, "style": row.text("instr_type", "")}
    name = content_hash([instruction, before, after])[:16]
    return Draft(name, "python", instruction.strip(), before, after, metadata=metadata)


def _instruction_of(messages: Any) -> str:
    """The instruction of a chat's request."""
    for one in messages if isinstance(messages, list) else ():
        request = one.get("content") if isinstance(one, dict) and one.get("role") == "user" else None
        if found := _REQUEST.match(request if isinstance(request, str) else ""):
            return found[1]
    raise Dropped(INCOMPLETE, "no request with an instruction among the messages")


def read_rows(row: Row, place: Place) -> Draft:
    values = row.values
    instruction, before = row.text("instruction"), row.text("before")
    after = None if values.get("after") is None else row.text("after")
    metadata = values.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise Dropped(INCOMPLETE, "metadata is no object")
    return Draft(
        row.text("id", "") or content_hash([instruction, before, after])[:16],
        row.text("language", "python"),
        instruction,
        before,
        after,
        row.text("tests", ""),
        row.text("licence", row.text("license", "")),
        metadata,
        row.text("source", ""),
        _split(row),
    )


def _split(row: Row) -> str:
    given = row.text("split", "") or row.split
    name = OTHER_NAMES.get(given, given)
    if name and name not in PLACES:
        raise Dropped(INCOMPLETE, f"split: got {name}, allowed {', '.join(PLACES)}")
    return name


READERS = {
    one.name: one
    for one in (
        SetReader("commitpackft", read_commitpackft),
        SetReader("editpackft", read_editpackft),
        SetReader("smelly_code", read_smelly_code, _labels, _programs),
        SetReader("edit_eval", read_edit_eval),
        SetReader("opencodeedit", read_opencodeedit),
        SetReader("rows", read_rows),
    )
}
