"""The tables that a stage prints and keeps as `STAGE.md`, as HTML. Knows pipe tables and lines of text, no more."""

import re
from collections.abc import Sequence
from html import escape
from itertools import groupby

from rlvr_exp.report.data import RunData

TITLES = {
    "compare": "Comparison",
    "rescore": "Old verdicts against new ones",
    "replay": "Repeated against logged",
    "validate": "Whether tasks can be trusted",
    "solutions": "Solutions",
    "benchmark": "Measured",
}
"""Stages whose result is such a file, and its title on the page."""


def results(run: RunData) -> tuple[str, str]:
    """(title, HTML) of the run's own file; '' of a run without one."""
    stage = str(run.config.get("stage"))
    path = run.directory / f"{stage}.md"
    if stage not in TITLES or not path.is_file():
        return "", ""
    return TITLES[stage], as_html(path.read_text(encoding="utf-8"))


def as_html(text: str) -> str:
    """Tables, and the lines between them."""
    parts = []
    for is_table, lines in groupby(text.splitlines(), lambda line: line.startswith("|")):
        shown = [line for line in lines if line.strip()]
        parts.append(_table(shown) if is_table else _text(shown))
    return "".join(parts)


def _text(lines: Sequence[str]) -> str:
    return f'<p class="reason">{escape(chr(10).join(lines))}</p>' if lines else ""


def _table(lines: Sequence[str]) -> str:
    head, *body = [_cells(line) for line in lines if not re.fullmatch(r"[|:\- ]+", line)]
    heads = "".join(f"<th>{cell}</th>" for cell in head)
    rows = "".join(f"<tr><th>{first}</th>{''.join(f'<td>{c}</td>' for c in rest)}</tr>" for first, *rest in body)
    return f'<div class="wide"><table><tr>{heads}</tr>{rows}</table></div>'


def _cells(line: str) -> list[str]:
    return [escape(cell.strip().replace("\\|", "|")) for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
