"""The tables that a stage prints and keeps as `STAGE.md`, as HTML. Knows pipe tables, headings, links and lines of text, no more."""

import re
from collections.abc import Sequence
from html import escape
from itertools import groupby

from rlvr_exp.report.data import RunData

TITLES = {
    "compare": "Comparison",
    "rescore": "Old verdicts against new ones",
    "validate": "Whether tasks can be trusted",
    "solutions": "Solutions",
    "benchmark": "Measured",
    "chain": "Links",
    "study": "Answer",
}
"""Stages whose result is such a file, and its title on the page."""
_LINK = re.compile(r"\[([^]]+)\]\(([\w./%-]+)\)")
"""To a file below the page."""


def results(run: RunData) -> tuple[str, str]:
    """(title, HTML) of the run's own file, below its picture `STAGE.svg`; '' of a run without one."""
    stage = str(run.config.get("stage"))
    path = run.directory / f"{stage}.md"
    if stage not in TITLES or not path.is_file():
        return "", ""
    picture = run.directory / f"{stage}.svg"
    drawn = f'<div class="wide">{picture.read_text(encoding="utf-8")}</div>' if picture.is_file() else ""
    return TITLES[stage], drawn + as_html(path.read_text(encoding="utf-8"))


def as_html(text: str) -> str:
    """Tables, and the lines between them."""
    parts = []
    for is_table, lines in groupby(text.splitlines(), lambda line: line.startswith("|")):
        shown = [line for line in lines if line.strip()]
        parts.append(_table(shown) if is_table else _text(shown))
    return "".join(parts)


def _text(lines: Sequence[str]) -> str:
    parts = [(head, list(some)) for head, some in groupby(lines, lambda line: line.startswith("#"))]
    return "".join(
        _headings(some) if head else f'<p class="reason">{escape(chr(10).join(some))}</p>' for head, some in parts
    )


def _headings(lines: Sequence[str]) -> str:
    """Those below the first rank: the page has a title of its own."""
    return "".join(f"<h3>{escape(line.lstrip('# '))}</h3>" for line in lines if line.startswith("##"))


def _table(lines: Sequence[str]) -> str:
    head, *body = [_cells(line) for line in lines if not re.fullmatch(r"[|:\- ]+", line)]
    heads = "".join(f"<th>{cell}</th>" for cell in head)
    rows = "".join(f"<tr><th>{first}</th>{''.join(f'<td>{c}</td>' for c in rest)}</tr>" for first, *rest in body)
    return f'<div class="wide"><table><tr>{heads}</tr>{rows}</table></div>'


def _cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip())[1:-1]
    return [_LINK.sub(r'<a href="\2">\1</a>', escape(cell.strip().replace("\\|", "|"))) for cell in cells]
