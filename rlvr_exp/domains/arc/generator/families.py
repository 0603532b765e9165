"""All families of transformations by name. Their order decides the drawn compositions: a new family changes the corpus."""

import re
from collections.abc import Callable
from typing import Any

from rlvr_exp.domains.arc.generator.family import (
    DENSE,
    GAPS,
    ISLAND,
    RANKED,
    RING,
    SCATTERED,
    SPARSE,
    SPARSE_RICH,
    Bodies,
    Draw,
    Fits,
    GridFamily,
    Source,
    cells,
    columns,
    grid,
    numbered,
)

FAMILIES: dict[str, GridFamily] = {}
How = Callable[[Draw], object]
SEEN, OTHER, NEW, TWO = Draw.seen, Draw.other, Draw.new, Draw.two


def PAINT(draw: Draw) -> int:
    """A colour, or the background."""
    return draw.rng.choice((0, draw.other(), draw.other()))


def number(low: int, high: int) -> How:
    return lambda draw: draw.number(low, high)


def family(
    name: str,
    short: str,
    indexed: str,
    source: Source = DENSE,
    fits: Fits = lambda h, w: True,
    most_cells: int = 0,
    **draws: Any,
) -> None:
    """Register a family.

    Args:
        draws: how the parameters are drawn, in this order. A key is the capital letter that the bodies write in place of
            the parameter, or several letters for a tuple.
    """

    def bodies(draw: Draw) -> Bodies:
        values: dict[str, object] = {}
        for letters, how in draws.items():
            drawn = how(draw)
            values |= zip(letters, drawn if isinstance(drawn, tuple | list) else (drawn,), strict=True)
        return Bodies(*(re.sub(r"\b[A-Z]\b", lambda found: str(values[found[0]]), body) for body in (short, indexed)))

    if name in FAMILIES:
        raise ValueError(f"corpus family {name!r} is registered twice; rename one")
    FAMILIES[name] = GridFamily(name, bodies, source, fits, most_cells, fixed=not draws)


def _wide(h: int, w: int) -> bool:
    return w > 2


def _tall(h: int, w: int) -> bool:
    return h > 2


def _open(h: int, w: int) -> bool:
    return min(h, w) > 2


# Colour: repaint by a cell's colour, or by how common colours are.


def each(name: str, rule: str, source: Source = DENSE, **draws: Any) -> None:
    """Register a family of a rule over the cell, which the rule writes as `#`."""
    family(name, cells(rule.replace("#", "v")), grid(rule.replace("#", "g[r][c]")), source, **draws)


family(
    "count_in_row",
    "[[row.count(v) for v in row] for row in g]",
    grid("g[r].count(g[r][c])"),
    fits=_wide,
)
each("recolour", "B if # == A else #", AB=lambda draw: (a := draw.seen(), draw.other(a)))
each("remove_colour", "0 if # == A else #", SPARSE_RICH, A=SEEN)
each("swap_colours", "{A: B, B: A}.get(#, #)", AB=TWO)
each("shift_colours", "(# + K) % 10", K=number(1, 9))
each("negative", "9 - #")
each("keep_colour", "# if # == A else 0", SPARSE_RICH, A=SEEN)
each("mask_colour", "A if # == B else 0", A=OTHER, B=SEEN)
each("invert", "0 if # else A", SPARSE, A=OTHER)
each("fill_background", "# or A", SPARSE, A=OTHER)
each("cap", "min(#, K)", K=number(2, 7))
each("replace_corner_colour", "A if # == g[0][0] else #", A=NEW)


for name, word in (("replace_commonest", "max"), ("replace_rarest", "min")):
    x = f"x = sum(g, [])\na = {word}(x, key=x.count)\n"
    family(name, x + cells("A if v == a else v"), x + grid("A if g[r][c] == a else g[r][c]"), RANKED, A=NEW)


