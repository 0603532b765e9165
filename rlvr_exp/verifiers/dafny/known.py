"""A program's declarations, read once: what the guards compare, and what the tool's answer is held against.

Owns which names a specification speaks of, and which calls are proofs. Compares nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rlvr_exp.tasks.dafny.syntax import CALLABLES, Declaration, Unreadable, parse
from rlvr_exp.tasks.dafny.tokens import has_directive
from rlvr_exp.verifiers.dafny.scopes import Use, uses
from rlvr_exp.verifiers.dafny.suspects import bodyless

PROVED = CALLABLES - {"function"}
"""Kinds whose bodies are proved; a function's is part of the specification."""
_IMPLIED = {"autocontracts": ("Valid", "Repr")}
"""Names that an attribute speaks of without writing them."""
_OF_ITERATORS = "MoveNext"
"""The method that every iterator has."""


@dataclass(frozen=True)
class Known:
    """A program, read once: what stands where, and what its declarations speak of."""

    declarations: tuple[Declaration, ...]
    spoken: frozenset[str]
    """Identifiers in specifications and definitions, parameters of their own declaration apart."""
    meant: frozenset[Use]
    """Those of them that can mean a function, method, constant or field."""
    callables: frozenset[str]
    """Names of its methods, lemmas and functions."""
    labels: frozenset[str]
    """The same as the tool's log writes them."""
    assumes: bool
    """It believes something that nobody proves: `assume`, or a promise without a body."""


@lru_cache(maxsize=2048)
def known(text: str) -> Known:
    """Read a given program. Raises Unreadable."""
    if has_directive(text):
        raise Unreadable("a line that begins with #")
    declarations = parse(text)
    found = list(every(declarations))
    callables = frozenset(one.name or "_ctor" for one in found if one.kind in CALLABLES)
    meant = frozenset(use for one in found for use in _uses(one))
    spoken = frozenset(name for one in found for name in speaks_of(one)) | {use.name for use in meant}
    labels = frozenset(_labels(declarations))
    return Known(declarations, spoken, meant, callables, labels, any(_assumes(one) for one in found))


def _labels(
    declarations: Sequence[Declaration], inner: str = "", only: Callable[[Declaration], bool] | None = None
) -> Iterator[str]:
    """As the tool's log writes the callables: from the innermost module on."""
    for one in declarations:
        own = one.name or "_ctor"
        if one.kind in CALLABLES and (only is None or only(one)):
            yield inner + own
        elif one.members:
            yield from _labels(one.members, f"{own}." if one.kind == "module" else f"{inner}{own}.", only)


def _promises(one: Declaration) -> bool:
    """An iterator whose body is to keep a promise."""
    promises = any(clause.word in ("ensures", "yield ensures") for clause in one.clauses)
    return one.kind == "iterator" and one.body is not None and promises


@dataclass(frozen=True)
class Facts:
    """Of a candidate: what the tool's answer is held against."""

    proofs: frozenset[str] = frozenset()
    """Names of lemmas and ghost methods that are no names of methods that run: calls of them are proofs."""
    runs: frozenset[str] = frozenset()
    """Names of methods that run."""
    bodyless: int = 0
    """Loops and forall statements without a body."""
    promising: frozenset[str] = frozenset()
    """Labels of iterators whose bodies must keep a promise; the tool has to speak of each."""

    @classmethod
    def of(cls, declarations: Sequence[Declaration]) -> "Facts":
        found = list(every(declarations))
        ghosts = frozenset(one.name for one in found if one.ghost and one.kind in ("lemma", "method"))
        runs = frozenset(one.name for one in found if one.kind == "method" and not one.ghost) | {_OF_ITERATORS}
        open_loops = sum(bodyless(body) for one in found for body in (one.body, one.compiled) if body)
        return cls(ghosts - runs, runs, open_loops, frozenset(_labels(declarations, only=_promises)))


def _assumes(one: Declaration) -> bool:
    if "assume" in one.everything():
        return True
    promises = any(clause.word == "ensures" for clause in one.clauses)
    return one.kind in CALLABLES and one.body is None and promises


def every(declarations: Sequence[Declaration]) -> Iterator[Declaration]:
    """All declarations, members included."""
    for one in declarations:
        yield one
        yield from every(one.members or ())


def _uses(one: Declaration) -> Iterator[Use]:
    """As `speaks_of`, without what the specification itself binds."""
    own = frozenset(_parameters(one.head)) if one.kind in CALLABLES or one.kind == "datatype" else frozenset()
    told = [one.head, *(clause.text for clause in one.clauses)]
    if one.kind not in PROVED and one.body:
        told.append(one.body)
    for part in told:
        yield from uses(part, own)
    for attribute in one.attributes:
        yield from (Use(name, False) for name in _IMPLIED.get(attribute[2], ()))


def speaks_of(one: Declaration) -> Iterator[str]:
    """Identifiers of its specification; of all but a proof also of its body."""
    own = _parameters(one.head) if one.kind in CALLABLES else set()
    told = list(one.head) + [token for clause in one.clauses for token in clause.text]
    if one.kind not in PROVED and one.body:
        told += one.body
    yield from (token for token in told if (token[0].isalpha() or token[0] in "_?") and token not in own)
    for attribute in one.attributes:
        yield from _IMPLIED.get(attribute[2], ())


def _parameters(head: Sequence[str]) -> set[str]:
    """Names that stand before a colon inside parentheses."""
    depth, found = 0, set()
    for token, following in zip(head, (*head[1:], ""), strict=True):
        depth += (token == "(") - (token == ")")
        if depth and following == ":":
            found.add(token)
    return found
