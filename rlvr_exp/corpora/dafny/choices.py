"""Families whose bodies choose: by `if` statements, or by an expression where that suffices."""

from rlvr_exp.corpora.dafny.draw import Draw, plus
from rlvr_exp.corpora.dafny.family import Method, family


def branches(condition: str, then: str, other: str) -> str:
    return f"if {condition}\n  {then}\nelse\n  {other}\n"


def _extreme(d: Draw, sign: str) -> Method:
    """The larger (`>`) or smaller (`<`) of two, shifted by a constant."""
    (x, y), r, c = d.values(2), d.result(), d.k(0, 9) * d.k(0, 1)
    xs, ys = plus(x, c), plus(y, c)
    bounds = [d.one(f"{r} {sign}= {v}", f"{v} {sign.translate(FLIP)}= {r}") for v in (xs, ys)]
    by_cases = [*bounds, f"{r} == {xs} || {r} == {ys}"]
    by_value = [
        d.one(f"{r} == if {x} {sign} {y} then {xs} else {ys}", f"{r} == (if {y} {sign} {x} then {ys} else {xs})")
    ]
    return Method(
        f"{x}: int, {y}: int",
        f"{r}: int",
        ensures=by_cases if d.chance(0.6) else by_value,
        plain=[
            f"{r} := if {x} {sign} {y} then {xs} else {ys};\n~assert {bounds[0]};",
            branches(f"{x} {sign} {y}", f"{r} := {xs};", f"{r} := {ys};\n  ~assert {y} {sign}= {x};"),
        ],
        winded=[
            f"{r} := {x};\nif {y} {sign} {r}\n  {r} := {y};\n~assert {r} {sign}= {y};\n"
            + (f"{r} := {r} + {c};" if c else ""),
            f"{r} := {ys};\n~assert {plus(r, -c)} == {y};\nif {x} {sign} {y}\n  {r} := {xs};\n~assert {bounds[1]};",
        ],
    )


FLIP = str.maketrans("<>", "><")


@family("Max", "Larger", "Greater")
def larger(d: Draw) -> Method:
    return _extreme(d, ">")


@family("Min", "Smaller", "Lesser")
def smaller(d: Draw) -> Method:
    return _extreme(d, "<")


def _extreme_of_three(d: Draw, sign: str) -> Method:
    (x, y, z), r = d.values(3), d.result()
    over = [f"{r} {sign}= {v}" for v in (x, y, z)]
    bounds = over if d.chance(0.6) else [" && ".join(over)]
    return Method(
        f"{x}: int, {y}: int, {z}: int",
        f"{r}: int",
        ensures=[*bounds, d.one(f"{r} == {x} || {r} == {y} || {r} == {z}", f"{r} == {z} || {r} == {x} || {r} == {y}")],
        plain=[
            f"{r} := {x};\nif {y} {sign} {r}\n  {r} := {y};\nif {z} {sign} {r}\n  {r} := {z};\n~assert {r} {sign}= {y};"
        ],
        winded=[
            f"""
if {x} {sign}= {y} && {x} {sign}= {z}
  {r} := {x};
else if {y} {sign}= {z}
  {r} := {y};
  ~assert {r} {sign}= {x};
else
  {r} := {z};
""",
            f"""
if {x} {sign} {y}
  {r} := if {x} {sign} {z} then {x} else {z};
  ~assert {r} {sign}= {x};
else
  {r} := if {y} {sign} {z} then {y} else {z};
~assert {r} {sign}= {y};
""",
        ],
    )


@family("Max3", "Largest", "Top")
def largest_of_three(d: Draw) -> Method:
    return _extreme_of_three(d, ">")


@family("Min3", "Smallest", "Least")
def smallest_of_three(d: Draw) -> Method:
    return _extreme_of_three(d, "<")


@family("Abs", "Magnitude", "Distance")
def absolute(d: Draw) -> Method:
    x, r, c = d.value(), d.result(), d.k(0, 9)
    y = plus(x, -c)
    both = [f"{x} >= {c} ==> {r} == {y}", f"{x} < {c} ==> {r} == {c} - {x}" if c else f"{x} < 0 ==> {r} == -{x}"]
    other = both[1].rpartition("== ")[2]
    loose = [d.least(r, 0), d.one(f"{r} == {y} || {r} == {other}", f"{r} == {other} || {r} == {y}")]
    return Method(
        f"{x}: int",
        f"{r}: int",
        ensures=both if d.chance(0.5) else loose,
        plain=[
            f"{r} := if {x} < {c} then {other} else {y};\n~assert {r} >= 0;",
            branches(f"{x} < {c}", f"{r} := {other};", f"{r} := {y};"),
        ],
        winded=[
            f"{r} := {y};\nif {r} < 0\n  ~assert {x} < {c};\n  {r} := -{r};\n~assert {r} >= 0;",
            f"if {x} >= {c}\n  {r} := {y};\n  ~assert {r} + {c} == {x};\nelse\n  {r} := {other};\n  ~assert {r} > 0;",
        ],
    )


