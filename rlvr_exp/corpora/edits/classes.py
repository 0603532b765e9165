"""Families about classes: their methods, attributes and bases."""

from rlvr_exp.corpora.edits.draw import Draw
from rlvr_exp.corpora.edits.family import Draft, family, swap


def _class(d: Draw, name: str, at: str, method: str) -> str:
    """A class with one attribute and one method."""
    x = d.variable()
    return (
        f"class {name}:\n    def __init__(self, {x}):\n        self.{at} = {x}\n\n"
        f"    def {method}(self):\n        return self.{at} {d.operator()} {d.number()}"
    )


@family
def make_property(d: Draw) -> Draft:
    name, at, f = d.type(), d.attribute(), d.function()
    before = _class(d, name, at, f)
    return Draft(
        before,
        before.replace(f"    def {f}", f"    @property\n    def {f}"),
        f"Make the method `{f}` of `{name}` a property.",
        f"{f} as property",
        (swap(f"def {f}(self):\n    $$$B", f"@property\ndef {f}(self):\n    $$$B"),),
    )


@family
def make_static(d: Draw) -> Draft:
    name, f, a = d.type(), d.function(), d.variable()
    value = d.value(a)
    before = f"class {name}:\n    def {f}(self, {a}):\n        return {value}"
    return Draft(
        before,
        f"class {name}:\n    @staticmethod\n    def {f}({a}):\n        return {value}",
        f"`{f}` of `{name}` does not use `self`: make it a static method.",
        f"{f} static",
        (swap(f"def {f}(self, $A):\n    $$$B", f"@staticmethod\ndef {f}($A):\n    $$$B"),),
    )


@family
def use_super(d: Draw) -> Draft:
    name, base, a, b = d.type(), d.type(), *d.variables(2)
    at = d.attribute()
    given = d.pick([a, f"{a}, {b}", f"{a}, {d.number()}"])
    before = (
        f"class {name}({base}):\n    def __init__(self, {a}, {b}):\n        {base}.__init__(self, {given})\n"
        f"        self.{at} = {b}"
    )
    return Draft(
        before,
        before.replace(f"{base}.__init__(self, ", "super().__init__("),
        f"Call the base class in `{name}` by `super`.",
        "use super()",
        (swap(f"{base}.__init__(self, $$$A)", "super().__init__($$$A)"),),
    )


@family
def add_base(d: Draw) -> Draft:
    name, at, f = d.type(), d.attribute(), d.function()
    base = d.pick(["Exception", "dict", "list", d.type()])
    before = _class(d, name, at, f)
    return Draft(
        before,
        before.replace(f"class {name}:", f"class {name}({base}):"),
        f"Let the class `{name}` derive from `{base}`.",
        f"{name}({base})",
        (swap(f"class {name}:\n    $$$B", f"class {name}({base}):\n    $$$B"),),
    )


@family
def drop_object_base(d: Draw) -> Draft:
    name, at, f = d.type(), d.attribute(), d.function()
    after = _class(d, name, at, f)
    return Draft(
        after.replace(f"class {name}:", f"class {name}(object):"),
        after,
        f"Drop the needless base of `{name}`.",
        "no (object)",
        (swap("class $N(object):\n    $$$B", "class $N:\n    $$$B"),),
    )


@family
def private_attribute(d: Draw) -> Draft:
    name, at, f = d.type(), d.attribute(), d.function()
    before = _class(d, name, at, f)
    return Draft(
        before,
        before.replace(f".{at}", f"._{at}"),
        f"Mark the attribute `{at}` of `{name}` as private, by an underscore.",
        f"private {at}",
        (swap(f"$O.{at}", f"$O._{at}"),),
    )


@family
def class_docstring(d: Draw) -> Draft:
    name, at, f = d.type(), d.attribute(), d.function()
    text = f"A {d.phrase()}."
    before = _class(d, name, at, f)
    return Draft(
        before,
        before.replace(f"class {name}:\n", f'class {name}:\n    """{text}"""\n\n'),
        f'Give the class `{name}` the docstring "{text}", with an empty line after it.',
        f'class docstring "{text}"',
        (swap(f"class {name}:\n    $$$B", f'class {name}:\n    """{text}"""\n\n    $$$B'),),
    )
