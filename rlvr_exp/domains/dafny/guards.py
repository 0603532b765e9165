"""The guards: a candidate must still be the given program with a proof, and may not reach "0 errors" without a proof.

A program's declarations are parsed once, with the names that its specification mentions and the calls that are proofs. The
comparison goes declaration by declaration, token by token in specifications. A candidate may repeat every risk of the given
program as often, in the same declaration. It may prove (bodies of methods and lemmas, invariants, asserts, ghost code), add
declarations that have bodies and take no name that the given program mentions, and add `ensures` to what it proves. Rules are
listed in rlvr_exp/docs/dafny.md. Dafny decides whether the proof holds.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from rlvr_exp.domains.dafny import annotations
from rlvr_exp.domains.dafny.problem import Protect
from rlvr_exp.domains.dafny.scopes import Use, uses
from rlvr_exp.domains.dafny.self_calls import constants_of, remaining
from rlvr_exp.domains.dafny.soundness import (
    INSTEAD,
    SoundnessRisk,
    attribute_of,
    declaration_risk,
    ghost_results,
    has_heap,
    nondeterminism,
    soundness_risks,
)
from rlvr_exp.domains.dafny.syntax import CALLABLES, Declaration, Unreadable, every, parse
from rlvr_exp.domains.dafny.tokens import has_directive, is_name, plain, tokens
from rlvr_exp.domains.dafny.variance import invariant_types, mixed_types

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
    text: str = ""
    """The program itself."""
    missing: frozenset[str] = frozenset()
    """Functions that it calls and does not declare: a candidate may define them."""


@lru_cache(maxsize=2048)
def read_declarations(text: str) -> ProgramDeclarations:
    """Parse a given program. Raises Unreadable."""
    if has_directive(text):
        raise Unreadable("a line that begins with #")
    declarations = parse(text)
    found = list(every(declarations))
    meant = frozenset(use for one in found for use in _uses(one))
    return ProgramDeclarations(
        declarations,
        spoken=frozenset(name for one in found for name in speaks_of(one)) | {use.name for use in meant},
        meant=meant,
        labels=frozenset(label for label, _ in labelled(declarations)),
        text=text,
        missing=_missing(found),
    )


def _missing(found: Sequence[Declaration]) -> frozenset[str]:
    """Names that are always called, never behind a dot, and that no declaration has."""
    if any(one.kind == "include" for one in found):
        return frozenset()
    called, other = set[str](), {name for one in found for name in one.names()}
    for one in found:
        words = ["", *one.everything(), ""]
        for before, word, after in zip(words, words[1:], words[2:], strict=False):
            if is_name(word or ";"):
                (called if after == "(" and before != "." else other).add(word)
    return frozenset(called - other)


def labelled(declarations: Sequence[Declaration], inner: str = "") -> Iterator[tuple[str, Declaration]]:
    """The callables, each with its name in the tool's log: from the innermost module on."""
    for one in declarations:
        own = one.name.rpartition(".")[2] or "_ctor"
        if one.kind in CALLABLES:
            yield inner + own, one
        elif one.members:
            yield from labelled(one.members, f"{own}." if one.kind == "module" else f"{inner}{own}.")


@dataclass(frozen=True)
class Facts:
    """Facts on a candidate that the tool's output is compared with."""

    proofs: frozenset[str] = frozenset()
    """Names of lemmas and ghost methods that no compiled method has: calls of them are proofs."""
    ghosts: frozenset[str] = frozenset()
    """Names of all lemmas and ghost methods."""
    runs: frozenset[str] = frozenset()
    """Names of compiled methods."""
    unconditional: frozenset[str] = frozenset()
    """Labels of callables that require nothing."""
    heap: bool = True
    """Whether there can be objects or arrays."""
    invariant: frozenset[str] = frozenset()
    """Names of generic types that are not covariant."""
    constants: frozenset[str] = frozenset()
    """Names of constants of types."""

    @classmethod
    def of(cls, declarations: Sequence[Declaration], heap: bool) -> "Facts":
        found = list(every(declarations))
        ghosts = frozenset(one.name for one in found if one.ghost and one.kind in ("lemma", "method"))
        runs = frozenset(one.name for one in found if one.kind == "method" and not one.ghost) | {_OF_ITERATORS}
        unconditional = (
            label for label, one in labelled(declarations) if not any("requires" in each.word for each in one.clauses)
        )
        types = (invariant_types(declarations), constants_of(declarations))
        return cls(ghosts - runs, ghosts, runs, frozenset(unconditional), heap, *types)


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


_KEPT = frozenset(("requires", "modifies", "reads", "yield requires", "invariant"))


@dataclass(frozen=True)
class Violation:
    """The rule that a candidate broke, and where."""

    rule: str
    log: str


