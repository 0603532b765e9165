"""Families about neighbourhoods and shapes: outlines, enclosed cells, crowding, bounding boxes."""

from rlvr_exp.domains.arc.generator.family import Bodies, columns, family, fixed, grid
from rlvr_exp.domains.arc.generator.sampling import ISLAND, RING, SCATTERED, SPARSE, Draw


def _open(h: int, w: int) -> bool:
    return min(h, w) > 2


AROUND = "x[max(c - 1, 0):c + 2]"
ROWS_AROUND = "g[max(r - 1, 0):r + 2]"

fixed(
    "bounding_box",
    "g = [row for row in g if any(row)]\n" + columns("[c for c in zip(*g) if any(c)]"),
    "x = [c for c in range(w) if any(g[r][c] for r in range(h))]\n"
    "[[g[r][c] for c in x] for r in range(h) if any(g[r])]",
    ISLAND,
    _open,
)


@family(SCATTERED, lambda h, w: h * w > 11 and min(h, w) > 2)
def halo(draw: Draw) -> Bodies:
    return Bodies(indexed=grid(f"g[r][c] or {draw.other()} * any(any({AROUND}) for x in {ROWS_AROUND})"))


@family(SPARSE, _open)
def crowded(draw: Draw) -> Bodies:
    k, a = draw.number(4, 5), draw.new()
    return Bodies(indexed=grid(f"{a} if sum(v > 0 for x in {ROWS_AROUND} for v in {AROUND}) >= {k} else g[r][c]"))


@family(SPARSE, _open)
def below_colour(draw: Draw) -> Bodies:
    a = draw.new()
    return Bodies(
        f"g[:1] + [[{a} if x and not v else v for x, v in zip(*p)] for p in zip(g, g[1:])]",
        grid(f"{a} if r and g[r - 1][c] and not g[r][c] else g[r][c]"),
    )


@family(RING, lambda h, w: min(h, w) > 2 and h * w > 9)
def fill_enclosed(draw: Draw) -> Bodies:
    t, a = "t = list(zip(*g))\n", draw.other()
    return Bodies(indexed=t + grid(f"g[r][c] or {a} * all(map(any, (g[r][:c], g[r][c:], t[c][:r], t[c][r:])))"))


@family(fits=_open)
def same_as_row_start(draw: Draw) -> Bodies:
    a = draw.new()
    return Bodies(
        f"[[{a} if v == row[0] else v for v in row] for row in g]",
        grid(f"{a} if g[r][c] == g[r][0] else g[r][c]"),
    )
