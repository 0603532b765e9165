"""A line of a raw set as a normalized record: its set's reader makes a draft, and then come the checks of every set.

The filters for Python are those that EditPackFT published (its filter.py), each an option, in its order. One difference: rows
that differ only in the header are dropped as edits of nothing. There, they have a distance below 10.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rapidfuzz.distance import Levenshtein

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.edits.ingest.lines import Line, row_files
from rlvr_exp.domains.edits.options import EditSets
from rlvr_exp.domains.edits.reading import LANGUAGES
from rlvr_exp.domains.edits.rows import NormalizedRecord
from rlvr_exp.tasks.code_sets import EVALUATION_ONLY
from rlvr_exp.tasks.edit_sets import CANITEDIT
from rlvr_exp.tasks.python_syntax import syntax_fault
from rlvr_exp.tasks.rows import Row

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
        reason: one of few, by which lines are counted.
        detail: what is wrong with this line.
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
    """Where it comes from, where rows name it; empty: the set."""
    split: str = ""
    """The split that its set or its row demands; empty: drawn."""


@dataclass(frozen=True)
class Place:
    """Where a set is, and the options that readers read."""

    root: Path
    options: EditSets


@dataclass(frozen=True)
class SetReader:
    """A set of edits that can be read."""

    name: str
    read: Callable[[Row, Place], Draft]
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
    """A licence's name in SPDX's spelling; empty where the set says that it is unknown, as given where SPDX is not known."""
    return _CANONICAL.get(licence.strip().lower(), licence.strip())


def forbids_training(source: str, licence: str) -> str:
    """The words of a source's or a licence's name that forbid training; empty where none do."""
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


def _check_filters(before: str, after: str, options: EditSets) -> None:
    """Raises Dropped where a filter that is on does not let an edit of Python pass."""
    for word in options.forbidden:
        if word in after or word.lower() in after:
            raise Dropped(FORBIDDEN, word)
    least = options.min_distance
    if least and Levenshtein.distance(before, after, score_cutoff=least) < least:
        raise Dropped(SMALL, f"fewer than {least} characters")
    if options.must_parse and syntax_fault(after) is not None:
        raise Dropped(NO_PYTHON)


@dataclass(frozen=True)
class Normalized:
    """A record, the split that its row demands (empty: drawn), and its row of JSON."""

    record: NormalizedRecord
    split: str
    text: str


def normalize(line: Line, row: Row, reader: SetReader, place: Place) -> Normalized:
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


def _checked(draft: Draft, name: str, place: Place) -> NormalizedRecord:
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
    _check_texts(draft.before, draft.after, place)
    if language == "python" and draft.after is not None:
        _check_filters(draft.before, draft.after, options)
    return NormalizedRecord(
        f"{name}/{draft.id}",
        source,
        language,
        draft.instruction,
        draft.before,
        draft.after,
        draft.tests,
        licence,
        draft.metadata,
    )


def _check_texts(before: str, after: str | None, place: Place) -> None:
    options = place.options
    if not before.strip() and (after is None or not options.keep_empty):
        raise Dropped(NOTHING_BEFORE)
    if after is not None and not after.strip() and not options.keep_empty:
        raise Dropped(NOTHING_AFTER)
    if before == after:
        raise Dropped(UNCHANGED)
    if (longest := max(len(before), len(after or ""))) > options.max_characters:
        raise Dropped(TOO_LONG, f"{longest} characters")
