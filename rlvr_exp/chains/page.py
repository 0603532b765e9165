"""What a chain measured, as a page of Markdown: its links, their data and options, the rates and checkpoints of each, and a place
for what a person learned. The chain's report shows the same, with the curves of the links that trained."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rlvr_exp.config.scales import counted
from rlvr_exp.report.page import ABSENT, differences

LESSONS = "## Lessons"
EMPTY = "What was learned, and what is open: (yours to write; what stands here is kept)"
COUNTED = ("collect", "prepare")
"""Stages whose metrics count data."""
NOT_DATA = ("system/", "time/")
CHAINS_OWN = ("run.resume",)
"""Options that the chain itself gives a link."""
Link = Mapping[str, Any]


def page(root: Path, links: Sequence[Link], written: str = "") -> str:
    """
    Args:
        root: the chain's directory.
        links: those that have ended, in order.
        written: the page as it stands, whose lessons are kept.
    """
    parts = {
        "# Chain": _table(("link", "status", "seconds", "steps", "report"), map(_link, links)),
        "## Commands": [f"    {one['command']}" for one in links],
        "## Data": _table(("link", "data", "counts"), (row for one in links for row in _data(root, one))),
        "## Options that differ from the defaults of their stage": _table(
            ("link", "option", "here", "default"), (row for one in links for row in _options(root, one))
        ),
        "## Rates": _table(("link", "rate", "before", "after"), (row for one in links for row in _rates(one))),
        "## Checkpoints": _table(("link", "best", "latest"), (row for one in links for row in _checkpoints(root, one))),
    }
    shown = [line for title, lines in parts.items() if lines for line in (title, "", *lines, "")]
    return "\n".join([*shown, LESSONS, *(written.partition(LESSONS)[2] or f"\n\n{EMPTY}\n").split("\n")[1:]])


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """No lines without rows."""
    body = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}", *body] if body else []


def _link(one: Link) -> tuple[str, ...]:
    summary, report = one["summary"], f"{one['directory']}/report.html"
    return one["name"], summary["status"], f"{summary['seconds']:.0f}", str(summary["steps"]), f"[{report}]({report})"


def _data(root: Path, one: Link) -> Iterator[tuple[str, ...]]:
    config, summary = _config(root, one), one["summary"]
    if summary["stage"] in COUNTED:
        place = config[summary["stage"]].get("output") or ""
        metrics = {name: n for name, n in summary["metrics"].items() if isinstance(n, int | float)}
        counts = {name.rpartition("/")[2]: n for name, n in metrics.items() if not name.startswith(NOT_DATA)}
    else:
        place = (config.get("data") or {}).get("path") or "embedded"
        splits = _json(root / one["directory"] / "manifest.json").get("data") or {}
        counts = {split: found["tasks"] for split, found in splits.items()}
    if counts:
        yield one["name"], place, ", ".join(f"{n:,} {name}" for name, n in counts.items())


def _options(root: Path, one: Link) -> Iterator[tuple[str, ...]]:
    for key, values in differences(_config(root, one)).items():
        if key not in CHAINS_OWN and ABSENT not in values:
            yield (
                one["name"],
                key,
                *(value if isinstance(value, str) and value else json.dumps(value) for value in values),
            )


def _rates(one: Link) -> Iterator[tuple[str, ...]]:
    before, after = one["summary"]["before"], one["summary"]["after"]
    for name in dict.fromkeys([*before, *after]):
        yield one["name"], name, _rate(before.get(name)), _rate(after.get(name))


def _rate(rate: Any) -> str:
    if not isinstance(rate, Mapping):
        return ""
    return f"{rate['value']:.1%} [{rate['low']:.1%}, {rate['high']:.1%}], {counted(rate['n'])}"


def _checkpoints(root: Path, one: Link) -> Iterator[tuple[str, ...]]:
    folder = root / one["directory"] / "checkpoints"
    found = [folder / name for name in ("best", "latest")]
    if folder.is_dir():
        yield (
            one["name"],
            *(f"{one['directory']}/checkpoints/{path.resolve().name}" if path.exists() else "" for path in found),
        )


def _config(root: Path, one: Link) -> dict[str, Any]:
    return yaml.safe_load((root / one["directory"] / "config.yaml").read_text(encoding="utf-8"))


def _json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