# Geometry: move cells: flips, rotations, rolls, shifts, crops and selections of rows and columns.
family("flip_lr", "[row[::-1] for row in g]", grid("g[r][w - 1 - c]"))
family("flip_ud", "g[::-1]", grid("g[h - 1 - r][c]"))
family("rotate_180", "[row[::-1] for row in g[::-1]]", grid("g[h - 1 - r][w - 1 - c]"))
family("transpose", columns("g"), grid("g[c][r]", "w", "h"))
family("rotate_right", columns("g[::-1]"), grid("g[h - 1 - c][r]", "w", "h"))
family("rotate_left", columns("g") + "[::-1]", grid("g[c][w - 1 - r]", "w", "h"))
family("anti_transpose", columns("g[::-1]") + "[::-1]", grid("g[h - 1 - c][w - 1 - r]", "w", "h"))
family("odd_rows", "g[::2]", grid("g[2 * r][c]", "(h + 1) // 2"), fits=_tall)
family("odd_cols", "[row[::2] for row in g]", grid("g[r][2 * c]", cols="(w + 1) // 2"), fits=_wide)
family("left_half", "[row[:len(row) // 2] for row in g]", grid("g[r][c]", cols="w // 2"), fits=lambda h, w: w > 3)
family("top_half", "g[:len(g) // 2]", grid("g[r][c]", "h // 2"), fits=lambda h, w: h > 3)
family(
    "crop_border",
    "[row[1:-1] for row in g[1:-1]]",
    grid("g[r][c]", "1, h - 1", "1, w - 1"),
    fits=lambda h, w: min(h, w) > 3,
)
family(
    "swap_halves_lr",
    "[row[len(row) // 2:] + row[:len(row) // 2] for row in g]",
    grid("g[r][(c + w // 2) % w]"),
    fits=lambda h, w: w > 3,
)
family("swap_halves_ud", "g[len(g) // 2:] + g[:len(g) // 2]", grid("g[(r + h // 2) % h][c]"), fits=lambda h, w: h > 3)
family(
    "reverse_odd_rows",
    "[row[::-1] if r % 2 else row for r, row in enumerate(g)]",
    grid("g[r][w - 1 - c if r % 2 else c]"),
)
family(
    "skew_rows",
    "[row[r % len(row):] + row[:r % len(row)] for r, row in enumerate(g)]",
    grid("g[r][(c + r) % w]"),
    fits=_wide,
)
family("roll_right", "[row[-K:] + row[:-K] for row in g]", grid("g[r][(c - K) % w]"), fits=_wide, K=number(1, 2))
family("roll_down", "g[-K:] + g[:-K]", grid("g[(r - K) % h][c]"), fits=_tall, K=number(1, 2))


def shift(draw: Draw) -> tuple[int, int, str]:
    k, a = draw.number(1, 2), draw.other()
    return k, a, ", ".join([str(a)] * k)


family("shift_right", "[[F] + row[:-K] for row in g]", grid("g[r][c - K] if c >= K else A"), fits=_wide, KAF=shift)
family("shift_left", "[row[K:] + [F] for row in g]", grid("g[r][c + K] if c + K < w else A"), fits=_wide, KAF=shift)
family(
    "shift_down",
    "[[A] * len(g[0])] * K + g[:-K]",
    grid("g[r - K][c] if r >= K else A"),
    fits=_tall,
    K=number(1, 2),
    A=OTHER,
)
family("crop_left", "[row[K:] for row in g]", grid("g[r][c]", cols="K, w"), fits=lambda h, w: w > 3, K=number(1, 2))
family("crop_right", "[row[:-K] for row in g]", grid("g[r][c]", cols="w - K"), fits=lambda h, w: w > 3, K=number(1, 2))
family("crop_top", "g[K:]", grid("g[r][c]", "K, h"), fits=lambda h, w: h > 3, K=number(1, 2))
family("crop_bottom", "g[:-K]", grid("g[r][c]", "h - K"), fits=lambda h, w: h > 3, K=number(1, 2))


