"""All families of transformations by name. Their order decides the drawn compositions: a new family changes the corpus."""

from collections.abc import Callable

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


def register(entry: GridFamily) -> None:
    if entry.name in FAMILIES:
        raise ValueError(f"corpus family {entry.name!r} is registered twice; rename one")
    FAMILIES[entry.name] = entry


def fixed(
    name: str, short: str, indexed: str, source: Source = DENSE, fits: Fits = lambda h, w: True, most_cells: int = 0
) -> None:
    """Register a family without parameters."""
    bodies = Bodies(short, indexed)
    register(GridFamily(name, lambda draw: bodies, source, fits, most_cells, fixed=True))


def drawn(
    name: str,
    bodies: Callable[[Draw], Bodies],
    source: Source = DENSE,
    fits: Fits = lambda h, w: True,
    most_cells: int = 0,
) -> None:
    """Register a family whose function draws parameters and returns the bodies."""
    register(GridFamily(name, bodies, source, fits, most_cells))


def family(
    source: Source = DENSE, fits: Fits = lambda h, w: True, most_cells: int = 0
) -> Callable[[Callable[[Draw], Bodies]], None]:
    """Register the decorated function as `drawn` does, under its own name."""
    return lambda bodies: drawn(bodies.__name__, bodies, source, fits, most_cells)


def _wide(h: int, w: int) -> bool:
    return w > 2


def _tall(h: int, w: int) -> bool:
    return h > 2


def _open(h: int, w: int) -> bool:
    return min(h, w) > 2


# Colour: repaint by a cell's colour, or by how common colours are.


def _each(value: str, here: str = "g[r][c]") -> Bodies:
    """Both styles of a rule over the cell, which the rule writes as `#`."""
    return Bodies(cells(value.replace("#", "v")), grid(value.replace("#", here)))


fixed(
    "count_in_row",
    "[[row.count(v) for v in row] for row in g]",
    grid("g[r].count(g[r][c])"),
    fits=_wide,
)


@family()
def recolour(draw: Draw) -> Bodies:
    a = draw.seen()
    return _each(f"{draw.other(a)} if # == {a} else #")


drawn("remove_colour", lambda draw: _each(f"0 if # == {draw.seen()} else #"), SPARSE_RICH)


@family()
def swap_colours(draw: Draw) -> Bodies:
    a, b = draw.two()
    return _each(f"{{{a}: {b}, {b}: {a}}}.get(#, #)")


drawn("shift_colours", lambda draw: _each(f"(# + {draw.number(1, 9)}) % 10"))
fixed("negative", cells("9 - v"), grid("9 - g[r][c]"))


@family(SPARSE_RICH)
def keep_colour(draw: Draw) -> Bodies:
    a = draw.seen()
    return _each(f"# if # == {a} else 0")


drawn("mask_colour", lambda draw: _each(f"{draw.other()} if # == {draw.seen()} else 0"), DENSE)
drawn("invert", lambda draw: _each(f"0 if # else {draw.other()}"), SPARSE)
drawn("fill_background", lambda draw: _each(f"# or {draw.other()}"), SPARSE)
drawn("cap", lambda draw: _each(f"min(#, {draw.number(2, 7)})"))
drawn("replace_corner_colour", lambda draw: _each(f"{draw.new()} if # == g[0][0] else #"))


@family(RANKED)
def replace_commonest(draw: Draw) -> Bodies:
    x, a = "x = sum(g, [])\na = max(x, key=x.count)\n", draw.new()
    return Bodies(x + cells(f"{a} if v == a else v"), x + grid(f"{a} if g[r][c] == a else g[r][c]"))


@family(RANKED)
def replace_rarest(draw: Draw) -> Bodies:
    x, a = "x = sum(g, [])\na = min(x, key=x.count)\n", draw.new()
    return Bodies(x + cells(f"{a} if v == a else v"), x + grid(f"{a} if g[r][c] == a else g[r][c]"))


