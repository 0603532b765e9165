"""From one program of a data set to its examples: the text of each body without annotations.

Where the set has the same program without hints, a method's body is taken from there if it is the same method: equal
head and clauses, and the same code once both are erased. Hints outside that method stay: `before` and `after` are the
given program's. Else the body is erased here; a body that is all proof (a lemma, a ghost method) keeps only its braces.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from rlvr_exp.tasks.dafny import erase
from rlvr_exp.tasks.dafny.example import DafnyExample
from rlvr_exp.tasks.dafny.expressions import Unbalanced
from rlvr_exp.tasks.dafny.split import Method, Split, split
from rlvr_exp.tasks.dafny.strip import erased, hollow
from rlvr_exp.tasks.dafny.syntax import Unreadable
from rlvr_exp.tasks.dafny.tokens import plain, tokens

_MARKER = re.compile(r"//\s*(?:invariants?|assert|lemma-use)-(?:start|end|line)")


@dataclass(frozen=True)
class Program:
    """A program of a data set."""

    id: str
    text: str
    family: str
    source: str
    stripped: str = ""
    """The same program without its hints, where the set has it."""


def examples(program: Program) -> list[DafnyExample]:
    """One example for each method with a body, in the order of the text. Raises Unreadable."""
    whole = split(program.text)
    methods = _named(whole)
    given = _given_bodies(program, methods)
    found = []
    for name, method in methods.items():
        body = given.get(name)
        if body is None or not _same_code(method, body, whole.proofs):
            body = without_annotations(method, whole.proofs)
        texts = (method.header, method.spec, body, method.body, method.before, method.after)
        found.append(DafnyExample(f"{program.id}/{name}", *texts, program.family, program.source))
    return found


def without_annotations(method: Method, proofs: frozenset[str]) -> str:
    """The method's own body, erased. Comments that only mark annotations are erased with them."""
    if method.ghost:
        return hollow(method.body)
    return erased(method.body, proofs, lambda comment: _MARKER.fullmatch(comment) is not None)


def _given_bodies(program: Program, methods: Mapping[str, Method]) -> Mapping[str, str]:
    """Bodies of the program without hints, by name, of equal declarations; empty where unreadable."""
    if not program.stripped:
        return {}
    try:
        stripped = _named(split(program.stripped))
    except Unreadable:  # hints cut out of the middle of statements leave brackets open
        return {}
    alike = (name for name in methods if name in stripped and _head(stripped[name]) == _head(methods[name]))
    return {name: stripped[name].body for name in alike}


def _named(whole: Split) -> dict[str, Method]:
    """Methods by name; a repeated name is numbered."""
    seen: Counter[str] = Counter()
    found = {}
    for method in whole.methods:
        seen[method.name] += 1
        found[method.name if seen[method.name] == 1 else f"{method.name}~{seen[method.name]}"] = method
    return found


def _head(method: Method) -> tuple[str, ...]:
    return tuple(tokens(plain(method.header + method.spec)))


def _same_code(method: Method, body: str, proofs: frozenset[str]) -> bool:
    """Whether `body` is the method's body without annotations; for all-proof bodies: whether its tokens are in it."""
    found, whole = tokens(plain(body)), tokens(plain(method.body))
    if method.ghost:
        rest = iter(whole)
        return all(token in rest for token in found)
    try:
        return erase.method_body(found, proofs) == erase.method_body(whole, proofs)
    except Unbalanced:
        return False