# Lines: treat complete rows or columns: sorting, gravity, spreading, filling, dropping, measuring.
family("sort_rows", "[sorted(row) for row in g]", "[sorted(g[r]) for r in range(h)]", fits=_wide)
family("sort_cols", columns("[sorted(c) for c in zip(*g)]"), grid("sorted(g[i][c] for i in range(h))[r]"), fits=_tall)
family("order_rows", "sorted(g)", "[sorted(g)[r] for r in range(h)]", fits=_tall)
family(
    "fall_right", "[sorted(row, key=bool) for row in g]", "[sorted(g[r], key=bool) for r in range(h)]", SPARSE, _wide
)
family(
    "fall_left",
    "[[v for v in row if v] + [0] * row.count(0) for row in g]",
    "[[v for v in g[r] if v] + [0] * g[r].count(0) for r in range(h)]",
    SPARSE,
    _wide,
)
family(
    "fall_down",
    columns("[sorted(c, key=bool) for c in zip(*g)]"),
    grid("sorted([g[i][c] for i in range(h)], key=bool)[r]"),
    SPARSE,
    _tall,
)
family(
    "fall_up",
    columns("[sorted(c, key=lambda v: v == 0) for c in zip(*g)]"),
    grid("sorted([g[i][c] for i in range(h)], key=lambda v: v == 0)[r]"),
    SPARSE,
    _tall,
)
family("spread_first_col", "[[row[0]] * len(row) for row in g]", grid("g[r][0]"), fits=_tall)
family("spread_last_col", "[[row[-1]] * len(row) for row in g]", grid("g[r][w - 1]"), fits=_tall)
family("spread_top_row", "[g[0] for row in g]", grid("g[0][c]"), fits=_wide)
family("spread_row_max", "[[max(row)] * len(row) for row in g]", grid("max(g[r])"), SPARSE_RICH, _tall)
family(
    "smear_right",
    "[[next((v for v in row[c::-1] if v), 0) for c in range(len(row))] for row in g]",
    grid("next((v for v in g[r][c::-1] if v), 0)"),
    SPARSE,
    _wide,
)
family(
    "drag_right",
    "[[v or x for v, x in zip(row, [0] + row)] for row in g]",
    grid("g[r][c] or (g[r][c - 1] if c else 0)"),
    SPARSE,
    _wide,
)
family("drop_blank_rows", "[row for row in g if any(row)]", "[g[r] for r in range(h) if any(g[r])]", GAPS, _tall)
family(
    "drop_blank_cols",
    columns("[c for c in zip(*g) if any(c)]"),
    "x = [c for c in range(w) if any(g[r][c] for r in range(h))]\n[[row[c] for c in x] for row in g]",
    GAPS,
    _wide,
)
family(
    "bars",
    "[[A if v else 0 for v in sorted(row)[::-1]] for row in g]",
    grid("A if c < w - g[r].count(0) else 0"),
    SPARSE,
    A=SEEN,
)


def line(draw: Draw) -> tuple[int, int]:
    k = draw.number(0, 2)
    return k, k + 1


family(
    "fill_row",
    "g[:K] + [[A] * len(g[0])] + g[L:]",
    grid("A if r == K else g[r][c]"),
    fits=_tall,
    KL=line,
    A=OTHER,
)
family(
    "fill_col",
    "[row[:K] + [A] + row[L:] for row in g]",
    grid("A if c == K else g[r][c]"),
    fits=_wide,
    KL=line,
    A=OTHER,
)
family(
    "fill_rows_with",
    "[[B] * len(row) if A in row else row for row in g]",
    grid("B if A in g[r] else g[r][c]"),
    fits=_tall,
    AB=lambda draw: (a := draw.seen(), draw.rng.choice((a, draw.new()))),
)
family(
    "connect_row",
    "[[A if A in row[:c] and A in row[c:] else v for c, v in enumerate(row)] for row in g]",
    grid("A if A in g[r][:c] and A in g[r][c:] else g[r][c]"),
    SPARSE,
    lambda h, w: w > 3,
    A=SEEN,
)