@family("Sign", "Direction", "Compare")
def sign(d: Draw) -> Method:
    x, r, c = d.value(), d.result(), d.k(0, 12)
    down, mid, up = d.distinct(3, 0, 9) if d.chance(0.7) else (-1, 0, 1)
    low, same, high = f"{x} < {c}", f"{x} == {c}", f"{x} > {c}"
    return Method(
        f"{x}: int",
        f"{r}: int",
        ensures=[f"{low} ==> {r} == {down}", f"{same} ==> {r} == {mid}", f"{high} ==> {r} == {up}"],
        plain=[f"{r} := if {low} then {down} else if {same} then {mid} else {up};\n~assert {r} <= {up};"],
        winded=[
            f"if {low}\n  {r} := {down};\nelse if {same}\n  {r} := {mid};\nelse\n  ~assert {high};\n  {r} := {up};\n~assert {r} >= {down};",
            f"{r} := {mid};\nif {low}\n  {r} := {down};\nif {high}\n  {r} := {up};\n~assert {same} ==> {r} == {mid};",
        ],
    )


@family("Clamp", "Limit", "Restrict")
def clamp(d: Draw) -> Method:
    x, r = d.value(), d.result()
    low, high = d.distinct(2, 0, 40)
    inside = d.one(f"{low} <= {x} <= {high}", f"{low} <= {x} && {x} <= {high}")
    cases = [f"{x} < {low} ==> {r} == {low}", f"{x} > {high} ==> {r} == {high}", f"{inside} ==> {r} == {x}"]
    return Method(
        f"{x}: int",
        f"{r}: int",
        ensures=cases if d.chance(0.5) else [f"{low} <= {r} <= {high}", cases[2]],
        plain=[f"{r} := if {x} < {low} then {low} else if {x} > {high} then {high} else {x};\n~assert {r} <= {high};"],
        winded=[
            f"{r} := {x};\nif {r} < {low}\n  {r} := {low};\nif {r} > {high}\n  {r} := {high};\n~assert {low} <= {r} <= {high};",
            f"if {x} < {low}\n  {r} := {low};\nelse if {x} > {high}\n  {r} := {high};\nelse\n  ~assert {x} <= {high};\n  {r} := {x};",
        ],
    )


@family("Grade", "Level", "Band", "Fee")
def bands(d: Draw) -> Method:
    x, r = d.value(), d.result()
    (p, q), (low, mid, high) = d.distinct(2, 5, 60), d.distinct(3, 1, 20)
    middle = d.one(f"{p} <= {x} < {q}", f"{p} <= {x} && {x} < {q}")
    return Method(
        f"{x}: int",
        f"{r}: int",
        ensures=[f"{x} < {p} ==> {r} == {low}", f"{middle} ==> {r} == {mid}", f"{x} >= {q} ==> {r} == {high}"],
        plain=[f"{r} := if {x} < {p} then {low} else if {x} < {q} then {mid} else {high};\n~assert {r} >= {low};"],
        winded=[
            f"if {x} < {p}\n  {r} := {low};\nelse if {x} < {q}\n  ~assert {x} >= {p};\n  {r} := {mid};\nelse\n  {r} := {high};",
            f"{r} := {low};\nif {x} >= {p}\n  {r} := {mid};\nif {x} >= {q}\n  {r} := {high};\n~assert {r} <= {high};",
            f"{r} := {low};\nif {x} >= {p}\n  {r} := {r} + {mid - low};\nif {x} >= {q}\n  {r} := {r} + {high - mid};\n~assert {r} >= {low};",
        ],
    )


