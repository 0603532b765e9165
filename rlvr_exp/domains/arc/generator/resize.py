"""Families that enlarge: doubling, tiling, mirroring, padding and repeated edges."""

from rlvr_exp.domains.arc.generator.family import Bodies, family, fixed, grid
from rlvr_exp.domains.arc.generator.sampling import Draw

DOUBLED, FOURFOLD = 16, 12
"""Most cells of an input of the embedded corpus whose output has about twice or four times as many."""


fixed("double_rows", "[row for row in g for _ in range(2)]", grid("g[r // 2][c]", "2 * h"), most_cells=DOUBLED)
fixed(
    "double_cols",
    "[[v for v in row for _ in range(2)] for row in g]",
    grid("g[r][c // 2]", cols="2 * w"),
    most_cells=DOUBLED,
)
fixed(
    "zoom",
    "[[v for v in row for _ in range(2)] for row in g for _ in range(2)]",
    grid("g[r // 2][c // 2]", "2 * h", "2 * w"),
    most_cells=FOURFOLD,
)
fixed("tile_right", "[row + row for row in g]", grid("g[r][c % w]", cols="2 * w"), most_cells=DOUBLED)
fixed("tile_down", "g + g", grid("g[r % h][c]", "2 * h"), most_cells=DOUBLED)
fixed("tile_quad", "[row + row for row in g + g]", grid("g[r % h][c % w]", "2 * h", "2 * w"), most_cells=FOURFOLD)
fixed(
    "mirror_right",
    "[row + row[::-1] for row in g]",
    grid("g[r][min(c, 2 * w - 1 - c)]", cols="2 * w"),
    most_cells=DOUBLED,
)
fixed(
    "mirror_left",
    "[row[::-1] + row for row in g]",
    grid("g[r][max(c - w, w - 1 - c)]", cols="2 * w"),
    most_cells=DOUBLED,
)
fixed("mirror_down", "g + g[::-1]", grid("g[min(r, 2 * h - 1 - r)][c]", "2 * h"), most_cells=DOUBLED)
fixed(
    "mirror_quad",
    "[row + row[::-1] for row in g + g[::-1]]",
    grid("g[min(r, 2 * h - 1 - r)][min(c, 2 * w - 1 - c)]", "2 * h", "2 * w"),
    most_cells=FOURFOLD,
)
fixed("repeat_top", "g[:1] + g", grid("g[max(r - 1, 0)][c]", "h + 1"))
fixed("repeat_right", "[row + row[-1:] for row in g]", grid("g[r][min(c, w - 1)]", cols="w + 1"))


@family()
def pad_right(draw: Draw) -> Bodies:
    a = draw.other()
    return Bodies(f"[row + [{a}] for row in g]", grid(f"g[r][c] if c < w else {a}", cols="w + 1"))


@family()
def pad_top(draw: Draw) -> Bodies:
    a = draw.other()
    return Bodies(f"[[{a}] * len(g[0])] + g", grid(f"g[r - 1][c] if r else {a}", "h + 1"))


@family()
def pad_bottom(draw: Draw) -> Bodies:
    a = draw.other()
    return Bodies(f"g + [[{a}] * len(g[0])]", grid(f"g[r][c] if r < h else {a}", "h + 1"))


@family(most_cells=DOUBLED)
def border(draw: Draw) -> Bodies:
    a = draw.other()
    value = f"g[r - 1][c - 1] if 0 < r <= h and 0 < c <= w else {a}"
    return Bodies(indexed=grid(value, "h + 2", "w + 2"))
