"""A program's declarations, parsed once: what the guards compare, and what the tool's output is compared with.

Owns which names a specification mentions, and which calls are proofs. Compares nothing.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from rlvr_exp.tasks.dafny.syntax import CALLABLES, Declaration, Unreadable, parse
from rlvr_exp.tasks.dafny.tokens import has_directive
from rlvr_exp.verifiers.dafny import unsound
from rlvr_exp.verifiers.dafny.scopes import Use, uses
from rlvr_exp.verifiers.dafny.soundness_rules import bodyless

PROVED = CALLABLES - {"function"}
"""Kinds whose bodies are proved; a function's is part of the specification."""
_IMPLIED = {"autocontracts": ("Valid", "Repr")}
"""Names that an attribute implies without writing them."""
_OF_ITERATORS = "MoveNext"
"""The method that every iterator has."""


@dataclass(frozen=True)
class ProgramDeclarations:
    """A parsed program: its declarations and the names that they mention."""

    declarations: tuple[Declaration, ...]
    spoken: frozenset[str]
    """Identifiers in specifications and definitions, without parameters of their own declaration."""
    meant: frozenset[Use]
    """The identifiers among them that can mean a function, method, constant or field."""
    labels: frozenset[str]
    """Names of its methods, lemmas and functions in the tool's log."""
    assumes: bool
    """Whether it assumes something without a proof: `assume` or a `free` clause."""
    unwritten: frozenset[tuple[str, str]]
    """Keys of its callables that promise something without a body."""
    text: str = ""
    """The program itself."""
    faults: frozenset[str] = frozenset()
    """Its types that make Dafny inconsistent."""
    bits: frozenset[str] = frozenset()
    """Its names that mean bit vectors."""


@lru_cache(maxsize=2048)
def read_declarations(text: str) -> ProgramDeclarations:
    """Parse a given program. Raises Unreadable."""
    if has_directive(text):
        raise Unreadable("a line that begins with #")
    declarations = parse(text)
    found = list(every(declarations))
    meant = frozenset(use for one in found for use in _uses(one))
    spoken = frozenset(name for one in found for name in speaks_of(one)) | {use.name for use in meant}
    labels = frozenset(label for label, _ in labelled(declarations))
    assumes = any(_assumes(one) for one in found)
    own = (frozenset(unsound.faults(declarations)), unsound.bit_vectors(declarations))
    return ProgramDeclarations(declarations, spoken, meant, labels, assumes, _unwritten(found), text, *own)


def labelled(declarations: Sequence[Declaration], inner: str = "") -> Iterator[tuple[str, Declaration]]:
    """The callables, each with its name in the tool's log: from the innermost module on."""
    for one in declarations:
        own = one.name.rpartition(".")[2] or "_ctor"
        if one.kind in CALLABLES:
            yield inner + own, one
        elif one.members:
            yield from labelled(one.members, f"{own}." if one.kind == "module" else f"{inner}{own}.")


def _promises(one: Declaration) -> bool:
    """Whether it has a body that must keep a promise: Dafny 2.3 writes a line for each such body."""
    promises = any(clause.word in ("ensures", "yield ensures") for clause in one.clauses)
    return one.kind in PROVED and one.body is not None and promises


@dataclass(frozen=True)
class Facts:
    """What the tool's output on a candidate is compared with."""

    proofs: frozenset[str] = frozenset()
    """Names of lemmas and ghost methods that no compiled method has: calls of them are proofs."""
    runs: frozenset[str] = frozenset()
    """Names of compiled methods."""
    methods: frozenset[str] = frozenset()
    """Names of methods, ghost ones too."""
    bodyless: int = 0
    """Number of loops and forall statements without a body."""
    bits: frozenset[str] = frozenset()
    """Names that mean bit vectors."""
    unconditional: frozenset[str] = frozenset()
    """Labels of callables that require nothing."""
    promising: Counter[str] = field(default_factory=Counter)
    """Labels of methods, lemmas, constructors and iterators whose bodies must keep a promise, with their number;
    the tool has to report each of them as verified."""

    @classmethod
    def of(cls, declarations: Sequence[Declaration]) -> "Facts":
        found = list(every(declarations))
        ghosts = frozenset(one.name for one in found if one.ghost and one.kind in ("lemma", "method"))
        runs = frozenset(one.name for one in found if one.kind == "method" and not one.ghost) | {_OF_ITERATORS}
        methods = runs | {one.name for one in found if one.kind == "method"}
        open_loops = sum(bodyless(body) for one in found for body in (one.body, one.compiled) if body)
        named = list(labelled(declarations))
        promising = Counter(label for label, one in named if _promises(one))
        free = frozenset(label for label, one in named if not any("requires" in each.word for each in one.clauses))
        return cls(ghosts - runs, runs, methods, open_loops, unsound.bit_vectors(declarations), free, promising)


def _assumes(one: Declaration) -> bool:
    return any(token in ("assume", "free") or token.startswith("free ") for token in one.everything())


def _unwritten(found: Sequence[Declaration]) -> frozenset[tuple[str, str]]:
    open_ones = (one for one in found if one.kind in CALLABLES and one.body is None)
    return frozenset(one.key for one in open_ones if any(clause.word == "ensures" for clause in one.clauses))


def leaves_assumed(given: ProgramDeclarations, text: str) -> bool:
    """Whether a candidate has assumptions of the given program: what it gives a body is none."""
    try:
        left = _unwritten(list(every(parse(text))))
    except Unreadable:
        return True
    return given.assumes or not given.unwritten.isdisjoint(left)


def every(declarations: Sequence[Declaration]) -> Iterator[Declaration]:
    """All declarations, members included."""
    for one in declarations:
        yield one
        yield from every(one.members or ())


def _uses(one: Declaration) -> Iterator[Use]:
    """As `speaks_of`, without names that the specification itself binds."""
    own = frozenset(_parameters(one.head)) if one.kind in CALLABLES or one.kind == "datatype" else frozenset()
    mentioned = [one.head, *(clause.text for clause in one.clauses)]
    if one.kind not in PROVED and one.body:
        mentioned.append(one.body)
    for part in mentioned:
        yield from uses(part, own)
    for attribute in one.attributes:
        yield from (Use(name, False) for name in _IMPLIED.get(attribute[2], ()))


def speaks_of(one: Declaration) -> Iterator[str]:
    """Identifiers of its specification, and of its body unless that is a proof."""
    own = _parameters(one.head) if one.kind in CALLABLES else set()
    mentioned = list(one.head) + [token for clause in one.clauses for token in clause.text]
    if one.kind not in PROVED and one.body:
        mentioned += one.body
    yield from (token for token in mentioned if (token[0].isalpha() or token[0] in "_?") and token not in own)
    for attribute in one.attributes:
        yield from _IMPLIED.get(attribute[2], ())


def _parameters(head: Sequence[str]) -> set[str]:
    """Names before a colon inside parentheses."""
    depth, found = 0, set()
    for token, following in zip(head, (*head[1:], ""), strict=True):
        depth += (token == "(") - (token == ")")
        if depth and following == ":":
            found.add(token)
    return found
