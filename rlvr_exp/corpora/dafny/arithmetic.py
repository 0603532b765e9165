"""Families without conditions and loops, or with a loop only where a formula would suffice."""

from rlvr_exp.corpora.dafny.draw import Draw, plus
from rlvr_exp.corpora.dafny.family import Method, family


@family("Affine", "Scale", "Linear", "Convert")
def affine(d: Draw) -> Method:
    x, r, t = d.value(), d.result(), d.temporary()
    a, b, s, low = d.k(2, 9), d.k(1, 30), d.k(1, 4), d.k(0, 9)
    bounded = d.chance(0.6)
    need = [d.least(x, low)] if bounded else []
    known = f"~assert {r} >= {a * low + b};" if bounded else f"~assert {r} - {b} == {a} * {x};"
    return Method(
        f"{x}: int",
        f"{r}: int",
        requires=need,
        ensures=[
            d.one(d.equal(r, f"{a} * {x} + {b}", f"{x} * {a} + {b}", f"{b} + {a} * {x}"), f"{r} - {b} == {a} * {x}")
        ],
        plain=[f"{r} := {a} * {x} + {b};\n{known}"],
        winded=[
            f"var {t} := {x} + {s};\n~assert {t} - {s} == {x};\n{r} := {plus(f'{a} * {t}', b - a * s)};\n{known}",
            f"var {t} := {a} * {x};\n~assert {t} == {a} * {x};\n{r} := {t} + {b};\n{known}",
        ],
    )


@family("Combine", "Mix", "Weigh", "Cost")
def affine_two(d: Draw) -> Method:
    (x, y), r, t = d.values(2), d.result(), d.temporary()
    a, b, c = d.k(2, 9), d.k(2, 9), d.k(1, 20)
    p, q = d.distinct(2, 0, 8)
    bounded = d.chance(0.5)
    known = f"~assert {r} >= {a * p + b * q + c};" if bounded else f"~assert {r} - {c} == {a} * {x} + {b} * {y};"
    return Method(
        f"{x}: int, {y}: int",
        f"{r}: int",
        requires=[d.least(x, p), d.least(y, q)] if bounded else [],
        ensures=[
            d.equal(r, f"{a} * {x} + {b} * {y} + {c}", f"{c} + {a} * {x} + {b} * {y}", f"{a} * {x} + ({b} * {y} + {c})")
        ],
        plain=[f"{r} := {a} * {x} + {b} * {y} + {c};\n{known}"],
        winded=[
            f"var {t} := {a} * {x};\n~assert {t} == {a} * {x};\n{t} := {t} + {b} * {y};\n{r} := {t} + {c};\n{known}",
            f"var {t} := {x} + {y};\n{r} := {plus(f'{a} * {t}', 0)} + {b - a} * {y} + {c};\n{known}"
            if b > a
            else f"var {t} := {b} * {y} + {c};\n~assert {t} - {c} == {b} * {y};\n{r} := {a} * {x} + {t};\n{known}",
        ],
    )


@family("Swap", "Exchange", "Flip")
def swap(d: Draw) -> Method:
    (x, y), (p, q), t = d.values(2), (d.result(), d.result()), d.temporary()
    c = d.k(1, 12)
    shifted = d.chance(0.6)
    right = f"{x} + {c}" if shifted else x
    return Method(
        f"{x}: int, {y}: int",
        f"{p}: int, {q}: int",
        ensures=[d.equal(p, y), d.equal(q, right)],
        plain=[f"{p}, {q} := {y}, {right};", f"{p} := {y};\n{q} := {right};\n~assert {p} == {y};"],
        winded=[
            f"var {t} := {x};\n{p} := {y};\n~assert {t} == {x};\n{q} := {plus(t, c if shifted else 0)};\n~assert {q} == {right};",
            f"{p} := {x} + {y};\n{q} := {p} - {y};\n~assert {q} == {x};\n{p} := {p} - {q};\n~assert {p} == {y};"
            + (f"\n{q} := {q} + {c};" if shifted else ""),
        ],
    )


@family("SumDiff", "Both", "Pair")
def sum_and_difference(d: Draw) -> Method:
    (x, y), (s, m) = d.values(2), (d.result(), d.result())
    a = d.k(1, 9)
    first = d.one(f"{x} + {y}", f"{y} + {x}")
    scaled = f"{a} * {x} - {y}" if a > 1 else f"{x} - {y}"
    return Method(
        f"{x}: int, {y}: int",
        f"{s}: int, {m}: int",
        ensures=[d.equal(s, first), d.one(d.equal(m, scaled), f"{m} + {y} == {scaled.rpartition(' - ')[0]}")],
        plain=[f"{s} := {x} + {y};\n{m} := {scaled};", f"{s}, {m} := {x} + {y}, {scaled};\n~assert {s} - {x} == {y};"],
        winded=[
            f"{s} := {x} + {y};\n~assert {s} - {y} == {x};\n{m} := {a + 1} * {x} - {s};\n~assert {m} + {s} == {a + 1} * {x};",
            f"{m} := {scaled};\n~assert {m} + {y} == {scaled.rpartition(' - ')[0]};\n{s} := {m} + 2 * {y};\n"
            + (f"{s} := {s} - {a - 1} * {x};" if a > 1 else f"~assert {s} - {y} == {x};"),
        ],
    )


