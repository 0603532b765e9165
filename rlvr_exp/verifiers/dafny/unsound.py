"""Declarations with which Dafny 2.3 proves everything; the guards refuse them where they are new.

Looks at tokens and at which type names which: a type counts as recursive, or as reaching an arrow, by the names that
its fields mention, whatever module they are from. So a harmless type may be refused; a type that people write for a
proof is not. The reason for each rule, with Dafny's issues, is in rlvr_exp/docs/dafny.md. Unsoundness that needs no
declaration of its own is not found here.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from rlvr_exp.tasks.dafny.expressions import is_name
from rlvr_exp.tasks.dafny.syntax import CALLABLES, Declaration
from rlvr_exp.verifiers.dafny.scopes import unbounded
from rlvr_exp.verifiers.dafny.soundness_rules import SoundnessRisk

_TYPES = frozenset(("datatype", "type", "class", "trait"))
_LARGE = frozenset(("iset", "imap", "->", "-->", "~>"))
_BIT_VECTOR = re.compile(r"bv\d+")
_ALL = "object"
_ON_MEMORY = SoundnessRisk("unsound", "a function value that may depend on all memory (~>, f.reads, reads *)")


def faults(declarations: Sequence[Declaration]) -> Mapping[str, str]:
    """The types that make Dafny inconsistent, by qualified name, each with the reason."""
    found = dict(_types(declarations))
    mentions = _mentions(found)
    tokens: dict[str, list[str]] = {}
    for name, one in found.items():
        tokens.setdefault(name.rpartition(".")[2], []).extend(_own(one))
    faulty = {}
    for name, one in found.items():
        own = name.rpartition(".")[2]
        beyond = _reach(mentions, mentions[own])
        if own in beyond and any(_LARGE & set(tokens.get(other, ())) for other in {own, *beyond}):
            faulty[name] = "is recursive and reaches an iset, an imap or a function"
        elif one.kind in ("datatype", "type") and "ORDINAL" in one.head:
            faulty[name] = "holds an ORDINAL"
        elif one.kind == "type" and _is_subset_of_sequences(one, mentions, tokens):
            faulty[name] = "is a subset type over sequences"
    return faulty


def bit_vectors(declarations: Sequence[Declaration]) -> frozenset[str]:
    """Names of declarations whose heads mention a bit vector, or a name that does."""
    heads = [(set(one.names()), set(one.head)) for one in _every(declarations)]
    found: set[str] = set()
    while True:
        more = {name for names, head in heads if head & found or _has_bit_vector(head) for name in names} - found
        if not more:
            return frozenset(found)
        found |= more


def soundness_risks_of(one: Declaration, bits: frozenset[str]) -> Iterator[SoundnessRisk]:
    """Risks in one declaration that few proofs need and that break Dafny."""
    parts = [one.head, *(clause.text for clause in one.clauses), one.body or (), one.compiled or ()]
    for part in parts:
        yield from _memory_functions(part)
        for text in unbounded(part):
            yield SoundnessRisk("unsound", f"a comprehension over whatever there is: {text}")
    for clause in one.clauses:
        if clause.word == "reads" and clause.text == ("*",):
            yield _ON_MEMORY
    measured = [" ".join(clause.text) for clause in one.clauses if clause.word == "decreases"]
    measured += _measures(one.body or ())
    if measured and one.kind in CALLABLES and any(_has_bit_vector(part) or bits & set(part) for part in parts):
        yield from (SoundnessRisk("unsound", f"decreases {measure}, with bit vectors in reach") for measure in measured)


def _memory_functions(tokens: Sequence[str]) -> Iterator[SoundnessRisk]:
    """Types of functions that depend on memory, frames of such functions, and functions of any frame."""
    for before, token, after in zip(("", *tokens), tokens, (*tokens[1:], ""), strict=False):
        if token == "~>" or (token == "reads" and (before == "." or after == "*")):
            yield _ON_MEMORY


def _types(declarations: Sequence[Declaration], above: str = "") -> Iterator[tuple[str, Declaration]]:
    for one in declarations:
        if one.kind in _TYPES:
            yield above + one.name, one
        yield from _types(one.members or (), f"{above}{one.name}.")


def _every(declarations: Sequence[Declaration]) -> Iterator[Declaration]:
    for one in declarations:
        yield one
        yield from _every(one.members or ())


def _own(one: Declaration) -> list[str]:
    """The tokens that define a type: constructors' fields, a synonym's definition, fields and constants."""
    fields = (member for member in one.members or () if member.kind in ("field", "const"))
    return [*_after_name(one), *(token for member in fields for token in member.head)]


def _after_name(one: Declaration) -> list[str]:
    """The head without the type's name, and a datatype's without its constructors' and their fields' names."""
    head = list(one.head)
    start = head.index(one.name) + 1 if one.name in head else 0
    if one.kind != "datatype":
        return head[start:]
    kept, depth = [], 0
    for token, following in zip(head[start:], [*head[start + 1 :], ""], strict=True):
        depth += (token == "(") - (token == ")")
        if depth and following != ":":
            kept.append(token)
    return kept


def _mentions(found: Mapping[str, Declaration]) -> dict[str, set[str]]:
    """The types that each type mentions, by bare names; a trait stands for its classes, and `object` for all."""
    bare = {name.rpartition(".")[2] for name in found} | {_ALL}
    edges: dict[str, set[str]] = {name: set() for name in bare}
    for name, one in found.items():
        own = name.rpartition(".")[2]
        edges[own] |= bare & {token.removesuffix("?") for token in _own(one)}
        if one.kind in ("class", "trait"):
            edges[_ALL].add(own)
            for above in bare & set(_after_name(one)):
                edges[above].add(own)
    return edges


def _reach(mentions: Mapping[str, set[str]], start: set[str]) -> set[str]:
    found: set[str] = set()
    left = list(start)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += mentions.get(name, ())
    return found


def _is_subset_of_sequences(
    one: Declaration, mentions: Mapping[str, set[str]], tokens: Mapping[str, Sequence[str]]
) -> bool:
    """Whether it is `type T = x: S | ...` where S is a sequence, or is omitted and may be a sequence."""
    head = list(one.head)
    if "newtype" in head or "=" not in head or "|" not in head[head.index("=") :]:
        return False
    start = head.index("=") + 1
    base = head[start + 1 : head.index("|", start)]
    if not base:
        return True
    names = {token for token in base if is_name(token)}
    below = _reach(mentions, names & set(mentions))
    every = names.union(*(tokens[name] for name in below if name in tokens))
    return bool({"seq", "string"} & every)


def _has_bit_vector(tokens: Sequence[str] | set[str]) -> bool:
    return any(_BIT_VECTOR.fullmatch(token) for token in tokens)


def _measures(body: Sequence[str]) -> list[str]:
    """What follows each `decreases` of a body, up to its loop's next clause, semicolon or brace."""
    stops = (";", "{", "invariant", "decreases", "modifies")
    found = []
    for index, token in enumerate(body):
        if token == "decreases":
            rest = list(body[index + 1 :])
            stop = next((at for at, word in enumerate(rest) if word in stops), len(rest))
            found.append(" ".join(rest[:stop]))
    return found