# Geometry: move cells: flips, rotations, rolls, shifts, crops and selections of rows and columns.
fixed("flip_lr", "[row[::-1] for row in g]", grid("g[r][w - 1 - c]"))
fixed("flip_ud", "g[::-1]", grid("g[h - 1 - r][c]"))
fixed("rotate_180", "[row[::-1] for row in g[::-1]]", grid("g[h - 1 - r][w - 1 - c]"))
fixed("transpose", columns("g"), grid("g[c][r]", "w", "h"))
fixed("rotate_right", columns("g[::-1]"), grid("g[h - 1 - c][r]", "w", "h"))
fixed("rotate_left", columns("g") + "[::-1]", grid("g[c][w - 1 - r]", "w", "h"))
fixed("anti_transpose", columns("g[::-1]") + "[::-1]", grid("g[h - 1 - c][w - 1 - r]", "w", "h"))
fixed("odd_rows", "g[::2]", grid("g[2 * r][c]", "(h + 1) // 2"), fits=_tall)
fixed("odd_cols", "[row[::2] for row in g]", grid("g[r][2 * c]", cols="(w + 1) // 2"), fits=_wide)
fixed("left_half", "[row[:len(row) // 2] for row in g]", grid("g[r][c]", cols="w // 2"), fits=lambda h, w: w > 3)
fixed("top_half", "g[:len(g) // 2]", grid("g[r][c]", "h // 2"), fits=lambda h, w: h > 3)
fixed(
    "crop_border",
    "[row[1:-1] for row in g[1:-1]]",
    grid("g[r][c]", "1, h - 1", "1, w - 1"),
    fits=lambda h, w: min(h, w) > 3,
)
fixed(
    "swap_halves_lr",
    "[row[len(row) // 2:] + row[:len(row) // 2] for row in g]",
    grid("g[r][(c + w // 2) % w]"),
    fits=lambda h, w: w > 3,
)
fixed("swap_halves_ud", "g[len(g) // 2:] + g[:len(g) // 2]", grid("g[(r + h // 2) % h][c]"), fits=lambda h, w: h > 3)
fixed(
    "reverse_odd_rows",
    "[row[::-1] if r % 2 else row for r, row in enumerate(g)]",
    grid("g[r][w - 1 - c if r % 2 else c]"),
)
fixed(
    "skew_rows",
    "[row[r % len(row):] + row[:r % len(row)] for r, row in enumerate(g)]",
    grid("g[r][(c + r) % w]"),
    fits=_wide,
)


@family(fits=_wide)
def roll_right(draw: Draw) -> Bodies:
    k = draw.number(1, 2)
    return Bodies(f"[row[-{k}:] + row[:-{k}] for row in g]", grid(f"g[r][(c - {k}) % w]"))


@family(fits=_tall)
def roll_down(draw: Draw) -> Bodies:
    k = draw.number(1, 2)
    return Bodies(f"g[-{k}:] + g[:-{k}]", grid(f"g[(r - {k}) % h][c]"))


@family(fits=_wide)
def shift_right(draw: Draw) -> Bodies:
    k, a = draw.number(1, 2), draw.other()
    fill = ", ".join([str(a)] * k)
    return Bodies(f"[[{fill}] + row[:-{k}] for row in g]", grid(f"g[r][c - {k}] if c >= {k} else {a}"))


@family(fits=_wide)
def shift_left(draw: Draw) -> Bodies:
    k, a = draw.number(1, 2), draw.other()
    fill = ", ".join([str(a)] * k)
    return Bodies(f"[row[{k}:] + [{fill}] for row in g]", grid(f"g[r][c + {k}] if c + {k} < w else {a}"))


@family(fits=_tall)
def shift_down(draw: Draw) -> Bodies:
    k, a = draw.number(1, 2), draw.other()
    return Bodies(f"[[{a}] * len(g[0])] * {k} + g[:-{k}]", grid(f"g[r - {k}][c] if r >= {k} else {a}"))


@family(fits=lambda h, w: w > 3)
def crop_left(draw: Draw) -> Bodies:
    k = draw.number(1, 2)
    return Bodies(f"[row[{k}:] for row in g]", grid("g[r][c]", cols=f"{k}, w"))


@family(fits=lambda h, w: w > 3)
def crop_right(draw: Draw) -> Bodies:
    k = draw.number(1, 2)
    return Bodies(f"[row[:-{k}] for row in g]", grid("g[r][c]", cols=f"w - {k}"))


@family(fits=lambda h, w: h > 3)
def crop_top(draw: Draw) -> Bodies:
    k = draw.number(1, 2)
    return Bodies(f"g[{k}:]", grid("g[r][c]", f"{k}, h"))


