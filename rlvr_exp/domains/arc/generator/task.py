"""One task: parameters, grids, gold program, and the checks that make it worth solving.

A draw that fails a check gives None, and the builder retries; a family whose styles disagree is a fault and raises.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from random import Random

from rlvr_exp.domains.arc.generator import mixture
from rlvr_exp.domains.arc.generator.catalogue import FAMILIES
from rlvr_exp.domains.arc.generator.compose import Run, Shape, load, render
from rlvr_exp.domains.arc.generator.family import Bodies, GridFamily
from rlvr_exp.domains.arc.generator.sampling import Draw, Grid, Palette, Source

TRIES = 20
ALTERNATIVES = 6
FOREIGN = (IndexError, ValueError, TypeError, KeyError)
"""What a family's program may raise on grids that were drawn for another family."""


@dataclass(frozen=True)
class Built:
    """A finished task: the gold program in its chosen style, and PAIRS pairs, the last of which is the test."""

    family: str
    steps: int
    style: str
    program: str
    pairs: tuple[tuple[Grid, Grid], ...]


@dataclass(frozen=True)
class Sizes:
    """Which grids a corpus has."""

    sides: Mapping[int, float]
    """Weights of a grid's height and of its width."""
    area: tuple[int, int]
    """Fewest and most cells of any grid."""

    def show(self, family: GridFamily, h: int, w: int) -> bool:
        """Whether an input of that height and width shows the family well, and its output is not too large."""
        room = family.most_cells * self.area[1] / mixture.OUTPUT_AREA[1]
        return family.fits(h, w) and (not room or h * w <= room)


EMBEDDED = Sizes(mixture.SIDES, mixture.OUTPUT_AREA)


def between(low: int, high: int) -> Sizes:
    """All sides from low to high equally likely; of outputs the larger of twice the largest input and four times the
    smallest, so that there are inputs for every family."""
    most = max(2 * high * high, 4 * low * low)
    return Sizes(dict.fromkeys(range(low, high + 1), 1), (mixture.OUTPUT_AREA[0], most))


@dataclass(frozen=True)
class Trace:
    """The grids a program goes through: the input, then the result of each step."""

    stages: tuple[Grid, ...]

    @property
    def changes(self) -> list[bool]:
        """Whether each step changed its grid, and last whether the complete program did."""
        return [a != b for a, b in (*pairwise(self.stages), (self.stages[0], self.stages[-1]))]


def shape(grid: Grid) -> Shape:
    return len(grid), len(grid[0])


def build(families: Sequence[GridFamily], rng: Random, sizes: Sizes = EMBEDDED) -> Built | None:
    """Draw a task of these steps, or None when this draw is not worth showing."""
    source = max((family.source for family in families), key=lambda source: source.zero)
    palette = source.palette(rng)
    bodies = [family.bodies(Draw(rng, palette)) for family in families]
    pairs = _pairs(families, bodies, source, palette, sizes, rng)
    if pairs is None or not _visible(pairs) or not unambiguous(families, bodies, pairs, palette, rng):
        return None
    styles = _programs(bodies, pairs)
    style = _style(styles, pairs, rng)
    if len(styles[style]) > mixture.MAX_CHARACTERS[len(families)]:
        return None
    name = "+".join(family.name for family in families)
    return Built(name, len(families), style, styles[style], tuple((p.stages[0], p.stages[-1]) for p in pairs))


def _pairs(
    families: Sequence[GridFamily],
    bodies: Sequence[Bodies],
    source: Source,
    palette: Palette,
    sizes: Sizes,
    rng: Random,
) -> list[Trace] | None:
    runs = [load(_general([body])) for body in bodies]
    one_shape = rng.random() < mixture.ONE_SHAPE_SHARE
    size = _shape(families[0], sizes, rng)
    pairs: list[Trace] = []
    while len(pairs) < mixture.PAIRS:
        pair = _trace(families, runs, source, palette, sizes, size if one_shape else None, rng)
        if pair is None:
            return None
        pairs.append(pair)
    shapes = {shape(pair.stages[0]) for pair in pairs}
    return pairs if one_shape or len(shapes) > 1 else None


def _shape(family: GridFamily, sizes: Sizes, rng: Random) -> Shape:
    while True:
        h, w = rng.choices(list(sizes.sides), list(sizes.sides.values()), k=2)
        if sizes.show(family, h, w):
            return h, w


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
        h, w = size or _shape(families[0], sizes, rng)
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
    """Rectangular, at least 2 by 2, within the area, and of more than one colour."""
    low, high = area
    if len(grid) < 2 or len(grid[0]) < 2 or not low <= len(grid) * len(grid[0]) <= high:
        return False
    values = {v for row in grid for v in row}
    return len(values) > 1 and all(0 <= v <= 9 for v in values)


def _visible(pairs: Sequence[Trace]) -> bool:
    """Every step changes at least two train grids and the test grid; inputs differ, outputs are not all alike."""
    train, test = zip(*(pair.changes for pair in pairs[:-1]), strict=True), pairs[-1].changes
    inputs, outputs = ({str(pair.stages[i]) for pair in pairs} for i in (0, -1))
    varied = len(inputs) == len(pairs) and len(outputs) >= len(pairs) - 1
    return varied and all(test) and all(sum(step) > 1 for step in train)


def unambiguous(
    families: Sequence[GridFamily], bodies: Sequence[Bodies], pairs: Sequence[Trace], palette: Palette, rng: Random
) -> bool:
    """No other parameters, and no family without parameters, explain the train pairs but differ on the test.

    For a composition, no single family may explain the complete task either.
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
    """The program in every style the task allows, all of them checked on all pairs."""
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


def _style(programs: dict[str, str], pairs: Sequence[Trace], rng: Random) -> str:
    one_shape = len({shape(pair.stages[0]) for pair in pairs}) == 1
    weights = mixture.STYLES_ONE_SHAPE if one_shape else mixture.STYLES_MANY_SHAPES
    allowed = [style for style in weights if style in programs]
    return rng.choices(allowed, [weights[style] for style in allowed])[0]


def compositions(names: Sequence[str], rng: Random) -> list[tuple[str, str]]:
    """Every pair of these families that may be composed, each in one order, in random order."""
    parts = [name for name in names if FAMILIES[name].composable]
    pairs = [(a, b) if rng.random() < 0.5 else (b, a) for a, b in combinations(parts, 2)]
    rng.shuffle(pairs)
    return pairs
