"""Families that compute a recursive function of the specification: loops, recursive calls, lemmas."""

from rlvr_exp.corpora.dafny.draw import Draw, plus
from rlvr_exp.corpora.dafny.family import Method, family, function, lemma

SELF = "$self"
"""Stands for the method's own name, which is drawn last."""


def _recurrence(d: Draw, step: str, base: int, floor: int | None, recursive: bool = True) -> Method:
    """F(0) = base, F(n) = step, where `$f` stands for F(n - 1) and `$n` for n. `floor`: its bound, if any."""
    n, r, i, f, arg = d.number(), d.result(), d.index(), d.function(), d.one("n", "k", "m")

    def at(value: str, so_far: str) -> str:
        return step.replace("$f", so_far).replace("$n", value)

    whole = function(f, f"{arg}: nat", "int", f"if {arg} == 0 then {base} else {at(arg, f'{f}({arg} - 1)')}")
    param, need = d.natural(n)
    bound = f"~ {r} >= {floor}" if floor is not None else f"~ {i} >= 0"
    after = f"""
{r} := {base};
var {i} := 0;
while {i} < {n}
@ 0 <= {i} <= {n}
@ {r} == {f}({i})
{bound}
  {i} := {i} + 1;
  {r} := {at(i, r)};
"""
    before = f"""
{r} := {base};
var {i} := 1;
while {i} <= {n}
@ 1 <= {i} <= {n} + 1
@ {r} == {f}({i} - 1)
{bound}
  {r} := {at(i, r)};
  {i} := {i} + 1;
~assert {i} == {n} + 1;
"""
    again = f"""
if {n} == 0
  {r} := {base};
else
  {r} := {SELF}({n} - 1);
  ~assert {r} == {f}({n} - 1);
  {r} := {at(n, r)};
"""
    return Method(
        param,
        f"{r}: int",
        requires=need,
        ensures=[d.equal(r, f"{f}({n})")],
        plain=[after, again] if recursive else [after],
        winded=[before],
        before=whole,
    )


@family("Sum", "Total", "Accumulate")
def sum_recurrence(d: Draw) -> Method:
    a, b, base = d.k(1, 6), d.k(0, 9), d.k(0, 5)
    term = plus(f"{a} * $n" if a > 1 else "$n", b)
    return _recurrence(d, d.one(f"$f + {term}", f"{term} + $f") if b == 0 else f"$f + {term}", base, base)


@family("Squares", "SumSq", "Pile")
def square_recurrence(d: Draw) -> Method:
    base, b = d.k(0, 5), d.k(0, 9)
    return _recurrence(d, d.one(f"$f + {plus('$n * $n', b)}", f"$f + ($n * $n + {b})"), base, base)


@family("Power", "Pow", "Repeat")
def power_recurrence(d: Draw) -> Method:
    a, b, base = d.k(2, 9), d.k(0, 9), d.k(1, 5)
    return _recurrence(d, d.one(f"{plus(f'{a} * $f', b)}", f"{plus(f'$f * {a}', b)}"), base, base)


@family("Factorial", "Fact", "Arrangements")
def factorial_recurrence(d: Draw) -> Method:
    base, b = d.k(1, 5), d.k(0, 9)
    return _recurrence(d, d.one(plus("$n * $f", b), plus("$f * $n", b)), base, None)


@family("Alternate", "Zigzag", "Toggle")
def alternating_recurrence(d: Draw) -> Method:
    a, base = d.k(2, 20), d.k(0, 5)
    return _recurrence(d, f"{a} * $n - $f" if d.chance(0.5) else f"{a} - $f", base, None)


@family("Parity", "Branching", "Odd")
def branching_recurrence(d: Draw) -> Method:
    k, a, b, base = d.k(2, 5), d.k(1, 9), d.k(1, 9), d.k(0, 5)
    return _recurrence(d, f"$f + (if $n % {k} == 0 then {a} else {b})", base, base, recursive=False)


