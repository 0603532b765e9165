"""Training pairs of each role from examples that can be trusted, and the reasons why others cannot.

The writer goes from header and specification to the body, the annotator from the body to the annotated body. Checked
here: no empty texts, parts that are one method of a readable program, a body that equals the annotated body without
annotations. Checks that need Dafny (it resolves, the gold is proved) are left to a callable;
rlvr_exp/domains/dafny/usable.py has such a callable.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from rlvr_exp.domains.dafny import annotations as erase
from rlvr_exp.domains.dafny.example import DafnyExample, Role
from rlvr_exp.domains.dafny.syntax import Method, Split, Unreadable, split
from rlvr_exp.domains.dafny.tokens import Unbalanced, plain, tokens

EMPTY_HEADER, EMPTY_BODY = "empty header", "empty body"
UNREADABLE, NOT_ONE_METHOD = "cannot be read", "the parts are not one method with its body"
ALL_PROOF, NO_PROMISE = "a lemma or ghost method: no code to write", "no ensures: every body would do"
OTHER_CODE = "the body is not the annotated one without annotations"

Check = Callable[[DafnyExample, Role], str]
"""Why an example is of no use to a role; empty where it is."""


@dataclass(frozen=True)
class Pairing:
    """One training pair: `given` leads to `wanted`."""

    role: Role
    example: DafnyExample
    given: str
    wanted: str


@dataclass(frozen=True)
class Pairings:
    """The usable pairs, in the order of the examples, and the others' reasons by id."""

    role: Role
    pairs: tuple[Pairing, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[Pairing]:
        return iter(self.pairs)

    def reasons(self) -> dict[str, int]:
        """Counts of the reasons for leaving out, most first; of a reason with details the part before the colon."""
        return dict(Counter(reason.partition(":")[0] for reason in self.left_out.values()).most_common())


def build_pairings_for_writer(examples: Iterable[DafnyExample], check: Check | None = None) -> Pairings:
    """Header and specification to body. `check`: a further check of well-formed examples."""
    return _pairings("writer", examples, check)


def build_pairings_for_annotator(examples: Iterable[DafnyExample], check: Check | None = None) -> Pairings:
    """Body to annotated body, which may be equal: an annotator also has to learn when nothing is missing."""
    return _pairings("annotator", examples, check)


def fault_of(example: DafnyExample, role: Role) -> str:
    """Why an example is of no use to a role, judged by its text; empty where it is."""
    if not example.header.strip():
        return EMPTY_HEADER
    body, annotated = tokens(plain(example.body)), tokens(plain(example.annotated_body))
    if not body or len(annotated) <= 2 or (role == "writer" and len(body) <= 2 and not _is_ghost(example)):
        return EMPTY_BODY
    try:
        whole = _split(example.gold)
        method = target(example, whole)
        if method is None:
            return NOT_ONE_METHOD
        if role == "writer" and method.ghost:
            return ALL_PROOF
        if role == "writer" and not _promises(method):
            return NO_PROMISE
        return _code_fault(example, method, whole.proofs)
    except Unreadable as fault:
        return f"{UNREADABLE}: {fault}"


def target(example: DafnyExample, whole: Split) -> Method | None:
    """The method of the program that the example is cut at."""
    signature = example.header + example.spec
    return next(
        (one for one in whole.methods if (one.before, one.header + one.spec) == (example.before, signature)), None
    )


@lru_cache(maxsize=256)
def _split(text: str) -> Split:
    return split(text)


def _is_ghost(example: DafnyExample) -> bool:
    return bool({"lemma", "colemma", "ghost"} & set(tokens(plain(example.header))[:3]))


def _promises(method: Method) -> bool:
    return method.kind == "function" or any(clause.word == "ensures" for clause in method.declaration.clauses)


def _code_fault(example: DafnyExample, method: Method, proofs: frozenset[str]) -> str:
    if method.body != example.annotated_body:
        return NOT_ONE_METHOD
    written = target(example, split(example.program(example.body)))
    if written is None or written.body != example.body:
        return NOT_ONE_METHOD
    if method.ghost:
        return ""
    try:
        codes = {erase.method_body(tokens(plain(text)), proofs) for text in (example.body, example.annotated_body)}
    except Unbalanced as fault:
        return f"{UNREADABLE}: {fault}"
    return "" if len(codes) == 1 else OTHER_CODE


def _pairings(role: Role, examples: Iterable[DafnyExample], check: Check | None) -> Pairings:
    found, left_out = [], {}
    for example in examples:
        fault = fault_of(example, role) or (check(example, role) if check is not None else "")
        if fault:
            left_out[example.id] = fault
        elif role == "writer":
            found.append(Pairing(role, example, example.header + example.spec, example.body))
        else:
            found.append(Pairing(role, example, example.body, example.annotated_body))
    return Pairings(role, tuple(found), left_out)
