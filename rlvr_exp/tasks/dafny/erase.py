"""Programs without their proofs: bodies with their annotations removed.

From a function's body: `assert e;`, `calc {}`, `reveal f();` and calls of lemmas before an expression. From a method's:
these as statements, `ghost var`, forall statements, lemma calls, and the clauses of loops. What stays is compiled code,
or a function's meaning, so two bodies that are equal without proofs do the same. Never decides whether a proof holds.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise, takewhile

from rlvr_exp.tasks.dafny.expressions import Walker, is_name, partners

_STARTS = frozenset(("", "{", "}", ";", "then", "else", "=>", "(", ",", ":=", ":|"))
_BEFORE_STATEMENTS = frozenset(("", "{", "}", ";", "=>", ":"))
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
    """Where each annotation of a method's body begins and ends, in order; `method_body` is the text between them."""
    walk = Walker(tokens, partners(tokens))
    ghosts = _ghost_variables(walk)
    index = 0
    while index < walk.end:
        seen = {name for name, start, stop in ghosts if start < index < stop}
        past = _past_statement(walk, index, proofs, seen)
        if past is not None and not (_assigns(walk, index, seen) and set(tokens[index:past]) & set(runs)):
            yield index, past
        index = index + 1 if past is None else past


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


def _past_statement(walk: Walker, index: int, proofs: Collection[str], ghosts: Collection[str]) -> int | None:
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
        return _past_forall(walk, index)
    if token == "label":
        return None if _is_left(walk, walk.at(index + 1)) else index + 3
    if _assigns(walk, index, ghosts):
        return _past_line(walk, index)
    last = index
    while walk.at(last + 1) == ".":
        last += 2
    return _past_call(walk, index) if walk.at(last) in proofs else None


def _is_left(walk: Walker, label: str) -> bool:
    """Whether a `break` or `continue` names the label: then it is code, and not only a mark for `old@`."""
    return any(word in ("break", "continue") and name == label for word, name in pairwise(walk.tokens))


def _past_clause(walk: Walker, index: int) -> int:
    index += 2 if walk.at(index) == "free" else 1
    stop = walk.past_expression(index)
    return stop + 1 if walk.at(stop) == ";" else stop


def _past_forall(walk: Walker, index: int) -> int | None:
    """The index after a forall statement with an ensures clause; a forall statement that assigns stays."""
    stop = walk.past_expression(index + 1)
    if walk.at(stop) != "ensures":
        return None
    while walk.at(stop) == "ensures":
        stop = walk.past_expression(stop + 1)
        stop += walk.at(stop) == ";"
    return walk.closes[stop] + 1 if walk.at(stop) == "{" else None


def _past_line(walk: Walker, index: int) -> int | None:
    """The index after a statement that ends with a semicolon, whatever its brackets contain."""
    while index < walk.end and walk.at(index) != ";":
        if walk.at(index) in ("}", ")", "]"):
            return None
        index = walk.closes[index] + 1 if walk.at(index) in ("{", "(", "[") else index + 1
    return index + 1


def _assigns(walk: Walker, index: int, ghosts: Collection[str]) -> bool:
    """Whether a statement begins there that declares a ghost variable or assigns to it."""
    token, following = walk.at(index), walk.at(index + 1)
    return (token == "ghost" and following == "var") or (token in ghosts and following == ":=")


def _ghost_variables(walk: Walker) -> list[tuple[str, int, int]]:
    """Ghost variables, each with the indices of its scope. A variable whose name another variable of the body has as
    well is left out: a use may mean the other variable."""
    tokens, others = walk.tokens, _other_variables(walk)
    triples = enumerate(zip(tokens, tokens[1:], tokens[2:], strict=False))
    return [
        (name, index, _end_of_scope(walk, index))
        for index, (ghost, var, name) in triples
        if ghost == "ghost" and var == "var" and name not in others
    ]


def _other_variables(walk: Walker) -> set[str]:
    """Names that a statement `var` declares, and names in their types."""
    found: set[str] = set()
    for index, (before, token) in enumerate(pairwise(("", *walk.tokens))):
        if token == "var" and before in _BEFORE_STATEMENTS:
            found.update(takewhile(lambda each: each not in (":=", ":|", ";"), walk.tokens[index + 1 :]))
    return found


def _end_of_scope(walk: Walker, index: int) -> int:
    """The brace that closes the block of a statement, or the next case."""
    while index < walk.end and walk.at(index) not in ("}", "case"):
        index = walk.closes[index] + 1 if walk.at(index) in ("{", "(", "[") else index + 1
    return index
