"""Families about a function's head and shape: defaults, annotations, guards, documentation."""

from rlvr_exp.corpora.edits.draw import Draw
from rlvr_exp.corpora.edits.family import Draft, family, swap

TYPES = ("int", "str", "float", "bool", "list", "dict")


def body(d: Draw, *names: str) -> str:
    """Lines of a function over its parameters, at its level."""
    v = d.variable()
    return d.pick(
        [
            f"    return {d.value(*names)}",
            f"    {v} = {d.value(*names)}\n    return {v}",
            f"    if {d.test(names[0])}:\n        return {d.number()}\n    return {names[-1]}",
            f"    print({names[-1]})\n    return {d.value(*names)}",
            f"    {v} = []\n    {v}.append({d.value(*names)})\n    return {v}",
        ]
    )


@family
def default_argument(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    v = d.pick([str(d.number()), "None", "True", f'"{d.word()}"', "0"])
    lines = body(d, a, b)
    return Draft(
        f"def {f}({a}, {b}):\n{lines}",
        f"def {f}({a}, {b}={v}):\n{lines}",
        f"Give the parameter `{b}` of `{f}` the default {v}.",
        f"{b} defaults to {v}",
        (swap(f"def {f}($A, {b}):\n    $$$B", f"def {f}($A, {b}={v}):\n    $$$B"),),
    )


@family
def parameter_type(d: Draw) -> Draft:
    f, a = d.function(), d.variable()
    kind, lines = d.pick(TYPES), body(d, a)
    return Draft(
        f"def {f}({a}):\n{lines}",
        f"def {f}({a}: {kind}):\n{lines}",
        f"Annotate the parameter `{a}` of `{f}` as `{kind}`.",
        f"{a} is {kind}",
        (swap(f"def {f}({a}):\n    $$$B", f"def {f}({a}: {kind}):\n    $$$B"),),
    )


@family
def return_type(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    kind, lines = d.pick(TYPES), body(d, a, b)
    return Draft(
        f"def {f}({a}, {b}):\n{lines}",
        f"def {f}({a}, {b}) -> {kind}:\n{lines}",
        f"Annotate that `{f}` returns `{kind}`.",
        f"{f} -> {kind}",
        (swap(f"def {f}($$$P):\n    $$$B", f"def {f}($$$P) -> {kind}:\n    $$$B"),),
    )


@family
def guard_none(d: Draw) -> Draft:
    f, a = d.function(), d.variable()
    v = d.pick(["None", "0", str(d.number()), "[]", f'"{d.word()}"'])
    lines = body(d, a)
    guard = f"    if {a} is None:\n        return {v}\n"
    return Draft(
        f"def {f}({a}):\n{lines}",
        f"def {f}({a}):\n{guard}{lines}",
        f"Let `{f}` return {v} at once where `{a}` is None.",
        f"{f}: None gives {v}",
        (swap(f"def {f}($P):\n    $$$B", f"def {f}($P):\n{guard}    $$$B"),),
        tests=f"assert {f}(None) == {v}",
    )


@family
def guard_raise(d: Draw) -> Draft:
    f, a, n = d.function(), d.variable(), d.number()
    word = d.phrase()
    lines = f"    return {d.value(a)}"
    guard = f'    if {a} < {n}:\n        raise ValueError("{word}")\n'
    return Draft(
        f"def {f}({a}):\n{lines}",
        f"def {f}({a}):\n{guard}{lines}",
        f'Let `{f}` raise ValueError("{word}") where `{a}` is below {n}.',
        f"ValueError below {n}",
        (swap(f"def {f}($P):\n    $$$B", f"def {f}($P):\n{guard}    $$$B"),),
        tests=f"import pytest\nwith pytest.raises(ValueError):\n    {f}({n - 1})\nassert {f}({n}) is not None",
    )


@family
def add_docstring(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    text, lines = f"{d.word().capitalize()} {d.phrase()}.", body(d, a, b)
    return Draft(
        f"def {f}({a}, {b}):\n{lines}",
        f'def {f}({a}, {b}):\n    """{text}"""\n{lines}',
        f'Document `{f}` with the docstring "{text}".',
        f'docstring "{text}"',
        (swap(f"def {f}($$$P):\n    $$$B", f'def {f}($$$P):\n    """{text}"""\n    $$$B'),),
    )


@family
def mutable_default(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    empty = d.pick(["[]", "{}"])
    use = f"    {b}.append({a})\n    return {b}" if empty == "[]" else f"    {b}[{a}] = {d.number()}\n    return {b}"
    fix = f"    if {b} is None:\n        {b} = {empty}\n"
    return Draft(
        f"def {f}({a}, {b}={empty}):\n{use}",
        f"def {f}({a}, {b}=None):\n{fix}{use}",
        f"The default {empty} of `{b}` is shared by all calls of `{f}`; make a new one in each call.",
        f"no mutable default in {f}",
        (
            swap(
                f"def {f}($A, $V={empty}):\n    $$$B",
                f"def {f}($A, $V=None):\n    if $V is None:\n        $V = {empty}\n    $$$B",
            ),
        ),
        tests=f"assert {f}(1) == {f}(1)\nassert {f}(1) is not {f}(1)",
    )


@family
def add_decorator(d: Draw) -> Draft:
    f, a = d.function(), d.variable()
    name = d.pick(["cache", "lru_cache(maxsize=None)", "timed", "logged", "retry(3)", "traced"])
    lines = body(d, a)
    return Draft(
        f"def {f}({a}):\n{lines}",
        f"@{name}\ndef {f}({a}):\n{lines}",
        f"Decorate `{f}` with `@{name}`.",
        f"@{name} on {f}",
        (swap(f"def {f}($$$P):\n    $$$B", f"@{name}\ndef {f}($$$P):\n    $$$B"),),
    )


@family
def lambda_to_def(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    value = d.value(a, b)
    return Draft(
        f"{f} = lambda {a}, {b}: {value}",
        f"def {f}({a}, {b}):\n    return {value}",
        f"Define `{f}` by `def`, not by a lambda.",
        f"{f} as def",
        (swap("$F = lambda $A, $B: $E", "def $F($A, $B):\n    return $E"),),
    )


@family
def keyword_only(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    v, lines = d.number(), body(d, a, b)
    return Draft(
        f"def {f}({a}, {b}={v}):\n{lines}",
        f"def {f}({a}, *, {b}={v}):\n{lines}",
        f"Let `{b}` of `{f}` be given by keyword only.",
        f"{b} keyword-only",
        (swap(f"def {f}($A, {b}={v}):\n    $$$B", f"def {f}($A, *, {b}={v}):\n    $$$B"),),
        tests=f"import pytest\nwith pytest.raises(TypeError):\n    {f}(1, 2)",
    )


@family
def make_async(d: Draw) -> Draft:
    f, a = d.function(), d.variable()
    lines = body(d, a)
    return Draft(
        f"def {f}({a}):\n{lines}",
        f"async def {f}({a}):\n{lines}",
        f"Make `{f}` a coroutine.",
        f"async {f}",
        (swap(f"def {f}($$$P):\n    $$$B", f"async def {f}($$$P):\n    $$$B"),),
    )