@family("Fib", "Sequence", "Nth")
def fibonacci(d: Draw) -> Method:
    n, r, i, f, arg, t, u = (
        d.number(),
        d.result(),
        d.index(),
        d.function(),
        d.one("n", "k", "m"),
        d.temporary(),
        d.temporary(),
    )
    p, q, a = d.k(0, 5), d.k(1, 5), d.k(1, 4)
    older = f"{a} * $o" if a > 1 else "$o"
    whole = function(
        f,
        f"{arg}: nat",
        "int",
        f"if {arg} == 0 then {p} else if {arg} == 1 then {q} else {f}({arg} - 1) + {older.replace('$o', f'{f}({arg} - 2)')}",
    )
    param, need = d.natural(n)
    old = older.replace("$o", r)
    return Method(
        param,
        f"{r}: int",
        requires=need,
        ensures=[d.equal(r, f"{f}({n})")],
        plain=[
            f"""
{r} := {p};
var {t}, {i} := {q}, 0;
while {i} < {n}
@ {i} <= {n}
@ {r} == {f}({i})
@ {t} == {f}({i} + 1)
~ {i} >= 0
  {r}, {t} := {t}, {t} + {old};
  {i} := {i} + 1;
"""
        ],
        winded=[
            f"""
{r} := {p};
var {t} := {q};
var {i} := 0;
while {i} < {n}
@ {i} <= {n}
@ {r} == {f}({i}) && {t} == {f}({i} + 1)
~ {r} >= 0 && {t} >= 0
  var {u} := {t} + {old};
  {r} := {t};
  {t} := {u};
  {i} := {i} + 1;
"""
        ],
        before=whole,
    )


@family("Triangle", "Gauss", "Closed")
def closed_sum(d: Draw) -> Method:
    n, r, i, a = d.number(), d.result(), d.index(), d.k(1, 9)
    c = d.k(0, 9)
    param, need = d.natural(n)

    def closed(value: str) -> str:
        return plus(f"{a} * {value} * ({value} + 1)" if a > 1 else f"{value} * ({value} + 1)", 2 * c)

    term = f"{a} * {i}" if a > 1 else i
    return Method(
        param,
        f"{r}: int",
        requires=need,
        ensures=[d.equal(f"2 * {r}", closed(n))],
        plain=[
            f"""
{r} := {c};
var {i} := 0;
while {i} < {n}
@ {i} <= {n}
@ 2 * {r} == {closed(i)}
~ {r} >= {c}
  {i} := {i} + 1;
  {r} := {r} + {term};
"""
        ],
        winded=[
            f"""
{r} := {c};
var {i} := 1;
while {i} <= {n}
@ 1 <= {i} <= {n} + 1
@ 2 * {r} == {plus(f"{a} * ({i} - 1) * {i}" if a > 1 else f"({i} - 1) * {i}", 2 * c)}
~ {i} > 0
  {r} := {r} + {term};
  {i} := {i} + 1;
"""
        ],
    )


@family("Root", "Sqrt", "Floor")
def square_root(d: Draw) -> Method:
    n, r, c = d.number(), d.result(), d.k(0, 9)
    param, need = d.natural(n)
    shown, above = plus(f"{r} * {r}", c), plus(f"({r} + 1) * ({r} + 1)", c)
    return Method(
        param,
        f"{r}: int",
        requires=[*need, d.least(n, c)] if c else need,
        ensures=[d.one(f"{shown} <= {n}", f"{n} >= {shown}"), d.one(f"{n} < {above}", f"{above} > {n}")],
        plain=[f"{r} := 0;\nwhile {above} <= {n}\n@ {shown} <= {n}\n  {r} := {r} + 1;\n~assert {n} < {above};"],
        winded=[
            f"""
{r} := 0;
while true
@ {shown} <= {n}
@ decreases {n} - {r}
  if {above} > {n}
    ~assert {shown} <= {n};
    break;
  {r} := {r} + 1;
"""
        ],
    )


