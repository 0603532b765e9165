"""The ARC corpus: programs, tasks and splits, drawn from the families. Equal code gives equal bytes.

A draw that fails a check gives None, and the builder retries. A family whose styles disagree is a fault and raises. The
small splits are drawn first, `train` last, and no grid, input or output, is in two splits.
"""

import hashlib
import json
import lzma
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations, pairwise
from pathlib import Path
from random import Random
from typing import Any

from rlvr_exp.config.schema import Config
from rlvr_exp.core import files, seeds
from rlvr_exp.domains.arc.generator.families import FAMILIES
from rlvr_exp.domains.arc.generator.family import Bodies, Draw, Grid, GridFamily, Palette, Source
from rlvr_exp.records.context import RunContext

# Shares, counts and sizes. Changing a number here changes the corpus.

SEED = 0
PAIRS = 4
"""Train pairs and the single test pair."""

SPLITS = {"test": 500, "dev": 400, "test_unseen": 200, "train": 12000}
"""Tasks of each split in the order of generation: `train` comes last and avoids the grids of the others."""

TWO_STEP_SHARE = {"test": 0.15, "dev": 0.15, "test_unseen": 0.3, "train": 0.15}
COMPOSITIONS, UNSEEN_COMPOSITIONS = 80, 20
"""Pairs of families composed, in the seen splits and in `test_unseen` alone."""

UNSEEN_FAMILIES = (
    "anti_transpose",
    "mirror_left",
    "crop_bottom",
    "stripe_cols",
    "fold_down_or",
    "spread_last_col",
    "pad_bottom",
    "shift_down",
    "sort_cols",
    "replace_rarest",
    "symmetric_or_ud",
    "odd_cols",
)
"""Families that occur in `test_unseen` alone, singly. Its compositions are new pairs of seen families."""

STYLES_ONE_SHAPE = {"literal": 0.65, "indexed": 0.10, "short": 0.25}
STYLES_MANY_SHAPES = {"indexed": 0.60, "short": 0.40}
"""How demonstrations are written, among the styles that a family has. Hard-coded sizes need inputs of one shape."""

ONE_SHAPE_SHARE = 0.65
SIDES = {2: 1, 3: 8, 4: 5, 5: 1}
"""Weights of a grid's height and of its width."""
OUTPUT_AREA = (4, 48)
MAX_CHARACTERS = {1: 210, 2: 280}
"""Longest program, by number of steps."""

ATTEMPTS, PROBES, TRIES, ALTERNATIVES = 3000, 30, 20, 6
"""Draws of a task, of a composition on trial, of a pair of grids, and of other parameters for an unambiguous task."""
FOREIGN = (IndexError, ValueError, TypeError, KeyError)
"""Faults that a family's program may raise on grids that were drawn for another family."""

# Programs.

Shape = tuple[int, int]
Run = Callable[[Grid], Grid]
SIZES = {"h": "len(g)", "w": "len(g[0])"}


def size_names(body: str) -> list[str]:
    """The names among `h` and `w` that a body reads."""
    return [name for name in SIZES if re.search(rf"\b{name}\b", body)]


def render(bodies: Sequence[str], shapes: Sequence[Shape] | None = None) -> str:
    """The program of one or more steps. `shapes`, one for each step, writes sizes as numbers in place of `len`."""
    lines = ["def solve(g):"]
    known: dict[str, str] = {}
    for step, body in enumerate(bodies):
        values = SIZES if shapes is None else {name: str(n) for name, n in zip(SIZES, shapes[step], strict=True)}
        stale = [name for name in size_names(body) if shapes is None or known.get(name) != values[name]]
        known |= {name: values[name] for name in stale}
        *helpers, result = body.split("\n")
        if stale:
            lines.append(f"    {', '.join(stale)} = {', '.join(values[name] for name in stale)}")
        lines += [f"    {helper}" for helper in helpers]
        lines.append(f"    return {result}" if step == len(bodies) - 1 else f"    g = {result}")
    return "\n".join(lines)


