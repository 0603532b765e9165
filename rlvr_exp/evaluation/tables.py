"""Tables of rates and differences in Markdown, aligned so that they read as text too."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_exp.core.measures import scale_of
from rlvr_exp.evaluation.arms import Arm
from rlvr_exp.evaluation.paired import in_words

ABSENT = "(absent)"


def rows_of(columns: Sequence[Mapping[str, Any]], only_differing: bool) -> dict[str, list[Any]]:
    """By key, the value of each column; `only_differing`: keys in which columns differ."""
    rows: dict[str, list[Any]] = {}
    for key in dict.fromkeys(key for column in columns for key in column):
        values = [column.get(key, ABSENT if only_differing else None) for column in columns]
        if not only_differing or any(_typed(value) != _typed(values[0]) for value in values):
            rows[key] = values
    return rows


def _typed(value: Any) -> str:
    """A text that distinguishes types too: true is not 1."""
    return json.dumps(value, sort_keys=True, default=str)


def table(title: str, rows: Mapping[str, Sequence[Any]], heads: Sequence[str]) -> str:
    """A row of values for each name, in the order of the heads."""
    if not rows:
        return f"{title}: none\n"
    cells = [
        ["", *map(_cell, heads)],
        *([key, *(_cell(value, key) for value in values)] for key, values in rows.items()),
    ]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in cells
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([f"{title}\n", lines[0], rule, *lines[1:], ""])


def arms_table(arms: Sequence[Arm], findings: bool = True) -> str:
    """A column for each arm, and what they found, in words; '' where none was measured."""
    if not any(arm.rates for arm in arms):
        return ""
    rows: dict[str, list[Any]] = {"seeds": [", ".join(map(str, arm.seeds)) for arm in arms]}
    against = f"against {arms[0].name}/"
    parts = ("", [arm.rates for arm in arms]), ("change/", [arm.change for arm in arms])
    for before, of_arms in (*parts, (against, [arm.against_first for arm in arms])):
        for key in dict.fromkeys(key for of_arm in of_arms for key in of_arm):
            rows[f"{before}{key}"] = [of_arm.get(key) for of_arm in of_arms]
    shown = table("Seeds pooled, with 95% intervals over seeds and tasks", rows, [arm.name for arm in arms])
    if not findings:
        return shown
    found = [f"{metric}: {words}" for arm in arms for metric, words in arm.findings.items()]
    return "\n".join([shown, *found, ""]) if found else shown


def _cell(value: Any, key: str = "") -> str:
    """`key`: of its row; it ends with the metric's name."""
    if value is None:
        return "-"
    if isinstance(value, dict) and {"value", "low", "high"} <= value.keys():
        return _interval(value, key.rpartition("/")[2])
    if isinstance(value, float):
        return f"{value:.6g}"
    return (value if isinstance(value, str) else json.dumps(value, default=str)).replace("|", "\\|").replace("\n", " ")


def _interval(value: Mapping[str, Any], metric: str) -> str:
    if "won" in value:
        return in_words(value, metric)
    scale = scale_of(metric)
    low, high = (scale.number(value[key]) for key in ("low", "high"))
    each = value.get("of_seeds", ())
    spread = f", seeds {scale.number(min(each))} to {scale.number(max(each))}" if len(each) > 1 else ""
    return f"{scale.shown(value['value'])} [{low}, {high}] n={value.get('n', '?')}{spread}"
