"""Lines of raw sets as normalized records: reading a file line by line, the reader of each set, and the checks of every set.

Plain JSON lines are continued by byte; packed ones (`.gz`, `.xz`), tables and CSV by skipping the lines already read. Memory is
that of one line, or of one batch of a table. An unreadable line is a line with a fault; nothing is fatal.

A reader turns a line into a draft, and keeps nothing between lines:

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

The filters for Python are those that EditPackFT published (its filter.py), each an option, in its order. One difference: rows
that differ only in the header are dropped as edits of nothing. There, they have a distance below 10.
"""

import csv
import gzip
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from rapidfuzz.distance import Levenshtein

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.domains.edits.options import EditSets
from rlvr_exp.domains.edits.rows import NormalizedRecord
from rlvr_exp.domains.edits.schema import LANGUAGES
from rlvr_exp.tasks.code_sets import EVALUATION_ONLY
from rlvr_exp.tasks.completion import syntax_fault
from rlvr_exp.tasks.edit_sets import CANITEDIT, EDIT_EVAL
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.rows import OTHER_NAMES, TABLES, Row, is_table, table_rows

LINES = (".jsonl", ".jsonl.gz", ".jsonl.xz")
LONGEST = 1 << 26
"""Bytes of the longest line that is read; the rest is skipped, since a file without line ends would fill the memory."""


@dataclass(frozen=True)
class Line:
    """One line of a file: its values, or why it has none."""

    number: int
    """From 1 on."""
    position: int
    """Where the next line begins: bytes, or rows of a table."""
    values: Mapping[str, Any]
    fault: str = ""


def row_files(root: Path) -> list[Path]:
    """JSON lines and tables at or below a path, by name. Raises InputError if there are none."""

    def is_rows(file: Path) -> bool:
        hidden = any(part.startswith(".") for part in file.relative_to(root).parts)
        return not hidden and file.is_file() and (file.name.endswith(LINES) or is_table(file))

    found = [root] if root.is_file() else sorted(file for file in root.rglob("*") if is_rows(file))
    if not found:
        raise nothing_there(root, ", ".join((*LINES, *TABLES)))
    return found


def nothing_there(root: Path, allowed: str) -> InputError:
    """The refusal of a path without files of its set."""
    return InputError(InputProblem("prepare.path", "no files of the set are there", str(root), allowed))


def name_below(file: Path, root: Path) -> str:
    """The path of a file below a set's: its name in all outputs."""
    return file.name if file == root else file.relative_to(root).as_posix()


def read_lines(file: Path, position: int = 0, number: int = 0) -> Iterator[Line]:
    """Every line after the one that ended at `position` and had `number`."""
    if file.suffix in TABLES:
        yield from _table(file, number)
    elif file.suffix == ".csv":
        yield from _csv(file, number)
    else:
        yield from _json(file, position, number)


def _json(file: Path, position: int, number: int) -> Iterator[Line]:
    try:
        unpack: Any = {".gz": gzip.open, ".xz": lzma.open}.get(file.suffix, open)
        with unpack(file, "rb") as source:
            source.seek(position)
            while raw := source.readline(LONGEST):
                position, number = position + len(raw), number + 1
                too_long = len(raw) == LONGEST and not raw.endswith(b"\n")
                while too_long and (more := source.readline(LONGEST)):
                    position += len(more)
                    if more.endswith(b"\n"):
                        break
                if too_long:
                    yield Line(number, position, {}, f"longer than {LONGEST} bytes")
                elif raw.strip():
                    yield _parsed(raw, number, position)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as fault:
        yield Line(number + 1, position, {}, f"the file cannot be read further: {fault}")


def _parsed(raw: bytes, number: int, position: int) -> Line:
    try:
        values = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as fault:  # UnicodeDecodeError is a ValueError.
        return Line(number, position, {}, str(fault))
    if not isinstance(values, dict):
        return Line(number, position, {}, f"not an object: {type(values).__name__}")
    return Line(number, position, values)


def _table(file: Path, done: int) -> Iterator[Line]:
    number = done
    try:
        for number, values in enumerate(islice(table_rows(file), done, None), done + 1):
            yield Line(number, number, values)
    except InputError as fault:
        yield Line(number + 1, number, {}, str(fault))


def _csv(file: Path, done: int) -> Iterator[Line]:
    number = done
    try:
        with open(file, encoding="utf-8-sig", newline="") as source:
            for number, values in enumerate(islice(csv.DictReader(source), done, None), done + 1):
                yield Line(number, number, values)
    except (OSError, UnicodeDecodeError, csv.Error) as fault:
        yield Line(number + 1, number, {}, f"the file cannot be read further: {fault}")