@family(fits=lambda h, w: h > 3)
def crop_bottom(draw: Draw) -> Bodies:
    k = draw.number(1, 2)
    return Bodies(f"g[:-{k}]", grid("g[r][c]", f"h - {k}"))


# Lines: treat complete rows or columns: sorting, gravity, spreading, filling, dropping, measuring.
fixed("sort_rows", "[sorted(row) for row in g]", "[sorted(g[r]) for r in range(h)]", fits=_wide)
fixed("sort_cols", columns("[sorted(c) for c in zip(*g)]"), grid("sorted(g[i][c] for i in range(h))[r]"), fits=_tall)
fixed("order_rows", "sorted(g)", "[sorted(g)[r] for r in range(h)]", fits=_tall)
fixed("fall_right", "[sorted(row, key=bool) for row in g]", "[sorted(g[r], key=bool) for r in range(h)]", SPARSE, _wide)
fixed(
    "fall_left",
    "[[v for v in row if v] + [0] * row.count(0) for row in g]",
    "[[v for v in g[r] if v] + [0] * g[r].count(0) for r in range(h)]",
    SPARSE,
    _wide,
)
fixed(
    "fall_down",
    columns("[sorted(c, key=bool) for c in zip(*g)]"),
    grid("sorted([g[i][c] for i in range(h)], key=bool)[r]"),
    SPARSE,
    _tall,
)
fixed(
    "fall_up",
    columns("[sorted(c, key=lambda v: v == 0) for c in zip(*g)]"),
    grid("sorted([g[i][c] for i in range(h)], key=lambda v: v == 0)[r]"),
    SPARSE,
    _tall,
)
fixed("spread_first_col", "[[row[0]] * len(row) for row in g]", grid("g[r][0]"), fits=_tall)
fixed("spread_last_col", "[[row[-1]] * len(row) for row in g]", grid("g[r][w - 1]"), fits=_tall)
fixed("spread_top_row", "[g[0] for row in g]", grid("g[0][c]"), fits=_wide)
fixed("spread_row_max", "[[max(row)] * len(row) for row in g]", grid("max(g[r])"), SPARSE_RICH, _tall)
fixed(
    "smear_right",
    "[[next((v for v in row[c::-1] if v), 0) for c in range(len(row))] for row in g]",
    grid("next((v for v in g[r][c::-1] if v), 0)"),
    SPARSE,
    _wide,
)
fixed(
    "drag_right",
    "[[v or x for v, x in zip(row, [0] + row)] for row in g]",
    grid("g[r][c] or (g[r][c - 1] if c else 0)"),
    SPARSE,
    _wide,
)
fixed("drop_blank_rows", "[row for row in g if any(row)]", "[g[r] for r in range(h) if any(g[r])]", GAPS, _tall)
fixed(
    "drop_blank_cols",
    columns("[c for c in zip(*g) if any(c)]"),
    "x = [c for c in range(w) if any(g[r][c] for r in range(h))]\n[[row[c] for c in x] for row in g]",
    GAPS,
    _wide,
)


@family(SPARSE)
def bars(draw: Draw) -> Bodies:
    a = draw.seen()
    short = f"[[{a} if v else 0 for v in sorted(row)[::-1]] for row in g]"
    return Bodies(short, grid(f"{a} if c < w - g[r].count(0) else 0"))


@family(fits=_tall)
def fill_row(draw: Draw) -> Bodies:
    k, a = draw.number(0, 2), draw.other()
    return Bodies(f"g[:{k}] + [[{a}] * len(g[0])] + g[{k + 1}:]", grid(f"{a} if r == {k} else g[r][c]"))


@family(fits=_wide)
def fill_col(draw: Draw) -> Bodies:
    k, a = draw.number(0, 2), draw.other()
    return Bodies(f"[row[:{k}] + [{a}] + row[{k + 1}:] for row in g]", grid(f"{a} if c == {k} else g[r][c]"))


@family(fits=_tall)
def fill_rows_with(draw: Draw) -> Bodies:
    a = draw.seen()
    b = draw.rng.choice((a, draw.new()))
    return Bodies(f"[[{b}] * len(row) if {a} in row else row for row in g]", grid(f"{b} if {a} in g[r] else g[r][c]"))


