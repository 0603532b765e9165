"""Programs without their proofs: what is left when annotations are taken out of a body.

Of a function's body: `assert e;`, `calc {}`, `reveal f();` and calls of lemmas before an expression. Of a method's:
those as statements, `ghost var`, forall statements, lemma calls, and the clauses of loops. What stays is what runs, or
what a function means, so two bodies that are equal without proofs do the same. Never decides whether a proof holds.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from rlvr_exp.tasks.dafny.expressions import Walker, is_name, partners

_STARTS = frozenset(("", "{", "}", ";", "then", "else", "=>", "(", ",", ":=", ":|"))
_LOOP_CLAUSES = frozenset(("invariant", "decreases", "modifies", "free"))


def function_body(tokens: Sequence[str]) -> tuple[str, ...]:
    """A function's meaning: its body without the proofs that stand in it."""
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


def method_body(tokens: Sequence[str], proofs: Collection[str]) -> tuple[str, ...]:
    """What a method does: its body without annotations. `proofs`: the names of lemmas and ghost methods."""
    kept: list[str] = []
    at = 0
    for start, stop in annotations(tokens, proofs):
        kept += tokens[at:start]
        at = stop
    return (*kept, *tokens[at:])


def annotations(tokens: Sequence[str], proofs: Collection[str]) -> Iterator[tuple[int, int]]:
    """Where each annotation of a method's body begins and ends, in order; `method_body` is what lies between them."""
    walk = Walker(tokens, partners(tokens))
    ghosts = _ghost_variables(tokens)
    index = 0
    while index < walk.end:
        stop = _past_statement(walk, index, proofs, ghosts)
        if stop is not None:
            yield index, stop
        index = index + 1 if stop is None else stop


def _past_proof(walk: Walker, index: int) -> int | None:
    """Past a proof that stands before an expression; None where none begins."""
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
    """Past the braces that come next, attributes apart."""
    while index < walk.end and (walk.at(index) != "{" or walk.is_attribute(index)):
        if walk.at(index) in (";", "}", ")", "]"):
            return None
        index = walk.closes[index] + 1 if walk.at(index) in ("{", "(", "[") else index + 1
    return walk.closes[index] + 1 if index < walk.end else None


def _past_call(walk: Walker, index: int) -> int | None:
    """Past `name.name(arguments);`, which inside a function can only call a lemma."""
    while is_name(walk.at(index)) and walk.at(index + 1) == ".":
        index += 2
    if not is_name(walk.at(index)) or walk.at(index + 1) != "(":
        return None
    close = walk.closes[index + 1]
    return close + 2 if walk.at(close + 1) == ";" else None


def _past_statement(walk: Walker, index: int, proofs: Collection[str], ghosts: Collection[str]) -> int | None:
    token, before = walk.at(index), walk.at(index - 1) if index else ""
    if token in _LOOP_CLAUSES and before != ".":
        return _past_clause(walk, index)
    if before not in ("", "{", "}", ";", "=>", ":"):
        return None
    if token in ("assert", "reveal"):
        return _past_semicolon(walk, walk.past_expression(index + 1))
    if token == "calc":
        return _past_braces(walk, index)
    if token == "forall":
        return _past_forall(walk, index)
    if token == "ghost" and walk.at(index + 1) == "var":
        return _past_line(walk, index)
    if token == "label":
        return None if _is_left(walk, walk.at(index + 1)) else index + 3
    if token in ghosts and walk.at(index + 1) == ":=":
        return _past_line(walk, index)
    last = index
    while walk.at(last + 1) == ".":
        last += 2
    return _past_call(walk, index) if walk.at(last) in proofs else None


def _is_left(walk: Walker, label: str) -> bool:
    """Whether a `break` or `continue` names the label: then it runs, and does not only mark a place for `old@`."""
    return any(word in ("break", "continue") and name == label for word, name in pairwise(walk.tokens))


def _past_clause(walk: Walker, index: int) -> int:
    index += 2 if walk.at(index) == "free" else 1
    stop = walk.past_expression(index)
    return stop + 1 if walk.at(stop) == ";" else stop


def _past_forall(walk: Walker, index: int) -> int | None:
    """Past a forall statement with an ensures clause; one that assigns stays."""
    stop = walk.past_expression(index + 1)
    if walk.at(stop) != "ensures":
        return None
    while walk.at(stop) == "ensures":
        stop = walk.past_expression(stop + 1)
        stop += walk.at(stop) == ";"
    return walk.closes[stop] + 1 if walk.at(stop) == "{" else None


def _past_line(walk: Walker, index: int) -> int | None:
    """Past a statement that ends with a semicolon, whatever stands in its brackets."""
    while index < walk.end and walk.at(index) != ";":
        if walk.at(index) in ("}", ")", "]"):
            return None
        index = walk.closes[index] + 1 if walk.at(index) in ("{", "(", "[") else index + 1
    return index + 1


def _ghost_variables(tokens: Sequence[str]) -> set[str]:
    pairs = zip(tokens, tokens[1:], tokens[2:], strict=False)
    return {name for ghost, var, name in pairs if ghost == "ghost" and var == "var"}