@lru_cache(maxsize=4096)
def load(program: str) -> Run:
    """The function `solve` of a program of this corpus. Only for trusted text: it runs in this process."""
    scope: dict[str, Run] = {}
    exec(compile(program, "<corpus>", "exec"), scope)
    return scope["solve"]


# Tasks.


@dataclass(frozen=True)
class Built:
    """A finished task: the reference program in its style, and PAIRS pairs, the last of which is the test."""

    family: str
    steps: int
    style: str
    program: str
    pairs: tuple[tuple[Grid, Grid], ...]


@dataclass(frozen=True)
class Sizes:
    """The sizes of a corpus' grids."""

    sides: Mapping[int, float]
    """Weights of a grid's height and of its width."""
    area: tuple[int, int]
    """Fewest and most cells of any grid."""

    def show(self, family: GridFamily, h: int, w: int) -> bool:
        """Whether an input of that height and width shows the family well, and its output is not too large."""
        room = family.most_cells * self.area[1] / OUTPUT_AREA[1]
        return family.fits(h, w) and (not room or h * w <= room)

    def draw(self, family: GridFamily, rng: Random) -> Shape:
        while True:
            h, w = rng.choices(list(self.sides), list(self.sides.values()), k=2)
            if self.show(family, h, w):
                return h, w


EMBEDDED = Sizes(SIDES, OUTPUT_AREA)


def between(low: int, high: int) -> Sizes:
    """All sides from low to high equally likely. Outputs have at most twice the cells of the largest input or four times
    those of the smallest, whichever is more, so that every family has inputs."""
    most = max(2 * high * high, 4 * low * low)
    return Sizes(dict.fromkeys(range(low, high + 1), 1), (OUTPUT_AREA[0], most))


@dataclass(frozen=True)
class Trace:
    """The grids of a program's run: the input, then the result of each step."""

    stages: tuple[Grid, ...]

    @property
    def changes(self) -> list[bool]:
        """Whether each step changed its grid, and last whether the complete program did."""
        return [a != b for a, b in (*pairwise(self.stages), (self.stages[0], self.stages[-1]))]


def shape(grid: Grid) -> Shape:
    return len(grid), len(grid[0])


def build(families: Sequence[GridFamily], rng: Random, sizes: Sizes = EMBEDDED) -> Built | None:
    """Draw a task of these steps, or None if this draw is not worth showing."""
    source = max((family.source for family in families), key=lambda source: source.zero)
    palette = source.palette(rng)
    bodies = [family.bodies(Draw(rng, palette)) for family in families]
    runs = [load(_general([body])) for body in bodies]
    one_shape = rng.random() < ONE_SHAPE_SHARE
    size = sizes.draw(families[0], rng)
    pairs: list[Trace] = []
    while len(pairs) < PAIRS:
        pair = _trace(families, runs, source, palette, sizes, size if one_shape else None, rng)
        if pair is None:
            return None
        pairs.append(pair)
    alike = len({shape(pair.stages[0]) for pair in pairs}) == 1
    if (alike and not one_shape) or not _visible(pairs) or not unambiguous(families, bodies, pairs, palette, rng):
        return None
    programs = _programs(bodies, pairs)
    weights = STYLES_ONE_SHAPE if alike else STYLES_MANY_SHAPES
    allowed = [style for style in weights if style in programs]
    style = rng.choices(allowed, [weights[style] for style in allowed])[0]
    if len(programs[style]) > MAX_CHARACTERS[len(families)]:
        return None
    name = "+".join(family.name for family in families)
    return Built(name, len(families), style, programs[style], tuple((p.stages[0], p.stages[-1]) for p in pairs))


def _trace(
    families: Sequence[GridFamily],
    runs: Sequence[Run],
    source: Source,
    palette: Palette,
    sizes: Sizes,
    size: Shape | None,
    rng: Random,
) -> Trace | None:
    for _ in range(TRIES):
        h, w = size or sizes.draw(families[0], rng)
        stages = [source.grid(rng, h, w, palette)]
        for family, run in zip(families, runs, strict=True):
            if not _worthy(stages[-1], sizes.area) or not sizes.show(family, *shape(stages[-1])):
                break
            stages.append(run(stages[-1]))
        else:
            if _worthy(stages[-1], sizes.area):
                return Trace(tuple(stages))
    return None


