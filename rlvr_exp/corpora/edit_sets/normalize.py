"""A line as a normalized record: its set's reader, then the checks that hold for every set, in one order."""

import json
from dataclasses import dataclass, replace
from types import ModuleType

from rlvr_exp.core.errors import InputError
from rlvr_exp.corpora.edit_sets import filters
from rlvr_exp.corpora.edit_sets.draft import INCOMPLETE, NO_TRAINING, UNREADABLE, Draft, Dropped, Place
from rlvr_exp.corpora.edit_sets.languages import canonical
from rlvr_exp.corpora.edit_sets.licences import forbids_training, spdx
from rlvr_exp.corpora.edit_sets.lines import Line
from rlvr_exp.tasks.code_sets import EVALUATION_ONLY
from rlvr_exp.tasks.edit_sets import CANITEDIT
from rlvr_exp.tasks.edits.rows import NormalizedRecord
from rlvr_exp.tasks.rows import Row

NO_INSTRUCTION, NOTHING_BEFORE, NOTHING_AFTER = "no instruction", "nothing before", "nothing after"
UNCHANGED, TOO_LONG, OTHER_LICENCE = "nothing changes", "too long", "its licence is not among prepare.licences"
NO_TEXT = "lone surrogates, which are no text"


@dataclass(frozen=True)
class Normalized:
    """A record, the split that its row demands (empty: drawn), and its row of JSON."""

    record: NormalizedRecord
    split: str
    text: str


def normalize(line: Line, row: Row, reader: ModuleType, place: Place) -> Normalized:
    """The record of a line. Raises Dropped."""
    if line.fault:
        raise Dropped(UNREADABLE, line.fault)
    if line.values.keys() >= CANITEDIT.keys:
        raise Dropped(NO_TRAINING, f"{CANITEDIT.name}: {EVALUATION_ONLY[CANITEDIT.name]}")
    try:
        draft: Draft = reader.read(row, place)
    except InputError as fault:
        raise Dropped(INCOMPLETE, str(fault.problems[0].where).rpartition(", ")[2]) from fault
    record = _checked(draft, reader.NAME, place)
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
        after = None if draft.after is None else filters.without_header(draft.after)
        draft = replace(draft, before=filters.without_header(draft.before), after=after)
    _check_texts(draft.before, draft.after, place)
    if language == "python" and draft.after is not None:
        filters.check(draft.before, draft.after, options)
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
