"""A problem's answer for a person on a terminal: outputs and critiques by stage, the chosen program, tests with what they catch."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rlvr_exp.inference.summary import MOST_LINES, head, reason

WIDTH = 56
"""Characters of the column of outputs; critiques stand right of it."""
MOST_TESTS = 24


def readable_problem(row: Mapping[str, Any]) -> str:
    """The result in a line, then the stages with the critique beside each output, then tests against all samples."""
    first = head(row)
    if len(row["samples"]) > 1:
        first += f", sample {row['sample'] + 1} of {len(row['samples'])}"
    if row["pass_rate"] is not None:
        first += f", passes {row['pass_rate']:.0%} of the valid tests"
    why = reason(row)
    parts = [first, *_stages(row), *([f"    -> {why}"] if why else []), *_tests(row), *_samples(row["samples"])]
    return "\n".join(parts)


def _stages(row: Mapping[str, Any]) -> Iterator[str]:
    for stage, output in row["stages"].items():
        yield f"    [{stage}]"
        left = _wrapped(output, WIDTH)
        right = _wrapped(row.get("critiques", {}).get(stage, ""), WIDTH)
        for place in range(max(len(left), len(right))):
            said = right[place] if place < len(right) else ""
            shown = left[place] if place < len(left) else ""
            yield f"    {shown:<{WIDTH}} | {said}".rstrip() if right else f"    {shown}"


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most so many characters, none of an empty text; long texts are cut after MOST_LINES of them."""
    if not text:
        return []
    lines = [part for line in text.rstrip("\n").split("\n") for part in textwrap.wrap(line, width, **_KEEP) or [""]]
    return lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], f"[{len(lines) - MOST_LINES} more lines]"]


_KEEP: Mapping[str, Any] = {"drop_whitespace": False, "replace_whitespace": False, "subsequent_indent": "  "}


def _tests(row: Mapping[str, Any]) -> Iterator[str]:
    tests = row.get("tests", [])
    if tests:
        yield f"    [tests] {len(row['written'])} sets, {row['validity']:.0%} of their lines are valid"
    for one in tests[:MOST_TESTS]:
        catches = ", ".join(str(place + 1) for place in one["catches"])
        mark = f"catches {catches}" if catches else "catches none" if one["valid"] else "invalid"
        yield f"    {one['text']}    {mark}"
    if len(tests) > MOST_TESTS:
        yield f"    [{len(tests) - MOST_TESTS} more tests]"


def _samples(samples: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Of each sample what it passes, where there are several."""
    for number, one in enumerate(samples, 1) if len(samples) > 1 else ():
        rate = f"{one['pass_rate']:.0%} of the valid tests" if one["pass_rate"] is not None else "no tests"
        yield f"    sample {number}: {rate}, hidden tests {one['outcome'] or 'not run'}"
