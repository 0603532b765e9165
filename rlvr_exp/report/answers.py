"""The answers of +stage=infer: a line for each task, which opens to the program and the verifier's log."""

import json
from collections.abc import Iterator, Mapping
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any

from rlvr_exp.report import chain
from rlvr_exp.report.curves import words
from rlvr_exp.report.data import RunData

MOST, MOST_OPEN, MOST_CHARACTERS = 200, 3, 4000
"""Answers, those that are shown open, and characters of a text."""


def answers_section(run: RunData) -> str:
    """'' for a run of another stage, or where its file of answers is gone."""
    named = Path(str(run.manifest.get("output", "")))
    places = (named, run.directory / named.name)  # The run may have been moved, or written by another folder.
    path = next((place for place in places if place.is_file()), None)
    if run.config.get("stage") != "infer" or path is None:
        return ""
    rows = list(islice(_rows(path), MOST))
    items = "".join(f"<li>{_answer(row, number < MOST_OPEN)}</li>" for number, row in enumerate(rows))
    source = (run.manifest.get("input") or {}).get("source", "")
    first = f"The first {MOST:,} answers" if len(rows) == MOST else f"{len(rows):,} answers"
    note = f'<p class="note">{first}, of {escape(str(source))}; all are in {escape(str(path))}.</p>'
    return f'{note}<ul class="logs">{items}</ul>' if rows else ""


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """Complete lines; the last one of a run that still goes may be torn."""
    with open(path, encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.endswith("\n"))


def _answer(row: Mapping[str, Any], shown: bool) -> str:
    outcome = row["outcome"] or "not judged"
    cases = f"{row['passed']:,} of {row['total']:,}" if row["total"] else ""
    tries = f"attempt {row['attempt']} of {row['attempts']}" if row["attempts"] > 1 else ""
    facts = ", ".join(filter(None, (cases, tries, f"{row['tokens']:,} tokens")))
    text = row["formatted"] or row["program"] or row["text"] or "(empty)"
    why = "" if row["outcome"] == "passed" else row["fault"] or row["log"] or ""
    log = f'<div class="log"><pre>{escape(why[:MOST_CHARACTERS])}</pre></div>' if why.strip() else ""
    return (
        f'<details{" open" if shown else ""}><summary><b>{escape(str(row["id"]))}</b> <span class="verdict {escape(outcome)}">'
        f"{escape(words(row['bucket'] or row['rule'] or outcome))}</span> <small>{facts}</small></summary>"
        f"{_shown(row, text)}{log}{_vote(row)}</details>"
    )


def _shown(row: Mapping[str, Any], text: str) -> str:
    """The answer, or how it came to be where that is known."""
    return chain.worked_out(row) if row.get("stages") else f"<pre>{escape(text[:MOST_CHARACTERS])}</pre>"


def _vote(row: Mapping[str, Any]) -> str:
    """A row for each answer of the vote; '' where there was none."""
    cells = [
        (f"{number:,}", f"{place:,}", f"{one['votes']:,}", f"{one['shown_right']:.0%}", json.dumps(one["output"]))
        for number, answers in enumerate((row.get("voted") or {}).get("answers", ()), 1)
        for place, one in enumerate(answers, 1)
    ]
    if not cells:
        return ""
    names = ("held-back input", "answer", "votes", "shown pairs right", "output")
    heads = "".join(f"<th>{name}</th>" for name in names)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell[:MOST_CHARACTERS])}</td>' for cell in line)}</tr>" for line in cells
    )
    return f'<div class="wide"><table><tr>{heads}</tr>{rows}</table></div>'
