"""Families that give things other names."""

import re

from rlvr_exp.corpora.edits.draw import Draw
from rlvr_exp.corpora.edits.family import Draft, family, inside, swap


def _with_local(d: Draw, f: str, t: str) -> str:
    """A function with a local variable."""
    a, i = d.variables(2)
    n = d.number()
    return d.pick(
        [
            f"def {f}({a}):\n    {t} = 0\n    for {i} in {a}:\n        {t} += {i} {d.operator()} {n}\n    return {t}",
            f"def {f}({a}, {i}):\n    {t} = {d.value(a, i)}\n    return {t} {d.operator()} {n}",
            f"def {f}({a}):\n    {t} = []\n    for {i} in {a}:\n        if {d.test(i)}:\n            {t}.append({i})\n    return {t}",
            f"def {f}({a}):\n    {t} = len({a})\n    if {d.test(t)}:\n        return {n}\n    return {t}",
            f"def {f}({a}):\n    {t} = {a}\n    while {t} > {n}:\n        {t} = {t} - {d.number(2, 9)}\n    return {t}",
        ]
    )


def _named(text: str, old: str, new: str) -> str:
    """The text with every whole word replaced; drafts use a name for one thing alone."""
    return re.sub(rf"\b{old}\b", new, text)


@family
def rename_variable(d: Draw) -> Draft:
    f, old, new = d.function(), d.variable(), d.variable()
    before = _with_local(d, f, old)
    return Draft(
        before,
        _named(before, old, new),
        f"Rename the variable `{old}` to `{new}` in the function `{f}`.",
        f"{old} -> {new} in {f}",
        (inside(f, {"kind": "identifier", "regex": f"^{old}$"}, new),),
    )


@family
def rename_function(d: Draw) -> Draft:
    f, g, old, new = d.function(), d.function(), d.variable(), d.function()
    a = d.variable()
    before = f"{_with_local(d, f, old)}\n\ndef {g}({a}):\n    return {f}({a}) {d.operator()} {d.number()}"
    return Draft(
        before,
        _named(before, f, new),
        f"Rename the function `{f}` to `{new}`, with all its calls.",
        f"call {f} {new} instead",
        (swap(f, new),),
    )


@family
def rename_attribute(d: Draw) -> Draft:
    name, old, other, new = d.type(), d.attribute(), d.attribute(), d.attribute()
    f = d.function()
    x = d.variable()
    before = (
        f"class {name}:\n    def __init__(self, {x}):\n        self.{old} = {x}\n        self.{other} = {d.number()}\n\n"
        f"    def {f}(self):\n        return self.{old} {d.operator()} self.{other}"
    )
    return Draft(
        before,
        before.replace(f".{old}", f".{new}"),
        f"Rename the attribute `{old}` of the class `{name}` to `{new}`.",
        f"self.{old} should be self.{new}",
        (swap(f"$O.{old}", f"$O.{new}"),),
    )


@family
def rename_method(d: Draw) -> Draft:
    name, at, old, new, f = d.type(), d.attribute(), d.function(), d.function(), d.function()
    x = d.variable()
    before = (
        f"class {name}:\n    def {old}(self):\n        return self.{at} {d.operator()} {d.number()}\n\n"
        f"def {f}({x}):\n    return {x}.{old}()"
    )
    return Draft(
        before,
        _named(before, old, new),
        f"Rename the method `{old}` of `{name}` to `{new}`, where it is defined and where it is called.",
        f"method {old} -> {new}",
        (swap(old, new),),
    )


@family
def rename_parameter(d: Draw) -> Draft:
    f, old, new, b = d.function(), d.variable(), d.variable(), d.variable()
    n = d.number()
    before = d.pick(
        [
            f"def {f}({old}, {b}):\n    if {d.test(old)}:\n        return {b}\n    return {old} {d.operator()} {n}",
            f"def {f}({b}, {old}):\n    return {d.value(b)} {d.operator()} {old}",
            f"def {f}({old}):\n    {b} = {old} {d.operator()} {n}\n    return {b} + {old}",
        ]
    )
    return Draft(
        before,
        _named(before, old, new),
        f"The parameter `{old}` of `{f}` is to be called `{new}`.",
        f"{f}: parameter {old} becomes {new}",
        (inside(f, {"kind": "identifier", "regex": f"^{old}$"}, new),),
    )


@family
def rename_class(d: Draw) -> Draft:
    old, new, at, f, x = d.type(), d.type(), d.attribute(), d.function(), d.variable()
    before = (
        f"class {old}:\n    def __init__(self, {x}):\n        self.{at} = {x}\n\n"
        f"def {f}():\n    return {old}({d.number()}).{at}"
    )
    return Draft(
        before,
        _named(before, old, new),
        f"Rename the class `{old}` to `{new}`, also where it is used.",
        f"class {old} -> {new}",
        (swap(old, new),),
    )


@family
def rename_import(d: Draw) -> Draft:
    module, short = d.pick(
        [("numpy", "np"), ("pandas", "pd"), ("datetime", "dt"), ("collections", "col"), ("itertools", "it")]
    )
    f, a = d.function(), d.variable()
    member = d.pick(["load", "make", "join", "zeros", "read"])
    before = f"import {module}\n\ndef {f}({a}):\n    return {module}.{member}({a}, {d.number()})"
    after = f"import {module} as {short}\n\ndef {f}({a}):\n    return " + before.split("return ")[1].replace(
        module, short
    )
    return Draft(
        before,
        after,
        f"Import `{module}` as `{short}` and use the short name.",
        f"{module} as {short}",
        (swap(f"{module}.$M", f"{short}.$M"), swap(f"import {module}", f"import {module} as {short}")),
    )
