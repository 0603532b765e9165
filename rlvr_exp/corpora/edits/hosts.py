"""Functions around an expression: the place of an edit that is a value, a condition or a statement, written `@`."""

from dataclasses import replace

from rlvr_exp.corpora.edits.draw import Draw
from rlvr_exp.corpora.edits.family import Draft, indented, rewritten


def around_value(d: Draw, f: str, *arguments: str) -> str:
    first, v = arguments[0], d.variable()
    head = f"def {f}({', '.join(arguments)}):"
    return d.pick(
        [
            f"{head}\n    return @",
            f"{head}\n    {v} = @\n    return {v}",
            f"{head}\n    {v} = @\n    print({v})\n    return {first}",
            f"{head}\n    if {first}:\n        return @\n    return {d.number()}",
            f"{head}\n    {v} = [{d.number()}]\n    {v}.append(@)\n    return {v}",
        ]
    )


def around_condition(d: Draw, f: str, *arguments: str) -> str:
    first, v = arguments[0], d.variable()
    head = f"def {f}({', '.join(arguments)}):"
    return d.pick(
        [
            f"{head}\n    return @",
            f"{head}\n    if @:\n        return {d.number()}\n    return {first}",
            f"{head}\n    {v} = @\n    return {v}",
            f"{head}\n    while @:\n        {first} = {d.function()}({first})\n    return {first}",
            f"{head}\n    {v} = {d.number()}\n    if @:\n        {v} = {d.number()}\n    return {v}",
        ]
    )


def around_statement(d: Draw, f: str, *arguments: str) -> str:
    """The statement stands at a deeper or at the function's own level."""
    first = arguments[0]
    head = f"def {f}({', '.join(arguments)}):"
    return d.pick(
        [
            f"{head}\n    @\n    return {first}",
            f"{head}\n    {d.variable()} = {d.number()}\n    @\n    return {first}",
            f"{head}\n    if {d.test(first)}:\n        @\n    return {first}",
            f"{head}\n    for {d.variable()} in range({d.number()}):\n        @\n    return {first}",
        ]
    )


def put(host: str, text: str) -> str:
    """The host with lines in its place, indented as the place is."""
    line = next(line for line in host.split("\n") if "@" in line)
    margin = len(line) - len(line.lstrip(" "))
    return host.replace("@", indented(text, margin).lstrip(" "))


def swapped(host: str, pattern: str, rewrite: str, descriptive: str, lazy: str, **values: str) -> Draft:
    """`rewritten` in the place of a host."""
    part = rewritten(pattern, rewrite, descriptive, lazy, **values)
    return replace(part, before=put(host, part.before), after=put(host, part.after))
