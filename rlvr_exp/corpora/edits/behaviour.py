"""Families that change what a function computes; each comes with tests that only the edited program passes."""

from rlvr_exp.corpora.edits.draw import Draw
from rlvr_exp.corpora.edits.family import Draft, family, inside


@family
def change_number(d: Draw) -> Draft:
    f, a, old, new = d.function(), d.variable(), d.number(100, 499), d.number(500, 999)
    o = d.pick("+-")
    before = f"def {f}({a}):\n    return {a} {o} {old}"
    say = f"Let `{f}` use {new} in place of {old}."
    rule = inside(f, {"pattern": str(old)}, str(new))
    return Draft(
        before,
        before.replace(str(old), str(new)),
        say,
        f"{new}, not {old}",
        (rule,),
        f"assert {f}(0) == {0 + new if o == '+' else -new}",
    )


@family
def change_operator(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    old, new = d.shuffled("+-*")[:2]
    v = d.variable()
    before = d.pick(
        [
            f"def {f}({a}, {b}):\n    return {a} {old} {b}",
            f"def {f}({a}, {b}):\n    {v} = {a} {old} {b}\n    return {v}",
        ]
    )
    wanted = {"+": 8, "-": 2, "*": 15}[new]
    word = {"+": "add", "-": "subtract", "*": "multiply"}[new]
    say = f"`{f}` has to {word} its arguments."
    rule = inside(f, {"pattern": f"$A {old} $B"}, f"$A {new} $B")
    return Draft(
        before,
        before.replace(f"{a} {old} {b}", f"{a} {new} {b}"),
        say,
        f"{word} in {f}",
        (rule,),
        f"assert {f}(5, 3) == {wanted}",
    )


@family
def change_comparison(d: Draw) -> Draft:
    f, a, n = d.function(), d.variable(), d.number()
    old, new = d.pick([("<", "<="), ("<=", "<"), (">", ">="), (">=", ">")])
    before = d.pick(
        [
            f"def {f}({a}):\n    return {a} {old} {n}",
            f"def {f}({a}):\n    if {a} {old} {n}:\n        return True\n    return False",
        ]
    )
    say = f"In `{f}`, {n} itself {'counts' if '=' in new else 'does not count'}: compare by `{new}`."
    rule = inside(f, {"pattern": f"$X {old} $Y"}, f"$X {new} $Y")
    after = before.replace(f"{a} {old} {n}", f"{a} {new} {n}")
    return Draft(before, after, say, f"{new} in {f}", (rule,), f"assert {f}({n}) is {'=' in new}")


@family
def include_last(d: Draw) -> Draft:
    f, a, i, t = d.function(), *d.variables(3)
    before = d.pick(
        [
            f"def {f}({a}):\n    return sum(range({a}))",
            f"def {f}({a}):\n    {t} = 0\n    for {i} in range({a}):\n        {t} += {i}\n    return {t}",
        ]
    )
    say = f"Let the range of `{f}` include `{a}` itself."
    rule = inside(f, {"pattern": "range($N)"}, "range($N + 1)")
    return Draft(
        before, before.replace(f"range({a})", f"range({a} + 1)"), say, "off by one", (rule,), f"assert {f}(3) == 6"
    )


@family
def change_index(d: Draw) -> Draft:
    f, a = d.function(), d.variable()
    old, new, word = d.pick([("0", "-1", "last"), ("-1", "0", "first"), ("0", "1", "second"), ("1", "0", "first")])
    v = d.variable()
    before = d.pick([f"def {f}({a}):\n    return {a}[{old}]", f"def {f}({a}):\n    {v} = {a}[{old}]\n    return {v}"])
    say = f"`{f}` has to return the {word} item."
    rule = inside(f, {"pattern": f"$X[{old}]"}, f"$X[{new}]")
    wanted = {"0": 1, "-1": 3, "1": 2}[new]
    return Draft(
        before,
        before.replace(f"[{old}]", f"[{new}]"),
        say,
        f"{word} item",
        (rule,),
        f"assert {f}([1, 2, 3]) == {wanted}",
    )


@family
def scale_result(d: Draw) -> Draft:
    f, a, n, m = d.function(), d.variable(), d.number(), d.number(2, 9)
    value = f"{a} + {n}"
    say = f"Let `{f}` return its result times {m}."
    before = f"def {f}({a}):\n    return {value}"
    rule = inside(f, {"pattern": "return $X"}, f"return ($X) * {m}")
    return Draft(
        before,
        f"def {f}({a}):\n    return ({value}) * {m}",
        say,
        f"times {m}",
        (rule,),
        f"assert {f}(1) == {(1 + n) * m}",
    )


@family
def absolute_result(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    say = f"Let `{f}` return the absolute value of its result."
    before = f"def {f}({a}, {b}):\n    return {a} - {b}"
    rule = inside(f, {"pattern": "return $X"}, "return abs($X)")
    return Draft(
        before,
        f"def {f}({a}, {b}):\n    return abs({a} - {b})",
        say,
        "never negative",
        (rule,),
        f"assert {f}(1, 3) == 2",
    )


@family
def limit_result(d: Draw) -> Draft:
    f, a, n, m = d.function(), d.variable(), d.number(2, 9), d.number(10, 99)
    name, word = d.pick([("min", "above"), ("max", "below")])
    say = f"Let the result of `{f}` never be {word} {m}."
    before = f"def {f}({a}):\n    return {a} * {n}"
    rule = inside(f, {"pattern": "return $X"}, f"return {name}($X, {m})")
    given = 100 if name == "min" else 0
    return Draft(
        before,
        f"def {f}({a}):\n    return {name}({a} * {n}, {m})",
        say,
        f"not {word} {m}",
        (rule,),
        f"assert {f}({given}) == {m}",
    )


@family
def negate_condition(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    old, new = d.pick([("==", "!="), ("!=", "=="), ("<", ">="), (">", "<=")])
    one, two = d.number(2, 40), d.number(41, 99)
    before = f"def {f}({a}, {b}):\n    if {a} {old} {b}:\n        return {one}\n    return {two}"
    say = f"The condition of `{f}` is the wrong way round; turn it by `{new}`."
    rule = inside(f, {"pattern": f"$X {old} $Y"}, f"$X {new} $Y")
    after = before.replace(f"{a} {old} {b}", f"{a} {new} {b}")
    given = "3, 3" if "==" in (old, new) or "!=" in (old, new) else ("2, 3" if new == "<=" else "4, 3")
    results = {"==": one, "!=": two, "<=": one, ">=": one}
    return Draft(before, after, say, "turn the condition", (rule,), f"assert {f}({given}) == {results[new]}")


@family
def default_of_empty(d: Draw) -> Draft:
    f, a = d.function(), d.variable()
    name, v = d.pick(["max", "min"]), d.number(0, 9)
    before = f"def {f}({a}):\n    return {name}({a})"
    say = f"Let `{f}` return {v} for an empty list, by the default of `{name}`."
    rule = inside(f, {"pattern": f"{name}($X)"}, f"{name}($X, default={v})")
    return Draft(
        before,
        f"def {f}({a}):\n    return {name}({a}, default={v})",
        say,
        f"empty gives {v}",
        (rule,),
        f"assert {f}([]) == {v}",
    )


@family
def reverse_order(d: Draw) -> Draft:
    f, a = d.function(), d.variable()
    before = f"def {f}({a}):\n    return sorted({a})"
    say = f"Let `{f}` sort from the largest to the smallest."
    rule = inside(f, {"pattern": "sorted($X)"}, "sorted($X, reverse=True)")
    return Draft(
        before,
        f"def {f}({a}):\n    return sorted({a}, reverse=True)",
        say,
        "largest first",
        (rule,),
        f"assert {f}([1, 3, 2]) == [3, 2, 1]",
    )


@family
def return_default(d: Draw) -> Draft:
    f, a, k, v = d.function(), *d.variables(2), d.number()
    before = f"def {f}({a}, {k}):\n    return {a}[{k}]"
    say = f"Let `{f}` return {v} where the key is missing, by `get`."
    rule = inside(f, {"pattern": "$D[$K]"}, f"$D.get($K, {v})")
    return Draft(
        before,
        f"def {f}({a}, {k}):\n    return {a}.get({k}, {v})",
        say,
        f"missing gives {v}",
        (rule,),
        f"assert {f}({{}}, 1) == {v}",
    )