UNREADABLE = "not readable"
"""A line that is no JSON object, or a file that ends in the middle."""
INCOMPLETE = "a field is missing or has another type"
NO_TRAINING = "its licence forbids training"
NO_INSTRUCTION, NOTHING_BEFORE, NOTHING_AFTER = "no instruction", "nothing before", "nothing after"
UNCHANGED, TOO_LONG, OTHER_LICENCE = "nothing changes", "too long", "its licence is not among prepare.licences"
NO_TEXT = "lone surrogates, which are no text"
UNKNOWN = "a language that ast-grep does not know"
FORBIDDEN = "a forbidden word in the text after"
SMALL = "too small an edit"
NO_PYTHON = "the text after is no Python"
OTHERS = {
    "c++": "cpp",
    "c#": "csharp",
    "c-sharp": "csharp",
    "shell": "bash",
    "sh": "bash",
    "javascript react": "javascript",
    "python3": "python",
    "terraform": "hcl",
}
"""Spellings of languages that ast-grep does not have."""
_SPDX = (
    "AGPL-3.0 Apache-2.0 Artistic-2.0 BSD-2-Clause BSD-3-Clause BSL-1.0 CC-BY-4.0 CC0-1.0 EPL-1.0 EPL-2.0 GPL-2.0 GPL-3.0 "
    "ISC LGPL-2.1 LGPL-3.0 MIT MPL-2.0 Unlicense WTFPL Zlib"
)
_CANONICAL = {name.lower(): name for name in _SPDX.split()} | {"unknown": ""}
_FORBIDS = re.compile(r"canitedit|no[ _-]?training|not?[ _-](?:for|as)[ _-]training|evaluation[ _-]only", re.IGNORECASE)
QUOTES = '"""'


class Dropped(Exception):
    """A line that gives no record.

    Args:
        reason: one of few; lines are counted by it.
        detail: the fault of this line.
    """

    def __init__(self, reason: str, detail: str = ""):
        super().__init__(reason)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True)
class Draft:
    """A record as its set has it. The language is in the set's spelling."""

    id: str
    """Unique within its set."""
    language: str
    instruction: str
    before: str
    after: str | None
    tests: str = ""
    licence: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    """Its origin, if rows name one; empty: the set."""
    split: str = ""
    """The split that its set or its row demands; empty: drawn."""


@dataclass(frozen=True)
class SetSource:
    """The path of a set, and the options that readers read."""

    root: Path
    options: EditSets


@dataclass(frozen=True)
class SetReader:
    """A set of edits that can be read."""

    name: str
    read: Callable[[Row, SetSource], Draft]
    """Turns a line into a draft. Raises Dropped, or InputError for a missing field."""
    files: Callable[[Path], list[Path]] = row_files
    """The files to read below a path, in order. Raises InputError if there are none."""
    sources: Callable[[Path], list[Path]] | None = None
    """All files that decide the records; None: `files`."""


def canonical(spelling: str) -> str:
    """The canonical name of a set's spelling. Raises Dropped."""
    name = spelling.strip().lower()
    found = LANGUAGES.get(name) or OTHERS.get(name)
    if found is None:
        raise Dropped(UNKNOWN, spelling[:60])
    return found


def spdx(licence: str) -> str:
    """A licence's name in SPDX's spelling; empty if the set calls it unknown, unchanged if it is no SPDX name."""
    return _CANONICAL.get(licence.strip().lower(), licence.strip())


def forbids_training(source: str, licence: str) -> str:
    """The words of a source's or a licence's name that forbid training; empty if there are none."""
    found = _FORBIDS.search(f"{source}\n{licence}")
    return found[0] if found else ""


def without_header(program: str) -> str:
    """A program without the comments, blank lines between them and docstring that it begins with."""
    lines, cut, inside = program.split("\n"), 0, False
    for number, line in enumerate(lines, 1):
        if line.count(QUOTES) == 1:
            if inside:
                cut = number
                break
            inside = True
        elif not inside and line.startswith("#"):
            cut = number
        elif not inside and line.strip():
            break
    return "\n".join(lines[cut:])


@dataclass(frozen=True)
class Normalized:
    """A record, the split that its row demands (empty: drawn), and its row of JSON."""

    record: NormalizedRecord
    split: str
    text: str


