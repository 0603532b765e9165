"""Covariant type parameters of datatypes in the text that Dafny verifies.

If a parameter has no variance mark, Dafny 4.11 does not compare the branches of a conditional expression with its type. Then
`if 1 < 0 then a else b` turns a `Box<int>` into a `Box<nat>`, with both type checkers, and proves false. With `datatype Box<+T>`
each branch is checked. Classes have no such marks.
"""

from collections.abc import Iterator, Sequence

from rlvr_exp.domains.dafny.syntax import every, parse
from rlvr_exp.domains.dafny.tokens import is_name, pieces, with_inserted

_COVARIANT = frozenset(("seq", "set", "multiset", "map"))
_ARROWS = frozenset(("->", "-->", "~>"))


def covariant(text: str) -> str:
    """Return the program with `+` at the unmarked parameters of its datatypes, except those whose fields do not allow it.

    Args:
        text: from `tokens.plain`.

    Raises:
        Unreadable: the program cannot be parsed.
    """
    heads = [(one.name, one.head) for one in every(parse(text)) if one.kind == "datatype"]
    generic = {name for name, head in heads if "<" in head[head.index(name) :][1:2]}
    while fixed := {name for name, head in heads if name in generic and not _allows(name, head, generic)}:
        generic -= fixed
    words = [piece.text for piece in pieces(text) if piece.token]
    marks: dict[int, str] = {}
    for index, word in enumerate(words):
        if word in generic and words[index - 1 : index] in (["datatype"], ["codatatype"], ["}"]):
            marks |= dict.fromkeys(_parameters(words, index + 2), "+")
    return with_inserted(text, marks)


def _parameters(words: Sequence[str], index: int) -> Iterator[int]:
    """The indices of unmarked parameters in the list that begins there, behind its `<`."""
    depth = 0
    while words[index] != ">" or depth:
        if is_name(words[index]) and words[index - 1] in ("<", ",") and not depth:
            yield index
        depth += (words[index] in "({[") - (words[index] in ")}]")
        index += 1


def _allows(name: str, head: Sequence[str], generic: set[str]) -> bool:
    """Whether the fields use the parameters in covariant places alone."""
    start = head.index(name) + 1
    own = {head[index] for index in _parameters(head, start + 1)}
    fields, depth, field = list[list[str]](), 0, list[str]()
    for token in head[head.index("=") :]:
        if depth and not (depth == 1 and token in (",", ")")):
            field.append(token)
        elif depth:
            fields, field = [*fields, field], []
        depth += (token == "(") - (token == ")")
    return not any(own & set(one) and not _is_covariant(one, generic) for one in fields)


def _is_covariant(field: Sequence[str], generic: set[str]) -> bool:
    opens = (before for before, token in zip(("", *field), field, strict=False) if token == "<")
    return not _ARROWS & set(field) and all(before in _COVARIANT or before in generic for before in opens)
