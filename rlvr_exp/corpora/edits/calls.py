"""Families about calls and imports: arguments, names of libraries, constants."""

from rlvr_exp.corpora.edits.draw import Draw
from rlvr_exp.corpora.edits.family import Draft, family, inside, swap
from rlvr_exp.corpora.edits.functions import body
from rlvr_exp.corpora.edits.hosts import around_statement, around_value, swapped


@family
def swap_arguments(d: Draw) -> Draft:
    f, g, a, b = d.function(), d.function(), *d.variables(2)
    x, y = d.shuffled([a, b]) if d.chance(0.5) else [a, str(d.number())]
    host = around_value(d, f, a, b)
    say = f"Swap the two arguments of the call of `{g}`."
    return swapped(host, f"{g}($A, $B)", f"{g}($B, $A)", say, f"{g}: swap arguments", A=x, B=y)


@family
def add_parameter(d: Draw) -> Draft:
    f, g, a, b, x = d.function(), d.function(), *d.variables(3)
    n, lines = d.number(), body(d, a)
    before = f"def {f}({a}):\n{lines}\n\ndef {g}({x}):\n    return {f}({x}) {d.operator()} {d.number()}"
    after = before.replace(f"{f}({a})", f"{f}({a}, {b})").replace(f"{f}({x})", f"{f}({x}, {n})")
    rules = (
        swap(f"def {f}($A):\n    $$$B", f"def {f}($A, {b}):\n    $$$B"),
        {"rule": {"pattern": f"{f}($A)", "kind": "call"}, "fix": f"{f}($A, {n})"},
    )
    say = f"Give `{f}` a second parameter `{b}`, and pass {n} for it where it is called."
    return Draft(before, after, say, f"{f} takes {b}, call with {n}", rules)


@family
def remove_argument(d: Draw) -> Draft:
    f, g, a, b = d.function(), d.function(), *d.variables(2)
    x = d.pick([b, str(d.number()), f'"{d.word()}"'])
    host = around_value(d, f, a, b)
    say = f"Drop the second argument of the call of `{g}`."
    return swapped(host, f"{g}($A, $B)", f"{g}($A)", say, f"{g} takes one argument", A=a, B=x)


@family
def name_argument(d: Draw) -> Draft:
    f, g, a, b = d.function(), d.function(), *d.variables(2)
    key = d.pick(["size", "limit", "name", "key", "depth", "mode"])
    x = d.pick([b, str(d.number()), "True", "None"])
    host = around_value(d, f, a, b)
    say = f"Pass the second argument of `{g}` by its name `{key}`."
    return swapped(host, f"{g}($A, $B)", f"{g}($A, {key}=$B)", say, f"{key}= by name", A=a, B=x)


@family
def call_to_method(d: Draw) -> Draft:
    f, g, a, b = d.function(), d.function(), *d.variables(2)
    x = d.pick([b, str(d.number()), f'"{d.word()}"'])
    host = around_value(d, f, a, b)
    say = f"`{g}` is now a method of its first argument; call it so."
    return swapped(host, f"{g}($A, $B)", f"$A.{g}($B)", say, f"{g} as method", A=a, B=x)


@family
def other_call(d: Draw) -> Draft:
    f, g, h, a, b = d.function(), d.function(), d.function(), *d.variables(2)
    given = d.pick([a, f"{a}, {b}", f"{b}, {d.number()}", ""])
    host = around_value(d, f, a, b)
    say = f"Call `{h}` in place of `{g}` in `{f}`, with the same arguments."
    return swapped(host, f"{g}($$$A)", f"{h}($$$A)", say, f"{h}, not {g}", A=given)


@family
def wrap_call(d: Draw) -> Draft:
    f, g, a, b = d.function(), d.function(), *d.variables(2)
    outer = d.pick(["list", "sorted", "int", "str", "set", "len", "float", d.function()])
    given = d.pick([a, f"{a}, {b}"])
    host = around_value(d, f, a, b)
    say = f"Wrap the call of `{g}` in `{outer}`."
    return swapped(host, f"{g}($$$A)", f"{outer}({g}($$$A))", say, f"{outer} around {g}", A=given)


@family
def unwrap_call(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    outer = d.pick(["list", "int", "str", "set", "float", d.function()])
    inner = d.pick([a, f"{a}[{d.number(0, 9)}]", f"{d.function()}({a})"])
    host = around_value(d, f, a, b)
    say = f"Drop the needless call of `{outer}` in `{f}`."
    return swapped(host, f"{outer}($X)", "$X", say, f"no {outer}()", X=inner)


@family
def deprecated_method(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    old, new = d.pick(
        [
            ("warn", "warning"),
            ("assertEquals", "assertEqual"),
            ("has_key", "__contains__"),
            ("append", "add"),
            ("isAlive", "is_alive"),
            ("getName", "get_name"),
            ("iteritems", "items"),
        ]
    )
    given = d.pick([a, f'"{d.word()}"', f"{a}, {d.number()}"])
    host = around_statement(d, f, a, b)
    say = f"Replace the deprecated method `{old}` in `{f}` by `{new}`."
    return swapped(host, f"$O.{old}($$$A)", f"$O.{new}($$$A)", say, f"{old} -> {new}", O=b, A=given)


@family
def name_constant(d: Draw) -> Draft:
    f, a, name, n = d.function(), d.variable(), d.constant(), d.number(100, 999)
    o = d.operator()
    before = d.pick(
        [
            f"def {f}({a}):\n    return {a} {o} {n}",
            f"def {f}({a}):\n    if {a} > {n}:\n        return {n}\n    return {a}",
            f"def {f}({a}):\n    while {a} < {n}:\n        {a} = {a} * 2\n    return {a}",
        ]
    )
    say = f"Use the constant `{name}` in `{f}` in place of {n}."
    rule = inside(f, {"pattern": str(n)}, name)
    return Draft(before, before.replace(str(n), name), say, f"{name}, not {n}", (rule,), head=f"{name} = {n}")


@family
def path_join(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    host = around_value(d, f, a, b)
    y = d.pick([b, f'"{d.word()}"'])
    say = f"Join the path in `{f}` by pathlib's `/`."
    return swapped(host, "os.path.join($A, $B)", "Path($A) / $B", say, "Path and /", A=a, B=y)


@family
def import_name(d: Draw) -> Draft:
    f, a = d.function(), d.variable()
    module, member = d.pick(
        [
            ("os", "getcwd"),
            ("math", "sqrt"),
            ("json", "loads"),
            ("time", "sleep"),
            ("random", "choice"),
            ("copy", "deepcopy"),
        ]
    )
    before = f"import {module}\n\ndef {f}({a}):\n    return {module}.{member}({a})"
    after = f"from {module} import {member}\n\ndef {f}({a}):\n    return {member}({a})"
    rules = (swap(f"{module}.{member}", member), swap(f"import {module}", f"from {module} import {member}"))
    return Draft(before, after, f"Import `{member}` from `{module}` by name.", f"from {module} import {member}", rules)


@family
def await_call(d: Draw) -> Draft:
    f, g, a, b = d.function(), d.function(), *d.variables(2)
    host = f"async {around_value(d, f, a, b)}"
    given = d.pick([a, f"{a}, {b}"])
    say = f"Await the call of `{g}` in `{f}`."
    return swapped(host, f"{g}($$$A)", f"await {g}($$$A)", say, f"await {g}", A=given)