@family("InRange", "Within", "Holds", "Fits")
def in_range(d: Draw) -> Method:
    x, r = d.value(), d.result()
    low, high = d.distinct(2, 0, 50)
    claim = d.one(f"{low} <= {x} < {high}", f"{low} <= {x} && {x} < {high}", f"{x} >= {low} && {x} < {high}")
    return Method(
        f"{x}: int",
        f"{r}: bool",
        ensures=[d.one(f"{r} <==> {claim}", f"{r} == ({claim})", f"({claim}) <==> {r}")],
        plain=[f"{r} := {low} <= {x} < {high};\n~assert {r} ==> {x} >= {low};"],
        winded=[
            branches(f"{x} < {low} || {x} >= {high}", f"{r} := false;", f"~assert {x} < {high};\n  {r} := true;"),
            f"{r} := true;\nif {x} < {low}\n  {r} := false;\nif {x} >= {high}\n  {r} := false;\n~assert {r} ==> {x} <= {high - 1};",
        ],
    )


@family("Divides", "Multiple", "IsEven", "Test")
def divisible(d: Draw) -> Method:
    x, r, t, k = d.value(), d.result(), d.temporary(), d.k(2, 9)
    m = d.k(0, k - 1)
    param, need = d.natural(x)
    claim = f"{x} % {k} == {m}"
    return Method(
        param,
        f"{r}: bool",
        requires=need,
        ensures=[d.one(f"{r} <==> {claim}", f"{r} == ({claim})", f"{claim} <==> {r}")],
        plain=[f"{r} := {claim};\n~assert {r} ==> {claim};"],
        winded=[
            branches(claim, f"{r} := true;", f"~assert {x} % {k} != {m};\n  {r} := false;"),
            f"var {t} := {x} % {k};\n~assert {t} < {k};\n{r} := {t} == {m};",
        ],
    )


@family("Either", "AnyOf", "Check")
def divisible_by_either(d: Draw) -> Method:
    x, r = d.value(), d.result()
    p, q = d.distinct(2, 2, 9)
    op = d.one("||", "&&")
    first, second = f"{x} % {p} == 0", f"{x} % {q} == 0"
    either = branches(first, f"{r} := true;", f"{r} := {second};")
    both = branches(first, f"{r} := {second};", f"{r} := false;")
    return Method(
        f"{x}: int",
        f"{r}: bool",
        ensures=[d.one(f"{r} <==> {first} {op} {second}", f"{r} <==> ({second} {op} {first})")],
        plain=[f"{r} := {first} {op} {second};\n~assert {first} {op} {second} ==> {r};"],
        winded=[
            either if op == "||" else both,
            f"{r} := {first};\nif {'!' if op == '||' else ''}{r}\n  {r} := {second};\n~assert {r} <==> {first} {op} {second};",
        ],
    )


@family("Gate", "Logic", "Decide")
def gate(d: Draw) -> Method:
    (p, q, s), r = d.values(3), d.result()
    inner = d.one(
        f"{q} && {s}", f"{q} || {s}", f"!{q} || {s}", f"{q} == {s}", f"{q} && !{s}", f"{q} ==> {s}", f"{q} != {s}"
    )
    claim, then, other = d.rng.choice(
        [
            (f"{p} && ({inner})", inner, "false"),
            (f"{p} || ({inner})", "true", inner),
            (f"{p} ==> ({inner})", inner, "true"),
            (f"!{p} && ({inner})", "false", inner),
            (f"!({inner}) || {p}", "true", f"!({inner})"),
            (f"{p} == ({inner})", inner, f"!({inner})"),
        ]
    )
    return Method(
        f"{p}: bool, {q}: bool, {s}: bool",
        f"{r}: bool",
        ensures=[d.one(f"{r} <==> ({claim})", f"{r} == ({claim})", f"({claim}) <==> {r}")],
        plain=[f"{r} := {claim};\n~assert {p} ==> {r} == ({then});"],
        winded=[
            branches(p, f"{r} := {then};", f"{r} := {other};"),
            f"{r} := {other};\nif {p}\n  {r} := {then};\n~assert {p} ==> {r} == ({then});",
        ],
    )


