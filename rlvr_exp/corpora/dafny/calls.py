"""Families that use declarations before the method: other methods and functions."""

from rlvr_exp.corpora.dafny.draw import Draw, plus
from rlvr_exp.corpora.dafny.family import Method, family, function


def method(name: str, params: str, returns: str, ensures: str, code: str) -> str:
    return f"method {name}({params}) returns ({returns})\n  ensures {ensures}\n{{\n  {code}\n}}\n"


@family("Twice", "Again", "AddTwo")
def call_twice(d: Draw) -> Method:
    x, r, t, c, b = d.value(), d.result(), d.temporary(), d.k(1, 20), d.k(0, 9)
    step = d.one("Inc", "Add", "Up", "Next")
    given = method(step, "a: int", "b: int", f"b == a + {c}", f"b := a + {c};")
    return Method(
        f"{x}: int",
        f"{r}: int",
        ensures=[d.equal(r, f"{x} + {2 * c + b}", f"{2 * c + b} + {x}")],
        plain=[f"{r} := {x} + {2 * c + b};\n~assert {r} - {2 * c + b} == {x};"],
        winded=[
            f"{r} := {step}({x});\n~assert {r} == {x} + {c};\n{r} := {step}({r});\n"
            + (f"{r} := {r} + {b};" if b else ""),
            f"var {t} := {step}({x});\n{t} := {step}({t});\n~assert {t} == {x} + {2 * c};\n{r} := {plus(t, b)};",
        ],
        before=given,
    )


@family("Max3", "Highest", "Best")
def call_larger(d: Draw) -> Method:
    (x, y, z), r, t = d.values(3), d.result(), d.temporary()
    rel, pick = d.rng.choice([(">", d.one("Max", "Larger")), ("<", d.one("Min", "Smaller"))])
    given = method(
        pick,
        "a: int, b: int",
        "m: int",
        f"m {rel}= a && m {rel}= b && (m == a || m == b)",
        f"m := if a {rel} b then a else b;",
    )
    return Method(
        f"{x}: int, {y}: int, {z}: int",
        f"{r}: int",
        ensures=[f"{r} {rel}= {x}", f"{r} {rel}= {y}", f"{r} {rel}= {z}", f"{r} == {x} || {r} == {y} || {r} == {z}"],
        plain=[
            f"{r} := {pick}({x}, {y});\n{r} := {pick}({r}, {z});\n~assert {r} {rel}= {x};",
            f"var {t} := {pick}({y}, {z});\n{r} := {pick}({x}, {t});\n~assert {r} {rel}= {z};",
        ],
        winded=[
            f"{r} := {x};\nif {y} {rel} {r}\n  {r} := {y};\nif {z} {rel} {r}\n  {r} := {z};\n~assert {r} {rel}= {y};",
            f"{r} := {pick}({x}, {y});\n~assert {r} {rel}= {y};\nif {z} {rel} {r}\n  {r} := {z};\n~assert {r} {rel}= {x};",
        ],
        before=given,
    )


@family("Apply", "Eval", "Use")
def function_value(d: Draw) -> Method:
    """A function that the specification defines, used with other arguments or in a sum."""
    (x, y), r, f, t = d.values(2), d.result(), d.function(), d.temporary()
    a, b, c = d.k(2, 9), d.k(1, 20), d.k(1, 9)
    arg = d.one("n", "k", "m")
    given = function(f, f"{arg}: int", "int", f"{a} * {arg} + {b}")
    wanted = d.one(f"{f}({x}) + {f}({y})", f"{f}({x}) + {y}", f"{c} * {f}({x}) - {y}")
    direct = {
        f"{f}({x}) + {f}({y})": f"{a} * {x} + {a} * {y} + {2 * b}",
        f"{f}({x}) + {y}": f"{a} * {x} + {b} + {y}",
        f"{c} * {f}({x}) - {y}": f"{c} * ({a} * {x} + {b}) - {y}",
    }[wanted]
    rest = wanted.replace(f"{f}({x})", t).replace(f"{f}({y})", f"({a} * {y} + {b})")
    return Method(
        f"{x}: int, {y}: int",
        f"{r}: int",
        ensures=[d.equal(r, wanted)],
        plain=[f"{r} := {direct};\n~assert {f}({x}) == {a} * {x} + {b};"],
        winded=[
            f"var {t} := {a} * {x} + {b};\n~assert {t} == {f}({x});\n{r} := {rest};",
            f"var {t} := {a} * {x};\n~assert {t} + {b} == {f}({x});\n{t} := {t} + {b};\n{r} := {rest};",
        ],
        before=given,
    )


@family("Decide", "Check", "Judge")
def predicate_value(d: Draw) -> Method:
    x, r, p = d.value(), d.result(), d.one("Good", "Ok", "Fine", "P")
    (low, high), k, m = d.distinct(2, 0, 50), d.k(2, 9), 0
    claim = d.one(
        f"$ > {low} && $ % {k} == {m}",
        f"{low} <= $ < {high}",
        f"$ < {low} || $ > {high}",
        f"$ % {k} == {m} || $ == {low}",
    )
    name = d.one("n", "k", "m")
    given = f"predicate {p}({name}: int)\n{{\n  {claim.replace('$', name)}\n}}\n"
    here = claim.replace("$", x)
    return Method(
        f"{x}: int",
        f"{r}: bool",
        ensures=[d.one(f"{r} <==> {p}({x})", f"{r} == {p}({x})", f"{p}({x}) <==> {r}")],
        plain=[f"{r} := {here};\n~assert {r} ==> {p}({x});"],
        winded=[
            f"if {here}\n  ~assert {p}({x});\n  {r} := true;\nelse\n  {r} := false;\n",
            f"{r} := false;\nif {here}\n  {r} := true;\n~assert {r} <==> {p}({x});",
        ],
        before=given,
    )
