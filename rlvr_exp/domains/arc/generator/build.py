"""Draws the ARC corpus and writes its splits. Equal code gives equal bytes.

The small splits are drawn first, `train` last: no grid, input or output, is in two splits.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from rlvr_exp.config.schema import Config
from rlvr_exp.core import seeds
from rlvr_exp.corpora.splits import Row, sizes, tally, write
from rlvr_exp.domains.arc.generator import mixture
from rlvr_exp.domains.arc.generator.catalogue import FAMILIES
from rlvr_exp.domains.arc.generator.task import EMBEDDED, Built, Sizes, between, build, compositions
from rlvr_exp.records.context import RunContext

ATTEMPTS = 3000
PROBES = 30
Steps = tuple[str, ...]


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Draw the splits and write them."""
    folder = Path(config.prepare.output or context.directory / "arc")
    grids = between(*config.prepare.sides) if config.prepare.sides else EMBEDDED
    splits = build_splits(sizes(config.prepare, mixture.SPLITS), grids)
    return write(folder, splits, _counts, preset=6, seed=mixture.SEED)


def build_splits(sizes: Mapping[str, int], grids: Sizes = EMBEDDED) -> dict[str, list[Row]]:
    """The splits by name, as rows; `sizes` gives the number of tasks of each, in the order of drawing."""
    singles, pairs = _plan()
    used: dict[str, str] = {}
    splits = {}
    for split, size in sizes.items():
        kind = split == "test_unseen"
        order = list(_order(split, size, singles[kind], pairs[kind]))
        built = [_draw(split, steps, number, used, grids) for steps, number in order]
        seeds.stream("arc", mixture.SEED, split, "order").shuffle(built)
        splits[split] = [_row(f"{split}-{i:05d}", task) for i, task in enumerate(built)]
    return splits


def _plan() -> tuple[dict[bool, list[Steps]], dict[bool, list[Steps]]]:
    """Families, and compositions, for seen (False) and unseen (True) splits."""
    seen = [name for name in FAMILIES if name not in mixture.UNSEEN_FAMILIES]
    candidates = compositions(seen, seeds.stream("arc", mixture.SEED, "compositions"))
    works: list[Steps] = list(islice(filter(_works, candidates), mixture.COMPOSITIONS + mixture.UNSEEN_COMPOSITIONS))
    singles: dict[bool, list[Steps]] = {
        False: [(name,) for name in seen],
        True: [(name,) for name in mixture.UNSEEN_FAMILIES],
    }
    return singles, {False: works[: mixture.COMPOSITIONS], True: works[mixture.COMPOSITIONS :]}


def _works(steps: Steps) -> bool:
    """Whether a composition yields tasks often enough: pairs that undo each other, or equal a family, do not."""
    probes = (build([FAMILIES[name] for name in steps], seeds.stream("arc", *steps, i)) for i in range(PROBES))
    return sum(probe is not None for probe in probes) > PROBES // 5


def _order(split: str, size: int, singles: Sequence[Steps], pairs: Sequence[Steps]) -> Iterator[tuple[Steps, int]]:
    """Each task's steps and its number among those of the same steps: families balanced to within one task."""
    composed = round(size * mixture.TWO_STEP_SHARE[split])
    for group, count in ((singles, size - composed), (pairs, composed)):
        group = sorted(group, key=lambda steps: seeds.uniform("arc", split, *steps))
        yield from ((group[i % len(group)], i // len(group)) for i in range(count))


def _draw(split: str, steps: Steps, number: int, used: dict[str, str], sizes: Sizes) -> Built:
    for attempt in range(ATTEMPTS):
        rng = seeds.stream("arc", mixture.SEED, split, *steps, number, attempt)
        task = build([FAMILIES[name] for name in steps], rng, sizes)
        if task is None:
            continue
        shown = [str(grid) for pair in task.pairs for grid in pair]
        if all(used.get(grid, split) == split for grid in shown) and f"{task.pairs}" not in used:
            used.update(dict.fromkeys([*shown, f"{task.pairs}"], split))
            return task
    raise RuntimeError(f"{split}: no task of {'+'.join(steps)} in {ATTEMPTS} draws; give the family richer grids")


def _row(name: str, task: Built) -> Row:
    pairs = [{"input": before, "output": after} for before, after in task.pairs]
    head = {"id": name, "family": task.family, "steps": task.steps, "style": task.style, "program": task.program}
    return head | {"train": pairs[:-1], "test": pairs[-1:]}


def _counts(rows: Sequence[Row]) -> dict[str, Any]:
    return {"tasks": len(rows), "styles": tally(rows, "style"), "families": tally(rows, "family")}