@family("Price", "Toll", "Bonus", "Bend")
def piecewise(d: Draw) -> Method:
    x, r, c = d.value(), d.result(), d.k(1, 30)
    a, b, e = d.k(2, 9), d.k(1, 20), d.k(1, 20)
    high, low = f"{a} * {x} + {b}", f"{x} + {e}"
    return Method(
        f"{x}: int",
        f"{r}: int",
        ensures=[
            d.one(f"{x} >= {c} ==> {r} == {high}", f"{c} <= {x} ==> {r} == {high}"),
            f"{x} < {c} ==> {r} == {low}",
        ],
        plain=[
            f"{r} := if {x} >= {c} then {high} else {low};\n~assert {x} >= {c} ==> {r} >= {a * c + b};",
            branches(f"{x} < {c}", f"{r} := {low};\n  ~assert {r} < {c + e};", f"{r} := {high};"),
        ],
        winded=[
            f"{r} := {low};\n~assert {r} - {e} == {x};\nif {x} >= {c}\n  {r} := {high};\n  ~assert {r} >= {a * c + b};",
            f"{r} := {x};\nif {x} >= {c}\n  {r} := {a} * {r};\n  {r} := {r} + {b};\nelse\n  {r} := {r} + {e};\n~assert {x} < {c} ==> {r} < {c + e};",
        ],
    )


@family("Hinge", "Above", "Excess", "Cut")
def hinge(d: Draw) -> Method:
    x, r, t = d.value(), d.result(), d.temporary()
    c, a = d.k(1, 30), d.k(1, 6)
    shown = f"{a} * ({x} - {c})" if a > 1 else f"{x} - {c}"
    return Method(
        f"{x}: int",
        f"{r}: int",
        ensures=[f"{x} <= {c} ==> {r} == 0", d.one(f"{x} > {c} ==> {r} == {shown}", f"{c} < {x} ==> {r} == {shown}")],
        plain=[f"{r} := if {x} > {c} then {shown} else 0;\n~assert {r} >= 0;"],
        winded=[
            f"{r} := 0;\nif {x} > {c}\n  {r} := {shown};\n~assert {r} >= 0;",
            f"var {t} := {x} - {c};\n~assert {t} + {c} == {x};\nif {t} < 0\n  {t} := 0;\n{r} := {f'{a} * ' if a > 1 else ''}{t};",
        ],
    )


@family("Order", "SortTwo", "Arrange")
def sort_two(d: Draw) -> Method:
    (x, y), (p, q), t, c = d.values(2), (d.result(), d.result()), d.temporary(), d.k(0, 12)
    up = d.chance(0.5)
    rel, strict = ("<=", "<") if up else (">=", ">")
    u, v = plus(x, c), plus(y, c)
    first, second = f"({p} == {u} && {q} == {v})", f"({p} == {v} && {q} == {u})"
    return Method(
        f"{x}: int, {y}: int",
        f"{p}: int, {q}: int",
        ensures=[
            d.one(f"{p} {rel} {q}", f"{q} {rel.translate(FLIP)} {p}"),
            d.one(f"{first} || {second}", f"{second} || {first}"),
        ],
        plain=[
            branches(
                f"{x} {rel} {y}", f"{p}, {q} := {u}, {v};", f"{p}, {q} := {v}, {u};\n  ~assert {q} - {p} == {x} - {y};"
            )
        ],
        winded=[
            f"{p}, {q} := {u}, {v};\nif {q} {strict} {p}\n  {p}, {q} := {q}, {p};\n~assert {p} + {q} == {plus(f'{x} + {y}', 2 * c)};",
            f"{p} := {u};\n{q} := {v};\nif {q} {strict} {p}\n  var {t} := {p};\n  {p} := {q};\n  {q} := {t};\n~assert {p} {rel} {q};",
        ],
    )


@family("Gap", "Apart", "Spread")
def difference(d: Draw) -> Method:
    (x, y), r, a = d.values(2), d.result(), d.k(1, 5)
    up, down = (f"{a} * ({x} - {y})", f"{a} * ({y} - {x})") if a > 1 else (f"{x} - {y}", f"{y} - {x}")
    cases = [d.one(f"{x} >= {y} ==> {r} == {up}", f"{y} <= {x} ==> {r} == {up}"), f"{x} < {y} ==> {r} == {down}"]
    return Method(
        f"{x}: int, {y}: int",
        f"{r}: int",
        ensures=cases if d.chance(0.6) else [f"{r} == if {x} < {y} then {down} else {up}"],
        plain=[
            f"{r} := if {x} < {y} then {down} else {up};\n~assert {r} >= 0;",
            branches(f"{x} < {y}", f"{r} := {down};", f"{r} := {up};"),
        ],
        winded=[
            f"{r} := {up};\nif {x} < {y}\n  ~assert {r} < 0;\n  {r} := -{r};\n~assert {r} >= 0;",
            f"if {x} > {y}\n  {r} := {up};\nelse if {x} < {y}\n  {r} := {down};\nelse\n  {r} := 0;\n~assert {r} >= 0;",
        ],
    )