@family(SPARSE, lambda h, w: w > 3)
def connect_row(draw: Draw) -> Bodies:
    a = draw.seen()
    rule = f"{a} if {a} in ROW[:c] and {a} in ROW[c:] else"
    return Bodies(
        "[[" + rule.replace("ROW", "row") + " v for c, v in enumerate(row)] for row in g]",
        grid(rule.replace("ROW", "g[r]") + " g[r][c]"),
    )


# Objects: neighbourhoods and shapes: outlines, enclosed cells, crowding, bounding boxes.

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
drawn(
    "halo",
    lambda draw: Bodies(indexed=grid(f"g[r][c] or {draw.other()} * any(any({AROUND}) for x in {ROWS_AROUND})")),
    SCATTERED,
    lambda h, w: h * w > 11 and min(h, w) > 2,
)


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


# Patterns: draw by position: lines, frames, checkers, triangles, symmetry, and halves laid over each other.


def _painted(draw: Draw, where: str) -> Bodies:
    """A colour, or the background, wherever a rule over `r` and `c` holds."""
    a = draw.rng.choice((0, draw.other(), draw.other()))
    return Bodies(numbered(f"{a} if {where} else v"), grid(f"{a} if {where} else g[r][c]"))


def _sized(draw: Draw, where: str) -> Bodies:
    """The same for a rule that needs `h` or `w`, hence has no short form."""
    return Bodies(indexed=_painted(draw, where).indexed)


drawn("diagonal", lambda draw: _painted(draw, "r == c"), fits=_open)
drawn("counter_diagonal", lambda draw: _sized(draw, "r + c == w - 1"), fits=_open)
drawn("cross", lambda draw: _sized(draw, "r == h // 2 or c == w // 2"), fits=_open)
drawn("frame", lambda draw: _sized(draw, "r in (0, h - 1) or c in (0, w - 1)"), fits=_open)
drawn("checker", lambda draw: _painted(draw, f"(r + c) % 2 == {draw.number(0, 1)}"))
drawn("stripe_rows", lambda draw: _painted(draw, f"r % 2 == {draw.number(0, 1)}"), fits=_open)
drawn("stripe_cols", lambda draw: _painted(draw, f"c % 2 == {draw.number(0, 1)}"), fits=_open)
drawn("upper_triangle", lambda draw: _painted(draw, "c > r"), fits=_open)


@family()
def add_row_number(draw: Draw) -> Bodies:
    k = draw.number(0, 2)
    plus = f"r + {k}" if k else "r"
    return Bodies(f"[[(v + {plus}) % 10 for v in row] for r, row in enumerate(g)]", grid(f"(g[r][c] + {plus}) % 10"))


fixed(
    "symmetric_lr",
    "[[min(x) for x in zip(row, row[::-1])] for row in g]",
    grid("min(g[r][c], g[r][w - 1 - c])"),
    DENSE,
    _open,
)
fixed("copy_left_half", "", grid("g[r][min(c, w - 1 - c)]"), DENSE, _wide)
fixed(
    "symmetric_or_lr",
    "[[a or b for a, b in zip(row, row[::-1])] for row in g]",
    grid("g[r][c] or g[r][w - 1 - c]"),
    SPARSE,
    _open,
)
fixed(
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


fixed("fold_or", "", grid("g[r][c] or g[r][c + w // 2]", cols="w // 2"), SPARSE, _even_w)
fixed("fold_and", "", grid("g[r][c] and g[r][c + w // 2]", cols="w // 2"), SPARSE, _even_w)
fixed(
    "fold_down_or",
    "[[a or b for a, b in zip(x, y)] for x, y in zip(g, g[len(g) // 2:])]",
    grid("g[r][c] or g[r + h // 2][c]", "h // 2"),
    SPARSE,
    _even_h,
)


@family(SPARSE, _even_h)
def fold_down_xor(draw: Draw) -> Bodies:
    a = draw.other()
    return Bodies(
        f"[[{a} if bool(a) != bool(b) else 0 for a, b in zip(x, y)] for x, y in zip(g, g[len(g) // 2:])]",
        grid(f"{a} if bool(g[r][c]) != bool(g[r + h // 2][c]) else 0", "h // 2"),
    )


# Resize: enlarge: doubling, tiling, mirroring, padding and repeated edges.

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