def normalize(line: Line, row: Row, reader: SetReader, place: SetSource) -> Normalized:
    """The record of a line. Raises Dropped."""
    if line.fault:
        raise Dropped(UNREADABLE, line.fault)
    if line.values.keys() >= CANITEDIT.keys:
        raise Dropped(NO_TRAINING, f"{CANITEDIT.name}: {EVALUATION_ONLY[CANITEDIT.name]}")
    try:
        draft: Draft = reader.read(row, place)
    except InputError as fault:
        raise Dropped(INCOMPLETE, str(fault.problems[0].where).rpartition(", ")[2]) from fault
    record = _checked(draft, reader.name, place)
    try:
        text = json.dumps(record.to_row(), allow_nan=False)
        json.dumps(record.to_row(), ensure_ascii=False).encode()
    except UnicodeEncodeError as fault:
        raise Dropped(NO_TEXT) from fault
    except (ValueError, TypeError, RecursionError) as fault:
        raise Dropped(INCOMPLETE, f"metadata: {fault}") from fault
    return Normalized(record, draft.split, text)


def _checked(draft: Draft, name: str, place: SetSource) -> NormalizedRecord:
    options = place.options
    language, source = canonical(draft.language), draft.source or name
    licence = spdx(draft.licence)
    if words := forbids_training(source, licence):
        raise Dropped(NO_TRAINING, words)
    if options.licences and licence not in map(spdx, options.licences):
        raise Dropped(OTHER_LICENCE, licence)
    if not draft.instruction.strip():
        raise Dropped(NO_INSTRUCTION)
    if language == "python" and options.strip_header:
        after = None if draft.after is None else without_header(draft.after)
        draft = replace(draft, before=without_header(draft.before), after=after)
    before, after = draft.before, draft.after
    if not before.strip() and (after is None or not options.keep_empty):
        raise Dropped(NOTHING_BEFORE)
    if after is not None and not after.strip() and not options.keep_empty:
        raise Dropped(NOTHING_AFTER)
    if before == after:
        raise Dropped(UNCHANGED)
    if (longest := max(len(before), len(after or ""))) > options.max_characters:
        raise Dropped(TOO_LONG, f"{longest} characters")
    if language == "python" and after is not None:
        for word in options.forbidden:
            if word in after or word.lower() in after:
                raise Dropped(FORBIDDEN, word)
        least = options.min_distance
        if least and Levenshtein.distance(before, after, score_cutoff=least) < least:
            raise Dropped(SMALL, f"fewer than {least} characters")
        if options.must_parse and syntax_fault(after) is not None:
            raise Dropped(NO_PYTHON)
    return NormalizedRecord(
        f"{name}/{draft.id}", source, language, draft.instruction, before, after, draft.tests, licence, draft.metadata
    )


MIT = "MIT"
OF_COMMITS = ("commit", "old_file", "new_file", "repos")
"""Keys of a commit that become metadata."""
TABLE = Path("Analysis", "GroundTruthLevel", "GroundTruth.csv")
ENDINGS = (".py", ".java", ".js", ".cpp", ".h")
"""Of a class with a header file and another, the other is edited."""
ENTIRE = "Entire Class"
HEADER, NO_SOURCE = "the table's header again", "no source of that class"
NO_TESTS = "its tests cannot be read as Python"
BEFORE, INSTRUCTION, AFTER = "code_before_purify", "instruct_purify", "code_after_purify"
_REQUEST = re.compile(r".*^## Instruction:\n(.*?)\n## Code After:\s*(?:/no_think)?\s*\Z", re.DOTALL | re.MULTILINE)
"""The last instruction of a chat's request: the program before it may have such a heading, too."""
PLACES = ("train", "dev", "test")


def read_commitpackft(row: Row, place: SetSource) -> Draft:
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


def read_editpackft(row: Row, place: SetSource) -> Draft:
    key = "instruction" if "instruction" in row.values else place.options.instruction
    return commit_of(row, row.text(key), row.text("lang", "Python"))


def _labels(root: Path) -> list[Path]:
    """The table of labels. Raises InputError if it is missing."""
    if not (root / TABLE).is_file():
        raise nothing_there(root, str(TABLE))
    return [root / TABLE]


def _programs(root: Path) -> list[Path]:
    """All files that decide the records."""
    return _labels(root) + sorted(file for file in root.glob("*/*") if file.suffix in ENDINGS)


def read_smelly_code(row: Row, place: SetSource) -> Draft:
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


def read_edit_eval(row: Row, place: SetSource) -> Draft:
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


def read_opencodeedit(row: Row, place: SetSource) -> Draft:
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


def read_rows(row: Row, place: SetSource) -> Draft:
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
