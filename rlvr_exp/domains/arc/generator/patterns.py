"""Families that draw by position: lines, frames, checkers, triangles, symmetry, and halves laid over each other."""

from rlvr_exp.domains.arc.generator.family import Bodies, family, fixed, grid, numbered
from rlvr_exp.domains.arc.generator.sampling import DENSE, SPARSE, Draw


def _open(h: int, w: int) -> bool:
    return min(h, w) > 2


def _painted(draw: Draw, where: str) -> Bodies:
    """A colour, or the background, wherever a rule over `r` and `c` holds."""
    a = draw.rng.choice((0, draw.other(), draw.other()))
    return Bodies(numbered(f"{a} if {where} else v"), grid(f"{a} if {where} else g[r][c]"))


def _sized(draw: Draw, where: str) -> Bodies:
    """The same for a rule that needs `h` or `w`, hence has no short form."""
    return Bodies(indexed=_painted(draw, where).indexed)


@family(fits=_open)
def diagonal(draw: Draw) -> Bodies:
    return _painted(draw, "r == c")


@family(fits=_open)
def counter_diagonal(draw: Draw) -> Bodies:
    return _sized(draw, "r + c == w - 1")


@family(fits=_open)
def cross(draw: Draw) -> Bodies:
    return _sized(draw, "r == h // 2 or c == w // 2")


@family(fits=_open)
def frame(draw: Draw) -> Bodies:
    return _sized(draw, "r in (0, h - 1) or c in (0, w - 1)")


@family()
def checker(draw: Draw) -> Bodies:
    return _painted(draw, f"(r + c) % 2 == {draw.number(0, 1)}")


@family(fits=_open)
def stripe_rows(draw: Draw) -> Bodies:
    return _painted(draw, f"r % 2 == {draw.number(0, 1)}")


@family(fits=_open)
def stripe_cols(draw: Draw) -> Bodies:
    return _painted(draw, f"c % 2 == {draw.number(0, 1)}")


@family(fits=_open)
def upper_triangle(draw: Draw) -> Bodies:
    return _painted(draw, "c > r")


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
fixed("copy_left_half", "", grid("g[r][min(c, w - 1 - c)]"), DENSE, lambda h, w: w > 2)
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
