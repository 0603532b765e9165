"""Families that repaint by a cell's colour, or by how common colours are."""

from rlvr_exp.domains.arc.generator.family import Bodies, cells, family, fixed, grid
from rlvr_exp.domains.arc.generator.sampling import DENSE, RANKED, SPARSE, SPARSE_RICH, Draw


def _each(value: str, here: str = "g[r][c]") -> Bodies:
    """Both styles of a rule over the cell, which the rule writes as `#`."""
    return Bodies(cells(value.replace("#", "v")), grid(value.replace("#", here)))


fixed(
    "count_in_row",
    "[[row.count(v) for v in row] for row in g]",
    grid("g[r].count(g[r][c])"),
    fits=lambda h, w: w > 2,
)


@family()
def recolour(draw: Draw) -> Bodies:
    a = draw.seen()
    return _each(f"{draw.other(a)} if # == {a} else #")


@family(SPARSE_RICH)
def remove_colour(draw: Draw) -> Bodies:
    return _each(f"0 if # == {draw.seen()} else #")


@family()
def swap_colours(draw: Draw) -> Bodies:
    a, b = draw.two()
    return _each(f"{{{a}: {b}, {b}: {a}}}.get(#, #)")


@family()
def shift_colours(draw: Draw) -> Bodies:
    return _each(f"(# + {draw.number(1, 9)}) % 10")


fixed("negative", cells("9 - v"), grid("9 - g[r][c]"))


@family(SPARSE_RICH)
def keep_colour(draw: Draw) -> Bodies:
    a = draw.seen()
    return _each(f"# if # == {a} else 0")


@family(DENSE)
def mask_colour(draw: Draw) -> Bodies:
    return _each(f"{draw.other()} if # == {draw.seen()} else 0")


@family(SPARSE)
def invert(draw: Draw) -> Bodies:
    return _each(f"0 if # else {draw.other()}")


@family(SPARSE)
def fill_background(draw: Draw) -> Bodies:
    return _each(f"# or {draw.other()}")


@family()
def cap(draw: Draw) -> Bodies:
    return _each(f"min(#, {draw.number(2, 7)})")


@family()
def replace_corner_colour(draw: Draw) -> Bodies:
    return _each(f"{draw.new()} if # == g[0][0] else #")


@family(RANKED)
def replace_commonest(draw: Draw) -> Bodies:
    x, a = "x = sum(g, [])\na = max(x, key=x.count)\n", draw.new()
    return Bodies(x + cells(f"{a} if v == a else v"), x + grid(f"{a} if g[r][c] == a else g[r][c]"))


@family(RANKED)
def replace_rarest(draw: Draw) -> Bodies:
    x, a = "x = sum(g, [])\na = min(x, key=x.count)\n", draw.new()
    return Bodies(x + cells(f"{a} if v == a else v"), x + grid(f"{a} if g[r][c] == a else g[r][c]"))