def _by_lemma(d: Draw, step: str, closed: str, ways: tuple[str, ...], base: int, winded: str = "") -> Method:
    """A closed form that needs the given lemma; `$n`, `$f` as above, `$r` the result."""
    n, r, i, f, law = d.number(), d.result(), d.index(), d.function(), d.one("Closed", "Law", "Formula", "Fact")
    arg = d.one("n", "k", "m")
    value = step.replace("$f", f"{f}({arg} - 1)").replace("$n", arg)
    whole = function(f, f"{arg}: nat", "int", f"if {arg} == 0 then {base} else {value}")
    claim = closed.replace("$n", arg).replace("$f", f"{f}({arg})")
    known = lemma(law, f"{arg}: nat", f"ensures {claim}")
    param, need = d.natural(n)
    bodies = [way.replace("$r", r).replace("$n", n) for way in ways]
    loop = f"""
{r} := {base};
var {i} := 0;
while {i} < {n}
@ {i} <= {n}
@ {r} == {f}({i})
~ {i} >= 0
  {i} := {i} + 1;
  {r} := {step.replace("$f", r).replace("$n", i)};
"""
    return Method(
        param,
        f"{r}: int",
        requires=need,
        ensures=[d.equal(r, f"{f}({n})")],
        plain=[f"{bodies[0]}\n@{law}({n});", f"@{law}({n});\n{bodies[0]}\n~assert {r} == {f}({n});"],
        winded=[loop, *(f"{way}\n@{law}({n});" for way in bodies[1:])],
        before=whole + known,
    )


@family("Linear", "Line", "Progress")
def linear_by_lemma(d: Draw) -> Method:
    a, base = d.k(2, 12), d.k(0, 20)
    form = plus(f"{a} * $n", base)
    return _by_lemma(d, f"$f + {a}", f"$f == {form}", (f"$r := {form};", f"$r := {plus(f'$n * {a}', base)};"), base)


@family("Odds", "Quadratic", "Layers")
def square_by_lemma(d: Draw) -> Method:
    a, base = d.k(1, 6), d.k(0, 9)
    form = plus(f"{a} * $n * $n" if a > 1 else "$n * $n", base)
    step = f"$f + {2 * a} * $n - {a}"
    return _by_lemma(d, step, f"$f == {form}", (f"$r := {form};",), base)


@family("Same", "Constant", "Still")
def constant_by_lemma(d: Draw) -> Method:
    c, a = d.k(1, 40), d.k(2, 6)
    step = d.one(f"{a} * $f - {(a - 1) * c}", f"{2 * c} - $f")
    return _by_lemma(d, step, f"$f == {c}", (f"$r := {c};",), c)


@family("Grows", "Bound", "Over")
def bound_by_lemma(d: Draw) -> Method:
    """A positive number times a term: the lemma states that a function stays above a bound."""
    n, r, f, law, arg = (
        d.number(),
        d.result(),
        d.function(),
        d.one("Above", "Grows", "Low", "Keeps"),
        d.one("n", "k", "m"),
    )
    a, base, b, c = d.k(2, 9), d.k(1, 9), d.k(1, 9), d.k(1, 20)
    step = f"{a} * {f}({arg} - 1) + {b}"
    whole = function(f, f"{arg}: nat", "int", f"if {arg} == 0 then {base} else {step}")
    known = lemma(law, f"{arg}: nat", f"ensures {f}({arg}) >= {base}")
    param, need = d.natural(n)
    return Method(
        f"{param}, x: int",
        f"{r}: int",
        requires=[*need, d.one(f"x >= {f}({n})", f"{f}({n}) <= x")],
        ensures=[d.one(f"{r} >= {base + c}", f"{base + c} <= {r}"), d.one(f"{r} == x + {c}", f"{r} - {c} == x")],
        plain=[f"@{law}({n});\n{r} := x + {c};", f"{r} := x + {c};\n@{law}({n});\n~assert x >= {base};"],
        winded=[f"{r} := {c};\n@{law}({n});\n{r} := {r} + x;\n~assert {r} >= {base + c};"],
        before=whole + known,
    )
