"""Covariant type parameters of datatypes in the text that Dafny verifies.

If a parameter has no variance mark, Dafny 4.11 does not compare the branches of a conditional expression with its type. Then
`if 1 < 0 then a else b` turns a `Box<int>` into a `Box<nat>`, with both type checkers, and proves false. With `datatype Box<+T>`
each branch is checked. Arrays, classes and datatypes of functions have no such marks: a candidate may not bring `array<int>` beside
`array<nat>`.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from rlvr_exp.domains.dafny.syntax import Declaration, every, parse
from rlvr_exp.domains.dafny.tokens import is_name, pieces, with_inserted

_COVARIANT = frozenset(("seq", "set", "multiset", "map"))
_ARRAY = re.compile(r"array\d*")
_ARROWS = frozenset(("->", "-->", "~>"))


def covariant(text: str) -> str:
    """Return the program with `+` at the unmarked parameters of its datatypes, except those whose fields do not allow it.

    Args:
        text: from `tokens.plain`.

    Raises:
        Unreadable: the program cannot be parsed.
    """
    declarations = parse(text)
    generic = _covariant_types(declarations)
    words = [piece.text for piece in pieces(text) if piece.token]
    marks: dict[int, str] = {}
    for index, word in enumerate(words):
        if word in generic and words[index - 1 : index] in (["datatype"], ["codatatype"], ["}"]):
            marks |= dict.fromkeys(_parameters(words, index + 2), "+")
    return with_inserted(text, marks)


def invariant_types(declarations: Sequence[Declaration]) -> frozenset[str]:
    """The names of generic types other than synonyms that `covariant` cannot mark."""
    covariant = _covariant_types(declarations)
    kinds = ("datatype", "class", "trait", "iterator")
    return frozenset(
        one.name for one in every(declarations) if one.kind in kinds and _generic(one) and one.name not in covariant
    )


def _generic(one: Declaration) -> bool:
    return one.name in one.head and one.head[one.head.index(one.name) + 1 :][:1] == ("<",)


def _covariant_types(declarations: Sequence[Declaration]) -> set[str]:
    """The names of generic datatypes, and synonyms, whose parameters are covariant or can be marked so."""
    heads = [
        (one.name, one.head)
        for one in every(declarations)
        if one.kind in ("datatype", "type") and "=" in one.head and _generic(one)
    ]
    generic = {name for name, _ in heads}
    while fixed := {name for name, head in heads if name in generic and not _allows(name, head, generic)}:
        generic -= fixed
    return generic


def mixed_types(given: Sequence[str], words: Sequence[str], invariant: Collection[str]) -> tuple[str, str] | None:
    """Two element types of arrays, or arguments of one generic type, that differ only by their constraints, the first of them new.

    Args:
        given: tokens of the given program.
        words: tokens of the candidate.
        invariant: the generic types to compare beside arrays.
    """
    names = {"nat"} | {
        words[at + 1] for at, word in enumerate(words[:-3]) if word == "type" and "|" in words[at : at + 14]
    }
    before, after = set(_elements(given, invariant)), set(_elements(words, invariant))
    for kind, new in sorted(after - before):
        for other in sorted(other for same, other in after if same == kind and other != new):
            inferred = kind != "array" and not new
            if names & {*new.split(), *other.split()} and (inferred or _shape(new, names) == _shape(other, names)):
                return new, other
    return None


def _elements(words: Sequence[str], types: Collection[str]) -> Iterator[tuple[str, str]]:
    """The name of each array type and of each of these types, and its type argument; empty if it is inferred."""
    for index, word in enumerate(words):
        name = word.removesuffix("?")
        if words[index + 1 : index + 2] == ["<"] and (_ARRAY.fullmatch(name) or name in types):
            yield "array" if _ARRAY.fullmatch(name) else name, _argument(words, index + 2, ">")
        elif word == "new" and words[index + 1 : index + 2] and words[index + 1] in types:
            if words[index + 2 : index + 3] != ["<"]:
                yield words[index + 1], ""
        elif word == "new":
            yield "array", _argument(words, index + 1, "[")


def _argument(words: Sequence[str], index: int, end: str) -> str:
    """The type from an index up to the token that ends it; empty if another ends it."""
    depth, found = 0, list[str]()
    while index < len(words) and (depth or words[index] not in (end, "(", ";", "{", "[", ">")):
        depth += (words[index] in ("<", "(")) - (words[index] in (">", ")"))
        found.append(words[index])
        index += 1
    return " ".join(found)


def _shape(element: str, names: Collection[str]) -> str:
    return " ".join("*" if word in names or word in ("int", "real") else word for word in element.split())


def _parameters(words: Sequence[str], index: int) -> Iterator[int]:
    """The indices of unmarked parameters in the list that begins there, behind its `<`."""
    depth = 0
    while words[index] != ">" or depth:
        if is_name(words[index]) and words[index - 1] in ("<", ",") and not depth:
            yield index
        depth += (words[index] in "({[") - (words[index] in ")}]")
        index += 1


def _allows(name: str, head: Sequence[str], generic: set[str]) -> bool:
    """Whether the fields, or the type that a synonym stands for, use the parameters in covariant places alone."""
    start, equals = head.index(name) + 1, head.index("=")
    if {"!", "-", "*"} & set(head[start:equals]):
        return False
    own = {word for word in head[start:equals] if is_name(word)}
    fields, depth, field = list[list[str]](), 0, list[str]()
    for token in head[equals:]:
        if depth and not (depth == 1 and token in (",", ")")):
            field.append(token)
        elif depth:
            fields, field = [*fields, field], []
        depth += (token == "(") - (token == ")")
    if "datatype" not in head and "codatatype" not in head:
        fields = [list(head[equals:])]
    return not any(own & set(one) and not _is_covariant(one, generic) for one in fields)


def _is_covariant(field: Sequence[str], generic: set[str]) -> bool:
    opens = (before for before, token in zip(("", *field), field, strict=False) if token == "<")
    return not _ARROWS & set(field) and all(before in _COVARIANT or before in generic for before in opens)