# Objects: neighbourhoods and shapes: outlines, enclosed cells, crowding, bounding boxes.

AROUND = "x[max(c - 1, 0):c + 2]"
ROWS_AROUND = "g[max(r - 1, 0):r + 2]"
family(
    "bounding_box",
    "g = [row for row in g if any(row)]\n" + columns("[c for c in zip(*g) if any(c)]"),
    "x = [c for c in range(w) if any(g[r][c] for r in range(h))]\n"
    "[[g[r][c] for c in x] for r in range(h) if any(g[r])]",
    ISLAND,
    _open,
)
family(
    "halo",
    "",
    grid(f"g[r][c] or A * any(any({AROUND}) for x in {ROWS_AROUND})"),
    SCATTERED,
    lambda h, w: h * w > 11 and min(h, w) > 2,
    A=OTHER,
)
family(
    "crowded",
    "",
    grid(f"A if sum(v > 0 for x in {ROWS_AROUND} for v in {AROUND}) >= K else g[r][c]"),
    SPARSE,
    _open,
    K=number(4, 5),
    A=NEW,
)
family(
    "below_colour",
    "g[:1] + [[A if x and not v else v for x, v in zip(*p)] for p in zip(g, g[1:])]",
    grid("A if r and g[r - 1][c] and not g[r][c] else g[r][c]"),
    SPARSE,
    _open,
    A=NEW,
)
family(
    "fill_enclosed",
    "",
    "t = list(zip(*g))\n" + grid("g[r][c] or A * all(map(any, (g[r][:c], g[r][c:], t[c][:r], t[c][r:])))"),
    RING,
    lambda h, w: min(h, w) > 2 and h * w > 9,
    A=OTHER,
)
family(
    "same_as_row_start",
    "[[A if v == row[0] else v for v in row] for row in g]",
    grid("A if g[r][c] == g[r][0] else g[r][c]"),
    fits=_open,
    A=NEW,
)


# Patterns: draw by position: lines, frames, checkers, triangles, symmetry, and halves laid over each other.


def paint(name: str, rule: str, fits: Fits = _open, **draws: Any) -> None:
    """Register a family that paints the cells of a rule over `r` and `c`. A rule with `h` or `w` has no short form."""
    short = "" if re.search(r"\b[hw]\b", rule) else numbered(f"A if {rule} else v")
    family(name, short, grid(f"A if {rule} else g[r][c]"), DENSE, fits, **draws, A=PAINT)


paint("diagonal", "r == c")
paint("counter_diagonal", "r + c == w - 1")
paint("cross", "r == h // 2 or c == w // 2")
paint("frame", "r in (0, h - 1) or c in (0, w - 1)")
paint("checker", "(r + c) % 2 == K", lambda h, w: True, K=number(0, 1))
paint("stripe_rows", "r % 2 == K", K=number(0, 1))
paint("stripe_cols", "c % 2 == K", K=number(0, 1))
paint("upper_triangle", "c > r")
family(
    "add_row_number",
    "[[(v + P) % 10 for v in row] for r, row in enumerate(g)]",
    grid("(g[r][c] + P) % 10"),
    P=lambda draw: f"r + {k}" if (k := draw.number(0, 2)) else "r",
)
family(
    "symmetric_lr",
    "[[min(x) for x in zip(row, row[::-1])] for row in g]",
    grid("min(g[r][c], g[r][w - 1 - c])"),
    DENSE,
    _open,
)
family("copy_left_half", "", grid("g[r][min(c, w - 1 - c)]"), DENSE, _wide)
family(
    "symmetric_or_lr",
    "[[a or b for a, b in zip(row, row[::-1])] for row in g]",
    grid("g[r][c] or g[r][w - 1 - c]"),
    SPARSE,
    _open,
)
family(
    "symmetric_or_ud",
    "[[a or b for a, b in zip(x, y)] for x, y in zip(g, g[::-1])]",
    grid("g[r][c] or g[h - 1 - r][c]"),
    SPARSE,
    _open,
)