@family("Square", "Area", "Grow")
def square_of_sum(d: Draw) -> Method:
    x, r, t = d.value(), d.result(), d.temporary()
    c, b = d.k(1, 9), d.k(0, 9)
    need, low = ([d.least(x, 0)], True) if d.chance(0.5) else ([], False)
    known = f"~assert {r} >= {c * c + b};" if low else f"~assert {plus(r, -b)} >= 0;"
    return Method(
        f"{x}: int",
        f"{r}: int",
        requires=need,
        ensures=[d.equal(r, plus(f"({x} + {c}) * ({x} + {c})", b), plus(f"({c} + {x}) * ({x} + {c})", b))],
        plain=[f"{r} := {plus(f'({x} + {c}) * ({x} + {c})', b)};\n{known}"],
        winded=[
            f"var {t} := {x} + {c};\n{r} := {plus(f'{t} * {t}', b)};\n{known}",
            f"{r} := {x} * {x} + {2 * c} * {x} + {c * c + b};\n~assert {plus(r, -b)} == ({x} + {c}) * ({x} + {c});",
        ],
    )


@family("Halve", "Share", "Quotient", "Divide")
def quotient(d: Draw) -> Method:
    x, r, t, k = d.value(), d.result(), d.temporary(), d.k(2, 9)
    param, need = d.natural(x)
    within = [f"{k} * {r} <= {x}", d.one(f"{x} < {k} * {r} + {k}", f"{x} - {k} * {r} < {k}", f"{x} < {k} * ({r} + 1)")]
    return Method(
        param,
        f"{r}: int",
        requires=need,
        ensures=[d.equal(r, f"{x} / {k}")] if d.chance(0.5) else within,
        plain=[f"{r} := {x} / {k};\n~assert {k} * {r} <= {x};"],
        winded=[
            f"""
{r} := 0;
var {t} := {x};
while {t} >= {k}
@ {t} >= 0
@ {x} == {k} * {r} + {t}
~ {r} <= {x}
  {t} := {t} - {k};
  {r} := {r} + 1;
""",
            f"""
{r} := 0;
while {k} * {r} + {k} <= {x}
@ {k} * {r} <= {x}
~ 0 <= {r} <= {x}
  {r} := {r} + 1;
~assert {x} - {k} * {r} < {k};
""",
        ],
    )


@family("Remainder", "Rest", "Mod", "Clock")
def remainder(d: Draw) -> Method:
    x, r, t, k = d.value(), d.result(), d.temporary(), d.k(2, 9)
    param, need = d.natural(x)
    c = d.k(1, 9) if d.chance(0.5) else 0
    return Method(
        param,
        f"{r}: int",
        requires=need,
        ensures=[d.equal(r, f"{x} % {k} + {c}" if c else f"{x} % {k}")],
        plain=[f"{r} := {plus(f'{x} % {k}', c)};\n~assert {r} < {k + c};"],
        winded=[
            f"var {t} := {x} / {k};\n~assert {k} * {t} <= {x};\n{r} := {plus(f'{x} - {k} * {t}', c)};\n~assert {r} < {k + c};",
            f"var {t} := {x} % {k};\n~assert {t} < {k};\n{r} := {plus(t, c)};\n~assert {r} >= {c};",
        ],
    )


@family("DivMod", "Split", "Parts")
def quotient_and_remainder(d: Draw) -> Method:
    x, q, m, k = d.value(), d.result(), d.result(), d.k(2, 12)
    param, need = d.natural(x)
    whole = d.one(f"{x} == {k} * {q} + {m}", f"{k} * {q} + {m} == {x}", f"{x} - {m} == {k} * {q}")
    return Method(
        param,
        f"{q}: int, {m}: int",
        requires=need,
        ensures=[whole, f"0 <= {m} < {k}"],
        plain=[f"{q} := {x} / {k};\n{m} := {x} % {k};\n~assert {m} < {k};", f"{q}, {m} := {x} / {k}, {x} % {k};"],
        winded=[
            f"""
{q} := 0;
{m} := {x};
while {m} >= {k}
@ {m} >= 0
@ {x} == {k} * {q} + {m}
~ {m} <= {x}
~ {q} >= 0
  {m} := {m} - {k};
  {q} := {q} + 1;
~assert {m} <= {k - 1};
""",
            f"{q} := {x} / {k};\n~assert {k} * {q} <= {x};\n{m} := {x} - {k} * {q};\n~assert {m} <= {k - 1};",
        ],
    )


