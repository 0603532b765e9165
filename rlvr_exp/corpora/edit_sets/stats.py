"""Counts of rows, from the index, and the page `stats.md` of them."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_exp.corpora.edit_sets.placing import RANKED

GB = 1e9
_KEPT = """
SELECT split_of.split, source, count(*), sum(characters), sum(tokens), sum(bytes), sum(answered), sum(tested)
FROM rows JOIN (SELECT n, split FROM placed WHERE reason = '') AS split_of USING (n)
GROUP BY split_of.split, source ORDER BY split_of.split, source
"""
_NAMES = ("split", "source", "records", "characters", "tokens", "bytes", "with_after", "with_tests")
_BY = "SELECT {0}, count(*) FROM rows JOIN placed USING (n) WHERE reason = '' GROUP BY {0} ORDER BY count(*) DESC, {0}"
_REASONS = """
SELECT reason, count(*) FROM (SELECT reason FROM dropped UNION ALL SELECT reason FROM placed WHERE reason != '')
GROUP BY reason ORDER BY count(*) DESC, reason
"""
_GROUPS = "SELECT count(DISTINCT root), coalesce(max(size), 0) FROM (SELECT root, count(*) AS size FROM grouped GROUP BY root)"


def counts_of(db: sqlite3.Connection) -> dict[str, Any]:
    """All counts, in values of JSON."""
    kept = [dict(zip(_NAMES, row, strict=True)) for row in db.execute(_KEPT)]
    kept.sort(key=lambda row: (RANKED.index(row["split"]), row["source"]))
    groups, largest = db.execute(_GROUPS).fetchone()
    read = db.execute("SELECT (SELECT count(*) FROM rows) + (SELECT count(*) FROM dropped)").fetchone()[0]
    return {
        "lines": read,
        "records": sum(row["records"] for row in kept),
        "splits": kept,
        "dropped": dict(db.execute(_REASONS).fetchall()),
        "groups": groups,
        "largest_group": largest,
    }


def tally(db: sqlite3.Connection, column: str) -> dict[str, int]:
    """Records by the values of a column, the most frequent first."""
    return dict(db.execute(_BY.format(column)).fetchall())


def page(counts: Mapping[str, Any], languages: Mapping[str, int], licences: Mapping[str, int], held_out: int) -> str:
    """The page, in Markdown."""
    kept, dropped = counts["splits"], counts["dropped"]
    size = sum(row["bytes"] for row in kept)
    head = ("split", "source", "records", "characters", "tokens", "GB", "with a text after", "with tests")
    rows = [
        (row["split"], row["source"], *_numbers(row), f"{row['bytes'] / GB:.6f}", row["with_after"], row["with_tests"])
        for row in kept
    ]
    total = {name: sum(row[name] for row in kept) for name in _NAMES[2:]}
    rows.append(("all", "", *_numbers(total), f"{size / GB:.6f}", total["with_after"], total["with_tests"]))
    lines = [
        "# Normalized edits",
        "",
        f"{counts['lines']} lines read, {counts['records']} records kept. Every record has an id, a source, a language, an "
        "instruction and a text before.",
        f"{counts['groups']} groups of alike rows, the largest of {counts['largest_group']}. "
        + (f"{held_out} held-out tasks share no content with them." if held_out else "No set was held out."),
        "",
        *table(head, rows),
        "",
        *table(("dropped because of", "lines"), dropped.items()),
        "",
        *table(("language", "records"), languages.items()),
        "",
        *table(("licence", "records"), ((name or "not named", count) for name, count in licences.items())),
    ]
    return "\n".join(lines)


def _numbers(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["records"], row["characters"], row["tokens"] or "not counted"


def table(head: Sequence[str], rows: Any) -> list[str]:
    """Lines of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]
