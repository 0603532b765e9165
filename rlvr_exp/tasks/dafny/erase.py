"""Programs without their proofs: bodies with their annotations removed.

From a function's body: `assert e;`, `calc {}`, `reveal f();` and calls of lemmas before an expression. From a method's:
these as statements, `ghost var`, forall statements, lemma calls, and the clauses of loops. What stays is compiled code,
or a function's meaning, so two bodies that are equal without proofs do the same. Never decides whether a proof holds.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rlvr_exp.tasks.dafny.expressions import Walker, is_name, partners

_STARTS = frozenset(("", "{", "}", ";", "then", "else", "=>", "(", ",", ":=", ":|"))
_BEFORE_STATEMENTS = frozenset(("", "{", "}", ";", "=>", ":"))
_ASSIGNS = (":=", ":|")
_LOOP_CLAUSES = frozenset(("invariant", "decreases", "modifies", "free"))


def function_body(tokens: Sequence[str]) -> tuple[str, ...]:
    """A function's meaning: its body without proofs."""
    walk = Walker(tokens, partners(tokens))
    kept: list[str] = []
    index = 0
    while index < walk.end:
        stop = _past_proof(walk, index)
        if stop is None:
            kept.append(walk.tokens[index])
            index += 1
        else:
            index = stop
    return tuple(kept)


def method_body(tokens: Sequence[str], proofs: Collection[str], runs: Collection[str] = ()) -> tuple[str, ...]:
    """A method's code: its body without annotations.

    Args:
        proofs: the names of lemmas and ghost methods.
        runs: the names of compiled methods: a ghost variable that takes the result of such a method is code.
    """
    kept: list[str] = []
    at = 0
    for start, stop in annotations(tokens, proofs, runs):
        kept += tokens[at:start]
        at = stop
    return (*kept, *tokens[at:])


def annotations(
    tokens: Sequence[str], proofs: Collection[str], runs: Collection[str] = ()
) -> Iterator[tuple[int, int]]:
    """Where each annotation of a method's body begins and ends, in order; `method_body` is the text between them.

    A ghost variable whose name the code has as well is code, since it may take the place of another variable there.
    """
    walk = Walker(tokens, partners(tokens))
    ghosts = list(_ghost_variables(walk))
    while True:
        found = list(_spans(walk, ghosts, proofs, runs))
        code = _outside(walk, found)
        left = [ghost for ghost in ghosts if ghost.name not in code]
        if len(left) == len(ghosts):
            return iter(found)
        ghosts = left


@dataclass(frozen=True)
class _Ghost:
    """A ghost variable, with the indices of its declaration and of its scope's end."""

    name: str
    start: int
    stop: int


def _spans(
    walk: Walker, ghosts: Collection[_Ghost], proofs: Collection[str], runs: Collection[str]
) -> Iterator[tuple[int, int]]:
    index = 0
    while index < walk.end:
        past = _past_ghosts(walk, index, ghosts)
        if past is not None and set(walk.tokens[index:past]) & set(runs):
            past = None
        elif past is None:
            past = _past_statement(walk, index, proofs, runs)
        if past is not None:
            yield index, past
        index = index + 1 if past is None else past


def _outside(walk: Walker, spans: Sequence[tuple[int, int]]) -> set[str]:
    inside = {index for start, stop in spans for index in range(start, stop)}
    return {token for index, token in enumerate(walk.tokens) if index not in inside}


def _past_proof(walk: Walker, index: int) -> int | None:
    """The index after a proof that precedes an expression; None where none begins."""
    token = walk.at(index)
    if walk.at(index - 1) not in _STARTS and index:
        return None
    if token in ("assert", "reveal"):
        return _past_semicolon(walk, walk.past_expression(index + 1))
    if token == "calc":
        return _past_braces(walk, index)
    if not is_name(token) or walk.at(index - 1) in (":=", ":|", "(", ","):
        return None
    return _past_call(walk, index)


def _past_semicolon(walk: Walker, index: int) -> int | None:
    if walk.at(index) == "by":
        return _past_braces(walk, index)
    return index + 1 if walk.at(index) == ";" else None


def _past_braces(walk: Walker, index: int) -> int | None:
    """The index after the next braces, attributes skipped."""
    while index < walk.end and (walk.at(index) != "{" or walk.is_attribute(index)):
        if walk.at(index) in (";", "}", ")", "]"):
            return None
        index = walk.closes[index] + 1 if walk.at(index) in ("{", "(", "[") else index + 1
    return walk.closes[index] + 1 if index < walk.end else None


def _past_call(walk: Walker, index: int) -> int | None:
    """The index after `name.name(arguments);`, which inside a function can only call a lemma."""
    while is_name(walk.at(index)) and walk.at(index + 1) == ".":
        index += 2
    if not is_name(walk.at(index)) or walk.at(index + 1) != "(":
        return None
    close = walk.closes[index + 1]
    return close + 2 if walk.at(close + 1) == ";" else None


