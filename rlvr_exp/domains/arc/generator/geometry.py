"""Families that move cells: flips, rotations, rolls, shifts, crops and selections of rows and columns."""

from rlvr_exp.domains.arc.generator.family import Bodies, columns, family, fixed, grid
from rlvr_exp.domains.arc.generator.sampling import Draw

fixed("flip_lr", "[row[::-1] for row in g]", grid("g[r][w - 1 - c]"))
fixed("flip_ud", "g[::-1]", grid("g[h - 1 - r][c]"))
fixed("rotate_180", "[row[::-1] for row in g[::-1]]", grid("g[h - 1 - r][w - 1 - c]"))
fixed("transpose", columns("g"), grid("g[c][r]", "w", "h"))
fixed("rotate_right", columns("g[::-1]"), grid("g[h - 1 - c][r]", "w", "h"))
fixed("rotate_left", columns("g") + "[::-1]", grid("g[c][w - 1 - r]", "w", "h"))
fixed("anti_transpose", columns("g[::-1]") + "[::-1]", grid("g[h - 1 - c][w - 1 - r]", "w", "h"))
fixed("odd_rows", "g[::2]", grid("g[2 * r][c]", "(h + 1) // 2"), fits=lambda h, w: h > 2)
fixed("odd_cols", "[row[::2] for row in g]", grid("g[r][2 * c]", cols="(w + 1) // 2"), fits=lambda h, w: w > 2)
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
    fits=lambda h, w: w > 2,
)


@family(fits=lambda h, w: w > 2)
def roll_right(draw: Draw) -> Bodies:
    k = draw.number(1, 2)
    return Bodies(f"[row[-{k}:] + row[:-{k}] for row in g]", grid(f"g[r][(c - {k}) % w]"))


@family(fits=lambda h, w: h > 2)
def roll_down(draw: Draw) -> Bodies:
    k = draw.number(1, 2)
    return Bodies(f"g[-{k}:] + g[:-{k}]", grid(f"g[(r - {k}) % h][c]"))


@family(fits=lambda h, w: w > 2)
def shift_right(draw: Draw) -> Bodies:
    k, a = draw.number(1, 2), draw.other()
    fill = ", ".join([str(a)] * k)
    return Bodies(f"[[{fill}] + row[:-{k}] for row in g]", grid(f"g[r][c - {k}] if c >= {k} else {a}"))


@family(fits=lambda h, w: w > 2)
def shift_left(draw: Draw) -> Bodies:
    k, a = draw.number(1, 2), draw.other()
    fill = ", ".join([str(a)] * k)
    return Bodies(f"[row[{k}:] + [{fill}] for row in g]", grid(f"g[r][c + {k}] if c + {k} < w else {a}"))


@family(fits=lambda h, w: h > 2)
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