def _worthy(grid: Grid, area: tuple[int, int]) -> bool:
    """Whether it is at least 2 by 2, within the area, and of more than one colour."""
    low, high = area
    if len(grid) < 2 or len(grid[0]) < 2 or not low <= len(grid) * len(grid[0]) <= high:
        return False
    values = {v for row in grid for v in row}
    return len(values) > 1 and all(0 <= v <= 9 for v in values)


def _visible(pairs: Sequence[Trace]) -> bool:
    """Whether every step changes at least two train grids and the test grid, inputs differ, and outputs are not all
    alike."""
    train, test = zip(*(pair.changes for pair in pairs[:-1]), strict=True), pairs[-1].changes
    inputs, outputs = ({str(pair.stages[i]) for pair in pairs} for i in (0, -1))
    varied = len(inputs) == len(pairs) and len(outputs) >= len(pairs) - 1
    return varied and all(test) and all(sum(step) > 1 for step in train)


def unambiguous(
    families: Sequence[GridFamily], bodies: Sequence[Bodies], pairs: Sequence[Trace], palette: Palette, rng: Random
) -> bool:
    """Whether no other parameters, and no family without parameters, explain the train pairs but differ on the test.

    No single family may explain a complete composition either.
    """
    if len(families) > 1 and any(_explains(run, pairs) for run in _fixed()):
        return False
    draws = [[family.bodies(Draw(rng, palette)) for family in families] for _ in range(ALTERNATIVES)]
    rivals = [load(_general(drawn)) for drawn in draws if drawn != bodies]
    return not any(_explains(run, pairs[:-1]) and not _explains(run, pairs[-1:]) for run in (*rivals, *_fixed()))


def _general(bodies: Sequence[Bodies]) -> str:
    return render([body.short or body.indexed for body in bodies])


@cache
def _fixed() -> tuple[Run, ...]:
    """The families without parameters, as functions."""
    without = (family for family in FAMILIES.values() if family.fixed)
    return tuple(load(_general([family.bodies(Draw(Random(0), ()))])) for family in without)


def _explains(run: Run, pairs: Sequence[Trace]) -> bool:
    try:
        return all(run(pair.stages[0]) == pair.stages[-1] for pair in pairs)
    except FOREIGN:
        return False


def _programs(bodies: Sequence[Bodies], pairs: Sequence[Trace]) -> dict[str, str]:
    """The program in every style that the task allows. Each is checked on all pairs."""
    programs = {}
    if all(body.short for body in bodies):
        programs["short"] = render([body.short for body in bodies])
    if all(body.indexed for body in bodies):
        programs["indexed"] = render([body.indexed for body in bodies])
        shapes = [{shape(pair.stages[i]) for pair in pairs} for i in range(len(bodies))]
        if all(len(found) == 1 for found in shapes):
            programs["literal"] = render([body.indexed for body in bodies], [found.pop() for found in shapes])
    for style, program in programs.items():
        for pair in pairs:
            if load(program)(pair.stages[0]) != pair.stages[-1]:
                raise RuntimeError(f"the {style} style disagrees with the others:\n{program}\non {pair.stages[0]}")
    return programs


# Splits.

