"""Families about a function's head and shape: defaults, annotations, guards, documentation."""

from rlvr_exp.corpora.edits.draw import Draw
from rlvr_exp.corpora.edits.family import Draft, family, rewritten

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
    pattern = f"def {f}($A, {b}):\n    $$$B"
    rewrite = f"def {f}($A, {b}={v}):\n    $$$B"
    say = f"Give the parameter `{b}` of `{f}` the default {v}."
    return rewritten(pattern, rewrite, say, f"{b} defaults to {v}", A=a, B=lines)


@family
def parameter_type(d: Draw) -> Draft:
    f, a = d.function(), d.variable()
    kind, lines = d.pick(TYPES), body(d, a)
    pattern = f"def {f}({a}):\n    $$$B"
    rewrite = f"def {f}({a}: {kind}):\n    $$$B"
    say = f"Annotate the parameter `{a}` of `{f}` as `{kind}`."
    return rewritten(pattern, rewrite, say, f"{a} is {kind}", B=lines)


@family
def return_type(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    kind, lines = d.pick(TYPES), body(d, a, b)
    pattern = f"def {f}($$$P):\n    $$$B"
    rewrite = f"def {f}($$$P) -> {kind}:\n    $$$B"
    say = f"Annotate that `{f}` returns `{kind}`."
    return rewritten(pattern, rewrite, say, f"{f} -> {kind}", P=f"{a}, {b}", B=lines)


@family
def guard_none(d: Draw) -> Draft:
    f, a = d.function(), d.variable()
    v = d.pick(["None", "0", str(d.number()), "[]", f'"{d.word()}"'])
    lines = body(d, a)
    guard = f"    if {a} is None:\n        return {v}\n"
    pattern = f"def {f}($P):\n    $$$B"
    rewrite = f"def {f}($P):\n{guard}    $$$B"
    say = f"Let `{f}` return {v} at once where `{a}` is None."
    tests = f"assert {f}(None) == {v}"
    return rewritten(pattern, rewrite, say, f"{f}: None gives {v}", tests=tests, P=a, B=lines)


@family
def guard_raise(d: Draw) -> Draft:
    f, a, n = d.function(), d.variable(), d.number()
    word = d.phrase()
    lines = f"    return {d.value(a)}"
    guard = f'    if {a} < {n}:\n        raise ValueError("{word}")\n'
    pattern = f"def {f}($P):\n    $$$B"
    rewrite = f"def {f}($P):\n{guard}    $$$B"
    say = f'Let `{f}` raise ValueError("{word}") where `{a}` is below {n}.'
    tests = f"import pytest\nwith pytest.raises(ValueError, match='^{word}$'):\n    {f}({n - 1})\nassert {f}({n}) is not None"
    return rewritten(pattern, rewrite, say, f"ValueError below {n}", tests=tests, P=a, B=lines)


@family
def add_docstring(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    text, lines = f"{d.word().capitalize()} {d.phrase()}.", body(d, a, b)
    pattern = f"def {f}($$$P):\n    $$$B"
    rewrite = f'def {f}($$$P):\n    """{text}"""\n    $$$B'
    say = f'Document `{f}` with the docstring "{text}".'
    return rewritten(pattern, rewrite, say, f'docstring "{text}"', P=f"{a}, {b}", B=lines)


@family
def mutable_default(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    empty = d.pick(["[]", "{}"])
    use = f"    {b}.append({a})\n    return {b}" if empty == "[]" else f"    {b}[{a}] = {d.number()}\n    return {b}"
    pattern = f"def {f}($A, $V={empty}):\n    $$$B"
    rewrite = f"def {f}($A, $V=None):\n    if $V is None:\n        $V = {empty}\n    $$$B"
    say = f"The default {empty} of `{b}` is shared by all calls of `{f}`; make a new one in each call."
    tests = f"assert {f}(1) == {f}(1)\nassert {f}(1) is not {f}(1)"
    return rewritten(pattern, rewrite, say, f"no mutable default in {f}", tests=tests, A=a, V=b, B=use)


@family
def add_decorator(d: Draw) -> Draft:
    f, a = d.function(), d.variable()
    name = d.pick(["cache", "lru_cache(maxsize=None)", "timed", "logged", "retry(3)", "traced"])
    lines = body(d, a)
    pattern = f"def {f}($$$P):\n    $$$B"
    rewrite = f"@{name}\ndef {f}($$$P):\n    $$$B"
    say = f"Decorate `{f}` with `@{name}`."
    return rewritten(pattern, rewrite, say, f"@{name} on {f}", P=a, B=lines)


@family
def lambda_to_def(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    value = d.value(a, b)
    pattern = "$F = lambda $A, $B: $E"
    rewrite = "def $F($A, $B):\n    return $E"
    say = f"Define `{f}` by `def`, not by a lambda."
    return rewritten(pattern, rewrite, say, f"{f} as def", F=f, A=a, B=b, E=value)


@family
def keyword_only(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    v, lines = d.number(), body(d, a, b)
    pattern = f"def {f}($A, {b}={v}):\n    $$$B"
    rewrite = f"def {f}($A, *, {b}={v}):\n    $$$B"
    say = f"Let `{b}` of `{f}` be given by keyword only."
    tests = f"import pytest\nwith pytest.raises(TypeError):\n    {f}(1, 2)\nassert {f}(1) == {f}(1, {b}={v})"
    return rewritten(pattern, rewrite, say, f"{b} keyword-only", tests=tests, A=a, B=lines)


@family
def make_async(d: Draw) -> Draft:
    f, a = d.function(), d.variable()
    lines = body(d, a)
    pattern = f"def {f}($$$P):\n    $$$B"
    rewrite = f"async def {f}($$$P):\n    $$$B"
    say = f"Make `{f}` a coroutine."
    return rewritten(pattern, rewrite, say, f"async {f}", P=a, B=lines)
