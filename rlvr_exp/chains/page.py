"""What a chain measured, as a page of Markdown: its links, the rates of each, and where their reports are."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

LESSONS = "What was learned, and what is open: (yours to write)"


def page(links: Sequence[Mapping[str, Any]]) -> str:
    """Of the links that have ended, in order."""
    return "\n".join(["# Chain", "", *_links(links), "", *_rates(links), "", "## Lessons", "", LESSONS, ""])


def _links(links: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from ("| link | status | seconds | steps | report |", "| --- | --- | --- | --- | --- |")
    for one in links:
        summary, folder = one["summary"], one["directory"]
        report = f"[{folder}/report.html]({folder}/report.html)"
        yield f"| {one['name']} | {summary['status']} | {summary['seconds']:.0f} | {summary['steps']} | {report} |"
    yield ""
    yield from (f"    {one['command']}" for one in links)


def _rates(links: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from ("| link | rate | before | after |", "| --- | --- | --- | --- |")
    for one in links:
        before, after = one["summary"]["before"], one["summary"]["after"]
        for name in dict.fromkeys([*before, *after]):
            yield f"| {one['name']} | {name} | {_rate(before.get(name))} | {_rate(after.get(name))} |"


def _rate(rate: Any) -> str:
    if not isinstance(rate, Mapping):
        return ""
    return f"{rate['value']:.1%} [{rate['low']:.1%}, {rate['high']:.1%}], {rate['n']} tasks"
