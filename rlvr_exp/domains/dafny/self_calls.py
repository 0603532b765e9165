"""Calls of a function in its own `ensures` clauses.

Dafny 4.11 takes a promise to hold if it calls its own function within a let, a match, a lambda expression or a datatype update, or
before a constant (dafny#6405): `function F(n: int): int ensures var i := 1; F(n) == 0 { 1 }` verifies. In the text that Dafny
verifies, `F(n)` becomes the name of the result in all promises of such a function, which means the same. Other calls are a risk
if Dafny could take their promise to hold.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rlvr_exp.domains.dafny.syntax import Declaration, every, parse
from rlvr_exp.domains.dafny.tokens import CLAUSES, Walker, is_name, partners, pieces, with_inserted

_WORDS = frozenset(("var", "match", ":-", "=>"))
_BINDERS = frozenset(("var", "case", "forall", "exists", "set", "iset", "map", "imap"))
_BETWEEN = frozenset((",", ":", "(", ")", "<", ">"))
"""Tokens between a binder and a name that it binds, beside other names."""
_NO_NAMES = frozenset(("then", "else", "in", "if", "match", "as", "is"))
_RESULT = "rlvr_result"


@dataclass(frozen=True)
class _Signature:
    parameters: tuple[str, ...]
    result: str
    """The name of the result; empty if it has none."""
    close: int
    """The index of the parenthesis behind the parameters."""


def with_results(text: str) -> str:
    """Return the program with the results of functions in place of these calls.

    Args:
        text: from `tokens.plain`.

    Raises:
        Unreadable: the program cannot be parsed.
    """
    declarations = parse(text)
    constants = constants_of(declarations)
    risky = [one for one in every(declarations) if one.where is not None and any(_risks(one, constants))]
    if not risky:
        return text
    words = [piece.text for piece in pieces(text) if piece.token]
    walk = Walker(words, partners(words))
    put: dict[int, str] = {}
    left_out: set[int] = set()
    for one in risky:
        if one.where is None or (signature := _signature(words, one.where.keyword + 1, one.name)) is None:
            continue
        close, result = signature.close, signature.result
        calls = [
            (start + first, start + last)
            for start, stop in _ensures(walk, one.where.clauses)
            for first, last in _plain_calls(words[start:stop], one.name, signature) or ()
        ]
        if calls and not result:
            result = _RESULT
            typed = words[close + 1] == ":"
            put[close + 2 if typed else close + 1] = f"({result}: " if typed else f": ({result}: bool) "
            if typed:
                put[one.where.clauses] = ") "
        for first, last in calls:
            put[first] = f" {result} "
            left_out |= set(range(first, last + 1))
    return with_inserted(text, put, left_out)


def constants_of(declarations: Sequence[Declaration]) -> frozenset[str]:
    """The names of constants that are members of types."""
    holders = (one for one in every(declarations) if one.kind != "module")
    return frozenset(one.name for holder in holders for one in holder.members or () if one.kind == "const")


def remaining(one: Declaration, constants: Collection[str]) -> Iterator[str]:
    """The risky `ensures` clauses of a function with calls that `with_results` does not replace.

    Args:
        constants: from `constants_of`.
    """
    for clause in _risks(one, constants):
        signature = _signature(one.head, 0, one.name)
        if signature is None or _plain_calls(clause, one.name, signature) is None:
            yield " ".join(clause)


def _risks(one: Declaration, constants: Collection[str]) -> Iterator[Sequence[str]]:
    """The clauses whose promise Dafny may take to hold."""
    for clause in one.clauses if one.kind == "function" else ():
        if clause.word == "ensures" and _is_risky(clause.text, one.name, constants):
            yield clause.text


def _is_risky(clause: Sequence[str], name: str, constants: Collection[str]) -> bool:
    pairs = set(pairwise(clause))
    sugar = (".", "(") in pairs or ("seq", "(") in pairs or any((".", each) in pairs for each in constants)
    return name in clause and (sugar or bool(_WORDS & set(clause)))


def _plain_calls(clause: Sequence[str], name: str, signature: _Signature) -> list[tuple[int, int]] | None:
    """The first and the last index of each call, all of them about the function's own parameters; None if another is not.

    Also None if the clause may bind a parameter or the result.
    """
    closes = partners(clause)
    arguments = [word for each in signature.parameters for word in (each, ",")][:-1]
    calls = []
    for at, word in enumerate(clause):
        if word != name:
            continue
        if clause[at + 1 : at + 2] not in (["("], ("(",)) or list(clause[at + 2 : closes[at + 1]]) != arguments:
            return None
        first = at
        if at and clause[at - 1] == ".":
            if list(clause[max(at - 2, 0) : at]) != ["this", "."]:
                return None
            first = at - 2
        calls.append((first, closes[at + 1]))
    inside = {at for first, last in calls for at in range(first, last + 1)}
    own = {*signature.parameters, signature.result or _RESULT}
    if any(word in own and at not in inside and _binds(clause, at) for at, word in enumerate(clause)):
        return None
    return calls


def _binds(clause: Sequence[str], at: int) -> bool:
    """Whether the name at an index may be bound there."""
    if "".join(clause[at + 1 : at + 2]) in (":", ":=", ":|", "=>", "<-"):
        return True
    while at and (clause[at - 1] in _BETWEEN or is_name(clause[at - 1])) and clause[at - 1] not in _NO_NAMES:
        at -= 1
        if clause[at] in _BINDERS:
            return True
    return False


def _signature(words: Sequence[str], start: int, name: str) -> _Signature | None:
    """The signature whose name is the first of these from `start` on that a list follows; None if there is none."""
    at = start
    while at + 1 < len(words) and not (words[at] == name and words[at + 1] in ("(", "<")):
        at += 1
    depth, at = 0, at + 1
    while at < len(words) and (depth or words[at] != "("):
        depth += (words[at] in ("<", "(", "[", "{")) - (words[at] in (">", ")", "]", "}"))
        at += 1
    if at >= len(words):
        return None
    names, depth = list[str](), 1
    while depth:
        at += 1
        if depth == 1 and list(words[at + 1 : at + 2]) == [":"] and is_name(words[at]):
            names.append(words[at])
        depth += (words[at] in ("<", "(", "[", "{")) - (words[at] in (">", ")", "]", "}"))
    named = list(words[at + 1 : at + 3]) == [":", "("] and list(words[at + 4 : at + 5]) == [":"]
    return _Signature(tuple(names), words[at + 3] if named else "", at)


def _ensures(walk: Walker, index: int) -> Iterator[tuple[int, int]]:
    """The first index of each `ensures` clause from there on, and the index behind it."""
    while walk.at(index) in CLAUSES or (walk.at(index) == ";" and walk.at(index + 1) in CLAUSES):
        word, index = walk.at(index), index + 1
        if word == ";":
            continue
        stop = walk.past_expression(index)
        if word == "ensures":
            yield index, stop
        index = stop
