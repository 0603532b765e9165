"""A user's own JSON lines: the keys of a normalized record, of which `instruction` and `before` are needed.

`split` places a row; else the file that is named after a split does. Without an id a row gets one from its content.
"""

from rlvr_exp.core.hashing import content_hash
from rlvr_exp.corpora.edit_sets.draft import INCOMPLETE, Draft, Dropped, Place
from rlvr_exp.corpora.edit_sets.lines import row_files as files
from rlvr_exp.tasks.rows import Row
from rlvr_exp.tasks.tables import OTHER_NAMES

__all__ = ["NAME", "files", "read"]

NAME = "rows"
PLACES = ("train", "dev", "test")


def read(row: Row, place: Place) -> Draft:
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