def _past_statement(walk: Walker, index: int, proofs: Collection[str], runs: Collection[str]) -> int | None:
    token, before = walk.at(index), walk.at(index - 1) if index else ""
    if token in _LOOP_CLAUSES and before != "." and (token != "free" or walk.at(index + 1) in _LOOP_CLAUSES):
        return _past_clause(walk, index)
    if before not in _BEFORE_STATEMENTS:
        return None
    if token in ("assert", "reveal"):
        return _past_semicolon(walk, walk.past_expression(index + 1))
    if token == "calc":
        return _past_braces(walk, index)
    if token == "forall":
        return _past_forall(walk, index, proofs)
    if token == "label":
        return None if _is_left(walk, walk.at(index + 1)) else index + 3
    called = _called(walk, index)
    reveals = called.startswith("reveal_") and called not in runs
    return _past_call(walk, index) if called in proofs or reveals else None


def _called(walk: Walker, index: int) -> str:
    """The last of the names that dots join."""
    while walk.at(index + 1) == ".":
        index += 2
    return walk.at(index)


def _is_left(walk: Walker, label: str) -> bool:
    """Whether a `break` or `continue` names the label: then it is code, and not only a mark for `old@`."""
    return any(word in ("break", "continue") and name == label for word, name in pairwise(walk.tokens))


def _past_clause(walk: Walker, index: int) -> int:
    index += 2 if walk.at(index) == "free" else 1
    stop = walk.past_expression(index)
    return stop + 1 if walk.at(stop) == ";" else stop


def _past_forall(walk: Walker, index: int, proofs: Collection[str]) -> int | None:
    """The index after a forall statement with an ensures clause, or with nothing but one call of a proof; one that
    assigns stays."""
    stop = start = walk.past_expression(index + 1)
    while walk.at(stop) == "ensures":
        stop = walk.past_expression(stop + 1)
        stop += walk.at(stop) == ";"
    if walk.at(stop) != "{":
        return None
    close = walk.closes[stop]
    calls = _called(walk, stop + 1) in proofs and _past_call(walk, stop + 1) == close
    return close + 1 if stop > start or calls else None


def _past_line(walk: Walker, index: int) -> int | None:
    """The index after a statement that ends with a semicolon, whatever its brackets contain."""
    while index < walk.end and walk.at(index) != ";":
        if walk.at(index) in ("}", ")", "]"):
            return None
        index = walk.closes[index] + 1 if walk.at(index) in ("{", "(", "[") else index + 1
    return index + 1


def _past_ghosts(walk: Walker, index: int, ghosts: Collection[_Ghost]) -> int | None:
    """The index after a statement that declares these ghost variables or assigns to them alone."""
    if (walk.at(index - 1) if index else "") not in _BEFORE_STATEMENTS:
        return None
    declares = walk.at(index) == "ghost" and walk.at(index + 1) == "var"
    if declares:
        seen = {ghost.name for ghost in ghosts if ghost.start == index}
    else:
        seen = {ghost.name for ghost in ghosts if ghost.start < index < ghost.stop}
    targets = _names(walk, index + 2) if declares else _targets(walk, index)
    return _past_line(walk, index) if targets and seen.issuperset(targets) else None


def _targets(walk: Walker, index: int) -> list[str]:
    """The plain names that an assignment gives values to; none where it is another statement."""
    found = [walk.at(index)]
    while walk.at(index + 1) == ",":
        index += 2
        found.append(walk.at(index))
    return found if walk.at(index + 1) in _ASSIGNS else []


def _ghost_variables(walk: Walker) -> Iterator[_Ghost]:
    for index, pair in enumerate(pairwise(walk.tokens)):
        if pair == ("ghost", "var"):
            stop = _end_of_scope(walk, index)
            yield from (_Ghost(name, index, stop) for name in _names(walk, index + 2))


def _names(walk: Walker, index: int) -> list[str]:
    """The names in a list `a: T, b := ...` of declared variables; none where it has a pattern."""
    found: list[str] = []
    angles, due = 0, True
    while index < walk.end and walk.at(index) not in (*_ASSIGNS, ";"):
        token = walk.at(index)
        if due and not walk.is_attribute(index):
            if not is_name(token) or walk.at(index + 1) not in (",", ":", ";", *_ASSIGNS):
                return []
            found.append(token)
        due = (due and walk.is_attribute(index)) or (token == "," and not angles)
        angles += (token == "<") - (token == ">")
        index = walk.closes[index] + 1 if token in ("(", "[", "{") else index + 1
    return found


def _end_of_scope(walk: Walker, index: int) -> int:
    """The brace that closes the block of a statement, or the next case."""
    while index < walk.end and walk.at(index) not in ("}", "case"):
        index = walk.closes[index] + 1 if walk.at(index) in ("{", "(", "[") else index + 1
    return index