class ViolationError(Exception):
    """Raised inside this module at the first violation."""

    def __init__(self, rule: str, log: str):
        super().__init__(log)
        self.violation = _violation(rule, log)


def _violation(rule: str, log: str) -> Violation:
    """The violation, with a sentence that says what to write instead."""
    return Violation(rule, f"{log}. Instead, {INSTEAD[rule]}.")


def promises_false(one: Declaration) -> bool:
    """Whether it must not return: it has `ensures false`, and has to end."""
    words = [(clause.word, clause.text) for clause in one.clauses]
    endless = any(word == "decreases" and "*" in text for word, text in words)
    return one.kind in CALLABLES and ("ensures", ("false",)) in words and not endless


def before_parsing(program: str, text: str) -> Violation | None:
    """Violations that must not reach Dafny's parser: directives that remove text, files of the machine.

    Args:
        text: the original candidate, with its comments.
    """
    if has_directive(text):
        return _violation("preprocessor", "a line begins with #, which Dafny obeys even inside comments and strings")
    if "include" in text and Counter(_includes(text)) - Counter(_includes(program)):
        return _violation("include", "a file that the given program does not include")
    return None


def _includes(text: str) -> list[str]:
    return [following for token, following in pairwise(tokens(text)) if token == "include"]


def check(
    given: ProgramDeclarations, text: str, protect: Protect, holes: bool = True, keep: ProgramDeclarations | None = None
) -> tuple[Violation | None, Facts]:
    """The first rule that the candidate breaks, and the facts needed to check the tool's output.

    Args:
        protect: whether code may change.
        holes: whether a callable without a body that promises something and is not called must get a body, unless the whole
            program is protected.
        keep: a program whose code must not change either; a body without code there stays empty.

    Raises:
        Unreadable: the candidate cannot be read; Dafny most likely cannot either, and if it can, it must not pass.
    """
    declarations = parse(text)
    facts = Facts.of(declarations, has_heap(tokens(text)))
    try:
        _Comparison(given, protect, facts, choices=keep).compare(given.declarations, declarations)
        if keep is not None:
            _Comparison(keep, "program", facts, empty="kept").compare(keep.declarations, declarations)
        if holes and protect == "specification":
            _check_holes(given, declarations)
        if mixed := mixed_types(tokens(given.text), tokens(text), facts.invariant):
            raise ViolationError(
                "mixed-types", " beside ".join(f"arrays or objects of {one or 'an inferred type'}" for one in mixed)
            )
    except ViolationError as error:
        return error.violation, facts
    return None, facts


def _check_holes(given: ProgramDeclarations, declarations: Sequence[Declaration]) -> None:
    """A given method without a body that promises something and that no other given body calls has to be written."""
    left = {path for path, one in _paths(declarations) if one.body is None}
    callers = [one for one in every(given.declarations) if one.kind in CALLABLES and one.body]
    called = {
        token
        for one in callers
        if one.name != "Main" and not one.name.lower().startswith("test")
        for token in one.body or ()
    }
    for path, one in _paths(given.declarations, assumed=False):
        promises = any(clause.word == "ensures" for clause in one.clauses)
        outside = any({"axiom", "Axiom", "extern"} & set(attribute[1:3]) for attribute in one.attributes)
        hole = one.kind in PROVED and one.body is None and promises and not outside
        if path in left and hole and one.name not in called:
            raise ViolationError("hole", f"{_title(one)} still has no body")


def _paths(
    declarations: Sequence[Declaration], above: tuple = (), assumed: bool = True
) -> Iterator[tuple[tuple, Declaration]]:
    """Every declaration with its path; `assumed` false: not inside declarations that may stay abstract."""
    for one in declarations:
        path = (*above, one.key)
        yield path, one
        if one.members and (assumed or (one.kind != "trait" and "abstract" not in one.head)):
            yield from _paths(one.members, path, assumed)


_INHABITED = frozenset(
    ("int", "nat", "bool", "real", "char", "string", "seq", "set", "multiset", "map", "<", ">", ",", ":")
)
"""Types that have values, whatever their parameters."""


