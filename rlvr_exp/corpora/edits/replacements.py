"""Families that replace any code by any other: all that there is to know is what the instruction quotes."""

from rlvr_exp.corpora.edits.draw import Draw
from rlvr_exp.corpora.edits.family import Draft, family
from rlvr_exp.corpora.edits.hosts import around_condition, around_statement, around_value, swapped


@family
def replace_value(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    return _replaced(around_value(d, f, a, b), d.expression(a, b), d.expression(a, b))


@family
def replace_condition(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    return _replaced(around_condition(d, f, a, b), d.condition(a, b), d.condition(a, b))


@family
def replace_statement(d: Draw) -> Draft:
    f, a, b = d.function(), *d.variables(2)
    old, new = (d.pick([f"{a} = @", f"{b}.{d.attribute()} = @", "print(@)", f"{d.function()}(@)"]) for _ in range(2))
    host = around_statement(d, f, a, b)
    return _replaced(host, old.replace("@", d.expression(a, b)), new.replace("@", d.expression(a, b)))


def _replaced(host: str, old: str, new: str) -> Draft:
    return swapped(host, old, new, f"Replace `{old}` by `{new}`.", f"{old} -> {new}")