@family("Stride", "Walk", "Steps")
def stride(d: Draw) -> Method:
    n, r, i, a, b = d.number(), d.result(), d.index(), d.k(2, 9), d.k(0, 20)
    param, need = d.natural(n)
    return Method(
        param,
        f"{r}: int",
        requires=need,
        ensures=[d.equal(r, plus(f"{a} * {n}", b), plus(f"{n} * {a}", b)), f"{r} >= {b}"][: d.k(1, 2)],
        plain=[f"{r} := {plus(f'{a} * {n}', b)};\n~assert {r} >= {b};"],
        winded=[
            f"""
{r} := {b};
var {i} := 0;
while {i} < {n}
@ {i} <= {n}
@ {r} == {plus(f"{a} * {i}", b)}
~ {r} >= {b}
  {r} := {r} + {a};
  {i} := {i} + 1;
""",
            f"""
{r} := {plus(f"{a} * {n}", b)};
~assert {r} - {a} * {n} == {b};
var {i} := {r} - {b};
~assert {i} == {a} * {n};
""",
        ],
    )


@family("Counters", "Tally", "Twin")
def two_counters(d: Draw) -> Method:
    n, p, q, a, b = d.number(), d.result(), d.result(), d.k(2, 9), d.k(1, 9)
    param, need = d.natural(n)
    return Method(
        param,
        f"{p}: int, {q}: int",
        requires=need,
        ensures=[d.equal(p, n), d.one(d.equal(q, f"{a} * {n} + {b}"), d.equal(q, f"{a} * {p} + {b}"))],
        plain=[
            f"{p} := {n};\n{q} := {a} * {n} + {b};\n~assert {q} - {b} == {a} * {p};",
            f"{p}, {q} := {n}, {a} * {n} + {b};",
        ],
        winded=[
            f"""
{p} := 0;
{q} := {b};
while {p} < {n}
@ {p} <= {n}
@ {q} == {a} * {p} + {b}
~ {q} >= {b}
  {p} := {p} + 1;
  {q} := {q} + {a};
""",
            f"""
{p}, {q} := {n}, {b};
while {p} > 0
@ {p} >= 0
@ {q} == {a} * ({n} - {p}) + {b}
  {p}, {q} := {p} - 1, {q} + {a};
{p} := {n};
""",
        ],
    )


@family("Between", "Middle", "Inside")
def between(d: Draw) -> Method:
    (x, y), r = d.values(2), d.result()
    a, b = d.k(1, 5), d.k(1, 9)
    gap = a + b
    return Method(
        f"{x}: int, {y}: int",
        f"{r}: int",
        requires=[d.one(f"{x} + {gap} < {y}", f"{y} > {x} + {gap}", f"{y} - {x} > {gap}")],
        ensures=[d.one(f"{x} + {a} < {r}", f"{r} > {x} + {a}"), d.one(f"{r} + {b} < {y} + 2", f"{r} < {y} - {b} + 2")],
        plain=[f"{r} := {x} + {a + 1};\n~assert {r} <= {y};"],
        winded=[
            f"{r} := {y} - {b};\n~assert {r} > {x} + {a};",
            f"{r} := {x};\n{r} := {r} + {a};\n{r} := {r} + 1;\n~assert {r} - {a + 1} == {x};",
        ],
    )


@family("Undo", "Solve", "Invert")
def invert(d: Draw) -> Method:
    (x, y), r, t = d.values(2), d.result(), d.temporary()
    a, c = d.k(1, 9), d.k(1, 20)
    shown = f"{a} * {y}" if a > 1 else y
    return Method(
        f"{x}: int, {y}: int",
        f"{r}: int",
        ensures=[d.one(f"{r} + {c} == {x} - {shown}", f"{r} + {shown} + {c} == {x}", f"{x} == {c} + {r} + {shown}")],
        plain=[f"{r} := {x} - {shown} - {c};\n~assert {r} + {c} + {shown} == {x};"],
        winded=[
            f"var {t} := {shown} + {c};\n~assert {t} - {c} == {shown};\n{r} := {x} - {t};\n~assert {r} + {t} == {x};",
            f"var {t} := {x} - {c};\n~assert {t} + {c} == {x};\n{r} := {t} - {shown};\n~assert {r} + {shown} == {t};",
        ],
    )
