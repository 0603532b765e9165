"""The text of a fixed answer: one function under every name that the tests take from a solution."""

from collections.abc import Callable, Sequence

Build = Callable[[Sequence[str]], str]


def returning(value: str, head: str = "") -> Build:
    """A module whose functions return `value`, an expression which may use `args`; `head` stands above them."""
    return doing(f"return {value}", head)


def doing(body: str, head: str = "") -> Build:
    """The same with statements for a body."""
    inside = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    return module(f"{head}\ndef _answer(*args, **kwargs):\n{inside}")


def module(head: str) -> Build:
    """A module whose head defines `_answer`."""
    return lambda names: head.strip("\n") + "\n\n" + "".join(map(_binding, names))


def _binding(name: str) -> str:
    """The class of CLASS.METHOD, without further code."""
    owner, _, method = name.partition(".")
    return f"class {owner}:\n    {method} = staticmethod(_answer)\n" if method else f"{owner} = _answer\n"