def _even_w(h: int, w: int) -> bool:
    return w in (4, 6) and h > 1


def _even_h(h: int, w: int) -> bool:
    return h in (4, 6) and w > 1


family("fold_or", "", grid("g[r][c] or g[r][c + w // 2]", cols="w // 2"), SPARSE, _even_w)
family("fold_and", "", grid("g[r][c] and g[r][c + w // 2]", cols="w // 2"), SPARSE, _even_w)
family(
    "fold_down_or",
    "[[a or b for a, b in zip(x, y)] for x, y in zip(g, g[len(g) // 2:])]",
    grid("g[r][c] or g[r + h // 2][c]", "h // 2"),
    SPARSE,
    _even_h,
)
family(
    "fold_down_xor",
    "[[A if bool(a) != bool(b) else 0 for a, b in zip(x, y)] for x, y in zip(g, g[len(g) // 2:])]",
    grid("A if bool(g[r][c]) != bool(g[r + h // 2][c]) else 0", "h // 2"),
    SPARSE,
    _even_h,
    A=OTHER,
)


# Resize: enlarge: doubling, tiling, mirroring, padding and repeated edges.

DOUBLED, FOURFOLD = 16, 12
"""Most cells of an input of the embedded corpus whose output has about twice or four times as many."""
family("double_rows", "[row for row in g for _ in range(2)]", grid("g[r // 2][c]", "2 * h"), most_cells=DOUBLED)
family(
    "double_cols",
    "[[v for v in row for _ in range(2)] for row in g]",
    grid("g[r][c // 2]", cols="2 * w"),
    most_cells=DOUBLED,
)
family(
    "zoom",
    "[[v for v in row for _ in range(2)] for row in g for _ in range(2)]",
    grid("g[r // 2][c // 2]", "2 * h", "2 * w"),
    most_cells=FOURFOLD,
)
family("tile_right", "[row + row for row in g]", grid("g[r][c % w]", cols="2 * w"), most_cells=DOUBLED)
family("tile_down", "g + g", grid("g[r % h][c]", "2 * h"), most_cells=DOUBLED)
family("tile_quad", "[row + row for row in g + g]", grid("g[r % h][c % w]", "2 * h", "2 * w"), most_cells=FOURFOLD)
family(
    "mirror_right",
    "[row + row[::-1] for row in g]",
    grid("g[r][min(c, 2 * w - 1 - c)]", cols="2 * w"),
    most_cells=DOUBLED,
)
family(
    "mirror_left",
    "[row[::-1] + row for row in g]",
    grid("g[r][max(c - w, w - 1 - c)]", cols="2 * w"),
    most_cells=DOUBLED,
)
family("mirror_down", "g + g[::-1]", grid("g[min(r, 2 * h - 1 - r)][c]", "2 * h"), most_cells=DOUBLED)
family(
    "mirror_quad",
    "[row + row[::-1] for row in g + g[::-1]]",
    grid("g[min(r, 2 * h - 1 - r)][min(c, 2 * w - 1 - c)]", "2 * h", "2 * w"),
    most_cells=FOURFOLD,
)
family("repeat_top", "g[:1] + g", grid("g[max(r - 1, 0)][c]", "h + 1"))
family("repeat_right", "[row + row[-1:] for row in g]", grid("g[r][min(c, w - 1)]", cols="w + 1"))
family("pad_right", "[row + [A] for row in g]", grid("g[r][c] if c < w else A", cols="w + 1"), A=OTHER)
family("pad_top", "[[A] * len(g[0])] + g", grid("g[r - 1][c] if r else A", "h + 1"), A=OTHER)
family("pad_bottom", "g + [[A] * len(g[0])]", grid("g[r][c] if r < h else A", "h + 1"), A=OTHER)
family(
    "border",
    "",
    grid("g[r - 1][c - 1] if 0 < r <= h and 0 < c <= w else A", "h + 2", "w + 2"),
    most_cells=DOUBLED,
    A=OTHER,
)