Row = dict[str, Any]
Steps = tuple[str, ...]


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Draw the splits and write each compressed, with a manifest of counts and fingerprints.

    The manifest is next to the folder and not in it: every file in the folder is a split. The fingerprint of the content
    outlives a change of the compressor's version.
    """
    options = config.prepare
    folder = Path(options.output or context.directory / "arc")
    grids = between(*options.sides) if options.sides else EMBEDDED
    manifest, counts = {}, {}
    for split, rows in build_splits(
        {name: min(size, options.rows or size) for name, size in SPLITS.items()}, grids
    ).items():
        text = text_of(rows).encode()
        packed = lzma.compress(text, preset=6)
        with files.replacing(folder / f"{split}.jsonl.xz") as temporary:
            temporary.write_bytes(packed)
        manifest[split] = {
            "file_sha256": hashlib.sha256(packed).hexdigest(),
            "content_sha256": hashlib.sha256(text).hexdigest(),
            "tasks": len(rows),
            "styles": dict(sorted(Counter(row["style"] for row in rows).items())),
            "families": dict(sorted(Counter(row["family"] for row in rows).items())),
        }
        counts[f"rows/{split}"] = len(rows)
    files.write_json(folder.with_suffix(".manifest.json"), {"seed": SEED, "splits": manifest})
    return "\n".join([f"written: {folder}", *(f"{name}: {count}" for name, count in counts.items())]), counts


def text_of(rows: Sequence[Row]) -> str:
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def build_splits(sizes: Mapping[str, int], grids: Sizes = EMBEDDED) -> dict[str, list[Row]]:
    """The rows of each split. `sizes` gives the number of tasks of each split, in the order of drawing."""
    seen = [name for name in FAMILIES if name not in UNSEEN_FAMILIES]
    candidates = iter(compositions(seen, seeds.stream("arc", SEED, "compositions")))
    # Only compositions that yield tasks often enough: pairs that undo each other, or equal a family, do not.
    works: list[Steps] = []
    while len(works) < COMPOSITIONS + UNSEEN_COMPOSITIONS:
        steps = next(candidates)
        drawn = [build([FAMILIES[name] for name in steps], seeds.stream("arc", *steps, i)) for i in range(PROBES)]
        if sum(task is not None for task in drawn) > PROBES // 5:
            works.append(steps)
    used: dict[str, str] = {}
    splits: dict[str, list[Row]] = {}
    for split, size in sizes.items():
        singles: list[Steps] = [(name,) for name in (UNSEEN_FAMILIES if split == "test_unseen" else seen)]
        pairs = works[COMPOSITIONS:] if split == "test_unseen" else works[:COMPOSITIONS]
        order = list(_order(split, size, singles, pairs))
        built = [_draw(split, steps, number, used, grids) for steps, number in order]
        seeds.stream("arc", SEED, split, "order").shuffle(built)
        splits[split] = []
        for i, task in enumerate(built):
            pairs_of = [{"input": before, "output": after} for before, after in task.pairs]
            head = {"id": f"{split}-{i:05d}", "family": task.family, "steps": task.steps, "style": task.style}
            splits[split].append({**head, "program": task.program, "train": pairs_of[:-1], "test": pairs_of[-1:]})
    return splits


def compositions(names: Sequence[str], rng: Random) -> list[tuple[str, str]]:
    """Every pair of these families that may be composed, each in one order, in random order."""
    parts = [name for name in names if FAMILIES[name].composable]
    pairs = [(a, b) if rng.random() < 0.5 else (b, a) for a, b in combinations(parts, 2)]
    rng.shuffle(pairs)
    return pairs


def _order(split: str, size: int, singles: Sequence[Steps], pairs: Sequence[Steps]) -> Iterator[tuple[Steps, int]]:
    """Each task's steps and its number among those of the same steps: families balanced to within one task."""
    composed = round(size * TWO_STEP_SHARE[split])
    for group, count in ((singles, size - composed), (pairs, composed)):
        group = sorted(group, key=lambda steps: seeds.uniform("arc", split, *steps))
        yield from ((group[i % len(group)], i // len(group)) for i in range(count))


def _draw(split: str, steps: Steps, number: int, used: dict[str, str], sizes: Sizes) -> Built:
    for attempt in range(ATTEMPTS):
        rng = seeds.stream("arc", SEED, split, *steps, number, attempt)
        task = build([FAMILIES[name] for name in steps], rng, sizes)
        if task is None:
            continue
        shown = [str(grid) for pair in task.pairs for grid in pair]
        if all(used.get(grid, split) == split for grid in shown) and f"{task.pairs}" not in used:
            used.update(dict.fromkeys([*shown, f"{task.pairs}"], split))
            return task
    raise RuntimeError(f"{split}: no task of {'+'.join(steps)} in {ATTEMPTS} draws; give the family richer grids")
