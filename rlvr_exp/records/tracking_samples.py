"""A few samples of a step as a table for viewers: the highest and the lowest reward, and some at random.

The rollouts hold all of them; the selection depends on the run's seed alone.
"""

from collections.abc import Sequence

from rlvr_exp.core.seeds import derive
from rlvr_exp.records.rollout_files import RolloutRow, to_row

COLUMNS = ("task", "group", "sample", "outcome", "bucket", "reward", "prompt", "completion", "log")
MOST_TEXT = 2000
"""Characters of a text that are shown."""


def table(rows: Sequence[RolloutRow], count: int, seed: int) -> list[list[object]]:
    """At most `count` samples, a row of COLUMNS each."""
    return [[_cell(row[name]) for name in COLUMNS] for row in map(to_row, chosen(rows, count, seed))]


def chosen(rows: Sequence[RolloutRow], count: int, seed: int) -> list[RolloutRow]:
    """The highest reward, the lowest reward, then others at random; ties are broken at random too."""
    mixed = sorted(rows, key=lambda row: derive(seed, "samples", row.step, row.group, row.completion.sample))
    paid = sorted((row for row in mixed if row.reward is not None), key=lambda row: row.reward or 0.0)
    wanted = [*paid[-1:], *paid[:1], *mixed]
    found: dict[tuple[int, int], RolloutRow] = {}
    for row in wanted:
        found.setdefault((row.group, row.completion.sample), row)
    return list(found.values())[:count]


def _cell(value: object) -> object:
    if isinstance(value, str) and len(value) > MOST_TEXT:
        return f"{value[:MOST_TEXT]} [... {len(value) - MOST_TEXT} characters more]"
    return "" if value is None else value