class _Comparison:
    """The comparison of a candidate with one program.

    Args:
        empty: whether a body without code is still to be written, or is kept as it is.
        choices: a program whose choices of values (`:|`) a candidate may keep.
    """

    def __init__(
        self,
        given: ProgramDeclarations,
        protect: Protect,
        facts: Facts,
        empty: Literal["written", "kept"] = "written",
        choices: ProgramDeclarations | None = None,
    ):
        self._given, self._protect, self._facts, self._empty = given, protect, facts, empty
        self._code_stays = protect == "program" or choices is not None
        self._choices = {one.key: one for one in every(choices.declarations)} if choices is not None else {}

    def compare(
        self, given: Sequence[Declaration], found: Sequence[Declaration], within: Declaration | None = None
    ) -> None:
        """One scope: the members of a module or a type, or the whole program. Raises ViolationError."""
        wanted = {one.key: one for one in given}
        twice = Counter(one.key for one in given)
        seen: Counter[tuple[str, str]] = Counter()
        for one in found:
            seen[one.key] += 1
            if one.key not in wanted:
                self._added(one, within)
            elif seen[one.key] > twice[one.key]:
                raise ViolationError("spec-shadowed", f"{_title(one)} is declared twice")
            else:
                self._same(wanted[one.key], one)
        for one in given:
            if seen[one.key] < twice[one.key]:
                raise ViolationError("spec-removed", f"{_title(one)} of the given program is not there")

    def _same(self, given: Declaration, one: Declaration) -> None:
        heads = [
            head[:-1] if head[-1:] == (";",) else head for head in (given.head, one.head)
        ]  # An older style ends with ;
        if heads[0] != heads[1]:
            differing = (f"{b!r} in place of {a!r}" for a, b in zip(given.head, one.head, strict=False) if a != b)
            how = next(differing, f"{len(one.head)} tokens in place of {len(given.head)}")
            raise ViolationError("spec-changed", f"{_title(given)} is declared otherwise: {how}")
        missing = Counter(given.attributes) - Counter(one.attributes)
        if missing:
            raise ViolationError("spec-changed", f"{_title(given)} lost {' '.join(next(iter(missing)))}")
        self._attributes(Counter(one.attributes) - Counter(given.attributes), given)
        self._clauses(given, one)
        self._body(given, one)
        self._risks(given, one)
        if given.members is not None or one.members is not None:
            self.compare(given.members or (), one.members or (), given)

    def _attributes(self, added: Iterable[Sequence[str]], one: Declaration) -> None:
        for attribute in added:
            if risk := attribute_of(attribute):
                raise ViolationError(risk.rule, f"{risk.text} on {_title(one)}")

    def _clauses(self, given: Declaration, one: Declaration) -> None:
        title = _title(given)
        for word in _KEPT:
            before = [clause.text for clause in given.clauses if clause.word == word]
            after = [clause.text for clause in one.clauses if clause.word == word]
            if before != after:
                raise ViolationError("spec-changed", f"the {word} clauses of {title}")
        promised = [(clause.word, clause.text) for clause in given.clauses if clause.word.endswith("ensures")]
        kept = [(clause.word, clause.text) for clause in one.clauses if clause.word.endswith("ensures")]
        rest = iter(kept)
        if not all(promise in rest for promise in promised):
            raise ViolationError("spec-changed", f"an ensures clause of {title} is missing or changed")
        if len(kept) > len(promised) and one.body is None:
            raise ViolationError("spec-changed", f"{title} has no body and promises more than it did")

    def _body(self, given: Declaration, one: Declaration) -> None:
        if given.body is None:
            if one.body is not None:
                self._filled(given, one)
            return
        if one.body is None:
            raise ViolationError("no-body", f"{_title(given)} lost its body")
        if given.kind == "function":
            if one.body != given.body and annotations.function_body(one.body) != annotations.function_body(given.body):
                raise ViolationError("spec-changed", f"the body of {_title(given)} means something else")
            self._runs_alike(given, given.compiled or (), one.compiled or ())
        elif not given.ghost:
            self._runs_alike(given, given.body, one.body)
        if given.kind in PROVED and "assume" in one.body and one.body != given.body:
            self._assumes_alike(given, given.body, one.body)

    def _runs_alike(self, given: Declaration, before: Sequence[str], after: Sequence[str]) -> None:
        empty = all(token == ";" for token in before)
        if self._protect != "program" or before == after or (self._empty == "written" and empty):
            return
        if self._code(after) != self._code(before):
            raise ViolationError("program-changed", f"{_title(given)} does something else")

    def _assumes_alike(self, given: Declaration, before: Sequence[str], after: Sequence[str]) -> None:
        """A given assumption means the same only among the same code, or behind the same words."""
        codes = [self._code(body) for body in (before, after)]
        if codes[0] == codes[1] and codes[1].count("assume") == after.count("assume"):
            return
        last = max((index for index, token in enumerate(before) if token == "assume"), default=0)
        stop = before.index(";", last) if ";" in before[last:] else len(before)
        if after[:stop] != before[:stop] or "assume" in after[stop:]:
            raise ViolationError("assume", f"what {_title(given)} assumes stands among other code")

    def _code(self, body: Sequence[str]) -> tuple[str, ...]:
        return annotations.method_body(body, self._facts.proofs, self._facts.runs)

    def _filled(self, given: Declaration, one: Declaration) -> None:
        """A body for a declaration that has none in the given program."""
        if given.kind == "function":
            promises = any(clause.word == "ensures" for clause in given.clauses)
            others = [other for other in every(self._given.declarations) if other is not given]
            # In a program of functions and lemmas alone, the only function without a body is the one to write.
            target = not given.ghost and not any(
                other.kind in PROVED and (other.kind != "lemma" or other.body is None) for other in others
            )
            target = target and all(other.body is not None for other in others if other.kind == "function")
            if not target and (not promises or any(given.name in speaks_of(other) for other in others)):
                raise ViolationError("spec-changed", f"{_title(given)} is left open by the given program")
        elif self._empty == "kept" and not given.ghost and self._code(one.body or ()):
            raise ViolationError("program-changed", f"{_title(given)} has no code to keep")

    def _risks(self, given: Declaration | None, one: Declaration) -> None:
        """Soundness risks beyond those of the given declaration; its attributes were checked before."""
        if given is not None and (one.body, one.compiled, one.clauses) == (given.body, given.compiled, given.clauses):
            return
        allowed = Counter(self._all_risks(given)) if given is not None else Counter()
        if one.key in self._choices:
            allowed |= Counter(nondeterminism(self._choices[one.key], self._facts.proofs, self._facts.runs))
        for risk in self._all_risks(one):
            if risk.rule == "refinement" and "refines" in self._given.spoken:
                continue  # `...` stands for the refined body
            if (
                risk.rule == "decreases-star"
                and self._code_stays
                and given is not None
                and risk in self._all_risks(given)
            ):
                continue  # a loop of a method that need not end, whose code is the given one
            allowed[risk] -= 1
            if allowed[risk] < 0:
                raise ViolationError(risk.rule, f"{risk.text[:160]} in {_title(one)}")

    def _all_risks(self, one: Declaration) -> Iterator[SoundnessRisk]:
        words = [*one.head]
        for clause in one.clauses:
            words += (*clause.word.split(), *clause.text, ";")
        for body in (one.body, one.compiled):
            words += () if body is None else ("{", *body, "}")
        yield from soundness_risks(words, self._facts.heap)
        yield from nondeterminism(one, self._facts.proofs, self._facts.runs)
        yield from ghost_results(one, self._facts.ghosts)
        if one.body is not None:  # Without one, Dafny checks no promise.
            yield from (SoundnessRisk("self-call", text) for text in remaining(one, self._facts.constants))

    def _added(self, one: Declaration, within: Declaration | None, inside: bool = False) -> None:
        """A new declaration; `inside` another new one."""
        title = _title(one)
        if not inside:
            self._names(one, outermost=within is None)
        outermost = within is None or within.kind == "module"
        if risk := declaration_risk(one, outermost, self._facts.invariant):
            raise ViolationError(risk.rule, f"{title} is {risk.text}, which may not be added")
        self._attributes(one.attributes, one)
        if one.kind in CALLABLES and one.body is None and not self._is_vocabulary(one):
            raise ViolationError("no-body", f"{title} has no body")
        self._risks(None, one)
        for member in one.members or ():
            self._added(member, one, inside=True)

    def _is_vocabulary(self, one: Declaration) -> bool:
        """Whether it only declares a function that the given program calls, of a type that surely has values."""
        result = one.head[max((index for index, token in enumerate(one.head) if token == ")"), default=0) + 1 :]
        known = set(result) <= _INHABITED or "predicate" in one.head
        promises = any(clause.word == "ensures" for clause in one.clauses)
        return one.kind == "function" and one.name in self._given.missing and known and not promises

    def _names(self, one: Declaration, outermost: bool) -> None:
        """A member of a new type or module can shadow nothing: the given program mentions none."""
        for name in one.names():
            taken = name in self._given.spoken
            if one.kind in CALLABLES or one.kind in ("const", "field"):
                behind_dots = (False,) if outermost else (False, True)
                taken = any(Use(name, member) in self._given.meant for member in behind_dots)
            if taken and not (one.kind == "function" and name in self._given.missing):
                what = f"{_title(one)} takes the name {name}, which the given program uses"
                raise ViolationError("spec-shadowed", what)


def _title(one: Declaration) -> str:
    return f"{one.kind} {one.name or ' '.join(one.head)[:60]}".strip()


def body_violation(hole: str, program: str) -> Violation | None:
    """The rule that a written body breaks: it assumes something, or changes the program around it. Dafny refuses a body
    that cannot be read.

    Args:
        hole: the program without the body.
        program: the program with it.
    """
    given, text = plain(hole), plain(program)
    early = before_parsing(given, text)
    if early is not None:
        return early
    try:
        return check(read_declarations(given), text, "specification", holes=False)[0]
    except Unreadable:
        return None
