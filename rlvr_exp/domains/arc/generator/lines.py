"""Families that treat complete rows or columns: sorting, gravity, spreading, filling, dropping, measuring."""

from rlvr_exp.domains.arc.generator.family import Bodies, columns, family, fixed, grid
from rlvr_exp.domains.arc.generator.sampling import GAPS, SPARSE, SPARSE_RICH, Draw


def _wide(h: int, w: int) -> bool:
    return w > 2


def _tall(h: int, w: int) -> bool:
    return h > 2


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
