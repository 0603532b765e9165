"""Constructs by which Dafny reports "0 errors" without a proof, found in the tokens of a declaration.

Each risk is a rule and the tokens that break it, so that the given program's own can be distinguished from those that a
candidate adds. The guards compare them. The reason for each rule, with Dafny's issues, is in rlvr_exp/docs/dafny.md.

Statements (`statement_risks`): Dafny forgets what the proofs of `assert ... by` and the hints of `calc` assign, and keeps what
they showed. Dafny 2.3 does not look at assignments in the first, nor at those of a call's results in the second. It does not look
at the values that a pattern takes apart in code, and a loop of an iterator keeps what it knew of the iterator's own fields. The
rules refuse more than that, in words that proofs hardly use.

Types (`type_faults`): a type counts as recursive, or as reaching an arrow, by the names that its fields mention, whatever module
they are from. So a harmless type may be refused, but not a type that people write for a proof. Unsoundness that needs no
declaration of its own is not found here.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Any

from rlvr_exp.domains.dafny.scopes import unbounded
from rlvr_exp.domains.dafny.syntax import CALLABLES, Declaration, qualified
from rlvr_exp.domains.dafny.tokens import CLAUSES, Walker, is_name, partners, pieces

HARMLESS = frozenset(
    ("trigger", "autotriggers", "matchinglooprewrite", "split", "induction", "inductionTrigger", "fuel", "opaque")
    + ("tailrecursion", "nowarn", "warnShadowing", "vcs_max_cost", "vcs_max_splits", "vcs_split_on_every_assert")
    + ("isolate_assertions", "subsumption", "nativeType", "disable_nonlinear_arithmetic", "contradiction")
)
"""Attributes that guide a proof or a compiler and cannot weaken what is proved."""
LIMITS = frozenset(("timeLimit", "timeLimitMultiplier", "rlimit", "resource_limit"))
"""Attributes that set a limit for one proof. Removed from the tool's input: the verifier's limits hold."""
_RULES = {
    "axiom": "axiom",
    "assume_concurrent": "assume",
    "assumption": "assume",
    "verify": "verify-false",
    "selective_checking": "verify-false",
    "start_checking_here": "verify-false",
    "only": "verify-false",
    "extern": "extern",
    "dllimport": "extern",
    "handle": "extern",
}
_LOOP_CLAUSES = frozenset(("invariant", "decreases", "modifies", "free"))
_FREED = CLAUSES - {"free"}


@dataclass(frozen=True)
class SoundnessRisk:
    """A rule and the tokens that break it."""

    rule: str
    text: str


def attribute_of(tokens: Sequence[str]) -> SoundnessRisk | None:
    """The risk of one attribute, braces included; None if it is harmless."""
    name = tokens[2] if len(tokens) > 3 else ""
    if name in HARMLESS or list(tokens[1:]) == [":", "verify", "true", "}"]:
        return None
    rule = "assume" if name.startswith("assume") else _RULES.get(name, "attribute")
    return SoundnessRisk(rule, " ".join(tokens))


def without_limits(text: str) -> str:
    """The program with its own limits of proofs (`{:timeLimit 60}`) blanked out, every other character in its place."""
    if not any(name in text for name in LIMITS):
        return text
    parts: list[list[Any]] = [[piece.text, piece.token] for piece in pieces(text)]
    found = [part for part in parts if part[1]]
    for index in range(len(found) - 4):
        five = found[index : index + 5]
        opens, colon, name, number, closes = (part[0] for part in five)
        if (opens, colon, closes) == ("{", ":", "}") and name in LIMITS and number.isdigit():
            for part in five:
                part[0] = " " * len(part[0])
    return "".join(part[0] for part in parts)


_BEFORE_STATEMENTS = ("{", "}", ";", "", "=>", ":", ")")
"""Tokens that may precede a statement, of a case and of a label, too."""
_AFTER_NAMES = (":=", ".", "(", ",", ")")
"""Tokens that follow `expect` if it is a name."""


def soundness_risks(tokens: Sequence[str]) -> Iterator[SoundnessRisk]:
    """All risks in a balanced list of tokens."""
    walk = Walker(tokens, partners(tokens))
    for index, token in enumerate(tokens):
        found = None
        if token == "{" and walk.is_attribute(index):
            found = attribute_of(tokens[index : walk.closes[index] + 1])
        elif token == "assume":
            found = SoundnessRisk("assume", _until_end(walk, index))
        elif token == "free" and walk.at(index + 1) in _FREED:
            first = index
            while walk.at(first) in CLAUSES:
                first += 1
            found = SoundnessRisk("assume", " ".join(tokens[index : max(walk.past_expression(first), first + 1)]))
        elif token == "expect" and walk.at(index - 1) in _BEFORE_STATEMENTS and walk.at(index + 1) not in _AFTER_NAMES:
            found = SoundnessRisk("expect", _until_end(walk, index))
        elif token == "decreases" and _starred(walk, index + 1):
            found = SoundnessRisk("decreases-star", "decreases *")
        elif token == "witness" and walk.at(index + 1) == "*":
            found = SoundnessRisk("witness", "witness *")
        elif token == "..." or (token == "extern" and walk.at(index - 1) not in (":", ".")):
            found = SoundnessRisk("refinement" if token == "..." else "extern", token)
        elif token in ("while", "for", "forall") and not _has_body(walk, index):
            found = SoundnessRisk("no-body", f"{token} without a body")
        elif token == "forall" and _is_unstated(walk, index):
            found = SoundnessRisk("unsound", f"a forall statement without ensures: {_until_end(walk, index)[:60]}")
        elif token in ("map", "imap") and walk.at(index + 1) not in _NO_COMPREHENSION:
            found = SoundnessRisk("unsound", f"a {token} comprehension: write a loop or a recursive function")
        elif token == "case" and _has_typed_pattern(walk, index):
            found = SoundnessRisk("unsound", "a pattern whose variable has a type of its own, which Dafny 2.3 believes")
        if found is not None:
            yield found


_NO_COMPREHENSION = ("", "<", "[", "(", ")", "]", "}", ">", ",", ".", ";", ":=", ":", "{")
_INTEGERS = (":", "int", "nat", ",")


def _is_unstated(walk: Walker, index: int) -> bool:
    """Whether a forall statement without `ensures` begins there that is more than assignments to an array over integer
    indices. Dafny assumes the calls in its range for values of all types (dafny#6366, dafny#6533)."""
    stop = walk.past_expression(index + 1)
    words = walk.tokens[index:stop]
    quantifiers = sum(word in ("forall", "exists") for word in words)
    if walk.at(stop) != "{" or words.count("::") >= quantifiers or not {"|", "<"} & set(words):
        return False
    bar = words.index("|") if "|" in words else len(words)
    names = [word for word in words[1:bar] if is_name(word) and word not in _INTEGERS]
    if not set(words[1:bar]) <= {*names, *_INTEGERS} or quantifiers > 1:
        return True
    depth = 0
    for before, word, after in zip(words[bar:], words[bar + 1 :], [*words[bar + 2 :], ""], strict=False):
        depth += (word == "(" and is_name(before)) - (word == ")" and depth > 0)
        if word in names and (depth or after in (".", "in", "!") or before in ("in", "==")):
            return True
    body = walk.tokens[stop + 1 : walk.closes[stop]]
    return ":=" not in body or any(is_name(before) and word == "(" for before, word in pairwise(_left_of_values(body)))


def _left_of_values(body: Sequence[str]) -> Iterator[str]:
    """The tokens of statements without the values that they assign."""
    skips = False
    for word in body:
        skips = word != ";" and (skips or word == ":=")
        if not skips:
            yield word


def bodyless(tokens: Sequence[str]) -> int:
    """How many loops and forall statements have no body."""
    walk = Walker(tokens, partners(tokens))
    loops = [index for index, token in enumerate(tokens) if token in ("while", "for", "forall")]
    return sum(not _has_body(walk, index) for index in loops)


def _has_typed_pattern(walk: Walker, index: int) -> bool:
    """Whether there is a pattern `C(x: T, ...)` between `case` and its arrow."""
    start = index
    while walk.at(index) not in ("=>", ";", "{", "}", ")", "]", ""):
        index = walk.closes[index] + 1 if walk.at(index) in ("(", "[") else index + 1
    pattern = walk.tokens[start + 1 : index]
    return walk.at(index) == "=>" and ":" in pattern and "::" not in pattern


def _until_end(walk: Walker, index: int) -> str:
    stop = max(walk.past_expression(index + 1), index + 1)
    return " ".join(walk.tokens[index:stop])


def _starred(walk: Walker, index: int) -> bool:
    """Whether one of the comma-separated expressions from `index` on is a lone star."""
    depth, before = 0, ","
    found = [*walk.tokens[index : walk.past_expression(index)], ","]
    for token, following in pairwise(found):
        if depth == 0 and (before, token, following) == (",", "*", ","):
            return True
        depth += (token in ("(", "[", "{")) - (token in (")", "]", "}"))
        before = token
    return False


def _has_body(walk: Walker, index: int) -> bool:
    """Whether the loop or the forall that begins there has a body, or is no statement but an expression."""
    word, first = walk.at(index), index + 1
    while walk.is_attribute(first):
        first = walk.closes[first] + 1
    if word == "while" and walk.at(first) == "{" and walk.at(first + 1) in ("case", "}"):
        return True
    bare = word == "while" and walk.at(first) in _LOOP_CLAUSES | {"case"}
    stop = first if bare else walk.past_expression(first)
    # A quantifier has a `::` for every quantifier in it; a statement has one fewer.
    words = walk.tokens[index:stop]
    if word == "forall" and words.count("::") >= sum(token in ("forall", "exists") for token in words):
        return True
    clauses = {"ensures"} if word == "forall" else _LOOP_CLAUSES
    while walk.at(stop) in clauses or (walk.at(stop) == ";" and walk.at(stop + 1) in clauses | {"{"}):
        stop += 1
        if walk.at(stop - 1) not in (";", "free"):
            stop = walk.past_expression(stop)
    return walk.at(stop) == "{" or (word == "while" and walk.at(stop) == "case")


_STATEMENT_STARTS = ("", "{", "}", ";", "=>", ":")
_ASSIGNS = (":=", ":|", ":-")


def statement_risks(one: Declaration, methods: Collection[str]) -> Iterator[SoundnessRisk]:
    """The risks in one declaration.

    Args:
        methods: names of methods, ghost ones too.
    """
    for part in _parts(one):
        yield from _Statements(part).changes(methods)
    if one.kind != "function" and not one.ghost:
        yield from _Statements(one.body or ()).patterns()
    if one.kind == "iterator" and "while" in (one.body or ()):
        yield SoundnessRisk("unsound", "a loop of an iterator, whose fields Dafny 2.3 takes to stay as they are")


def _parts(one: Declaration) -> list[tuple[str, ...]]:
    return [one.head, *(clause.text for clause in one.clauses), one.body or (), one.compiled or ()]


class _Statements:
    """The statements in balanced tokens."""

    def __init__(self, tokens: tuple[str, ...]):
        self._walk = Walker(tokens, partners(tokens))
        self._opens = {close: index for index, close in self._walk.closes.items()}

    def changes(self, methods: Collection[str]) -> Iterator[SoundnessRisk]:
        """Calls of methods and assignments, but no declaration's own, in the proof of an assert or in a hint: within the braces
        behind `by` and `calc`."""
        walk = self._walk
        for start, word in enumerate(walk.tokens):
            brace = start + 1
            while word == "calc" and (walk.at(brace) not in ("", "{", "}") or walk.is_attribute(brace)):
                brace = walk.closes.get(brace, brace) + 1
            if word not in ("by", "calc") or walk.at(brace) != "{":
                continue
            for index in range(brace + 1, walk.closes[brace]):
                token = walk.at(index)
                calls = token in methods and walk.at(index + 1) in ("(", "<")
                if calls or token == "modify" or (token in _ASSIGNS and self._is_assignment(index)):
                    yield SoundnessRisk("unsound", f"a proof within the body changes something: {self._around(index)}")

    def patterns(self) -> Iterator[SoundnessRisk]:
        """Variables of code that a pattern declares: Dafny 2.3 lets them take ghost values."""
        walk = self._walk
        for start, token in enumerate(walk.tokens):
            if token != "var" or (start and walk.at(start - 1) not in _STATEMENT_STARTS):
                continue
            index = start + 1
            while is_name(walk.at(index) or ";") and walk.at(index + 1) in (".", "("):
                index += 2 if walk.at(index + 1) == "." else 1
            if walk.at(index) == "(":
                yield SoundnessRisk("unsound", f"code takes a value apart: {self._around(start)}")

    def _is_assignment(self, index: int) -> bool:
        """Whether the sign there gives a value to an existing variable or field: it declares no variable, and updates no
        sequence, map or datatype."""
        before = index - 1
        while before >= 0 and self._walk.at(before) not in (";", "{", "}", "=>"):
            token = self._walk.at(before)
            if token in ("var", "(", "[") or (token in ("if", "case") and self._walk.at(index) == ":|"):
                return False
            before = self._opens.get(before, before) - 1
        return True

    def _around(self, index: int) -> str:
        """The tokens around an index, up to the next semicolon."""
        words = self._walk.tokens
        return " ".join((*words[max(0, index - 3) : index], *takewhile(lambda word: word != ";", words[index:])))


_TYPES = frozenset(("datatype", "type", "class", "trait"))
_LARGE = frozenset(("iset", "imap", "->", "-->", "~>"))
_BIT_VECTOR = re.compile(r"bv\d+")
_ALL = "object"
_ON_MEMORY = SoundnessRisk("unsound", "a function value that may depend on all memory (~>, f.reads, reads *)")


def type_faults(declarations: Sequence[Declaration]) -> Mapping[str, str]:
    """The types that make Dafny inconsistent, by qualified name, each with the reason."""
    found = {name: one for name, one in qualified(declarations) if one.kind in _TYPES}
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
    heads = [(set(one.names()), set(one.head)) for _, one in qualified(declarations)]
    found: set[str] = set()
    while True:
        more = {name for names, head in heads if head & found or _has_bit_vector(head) for name in names} - found
        if not more:
            return frozenset(found)
        found |= more


def declaration_risks(one: Declaration, bits: frozenset[str]) -> Iterator[SoundnessRisk]:
    """Risks in one declaration that few proofs need and that break Dafny."""
    parts = _parts(one)
    for part in parts:
        for before, token, after in zip(("", *part), part, (*part[1:], ""), strict=False):
            if token == "~>" or (token == "reads" and (before == "." or after == "*")):
                yield _ON_MEMORY
        for text in unbounded(part):
            yield SoundnessRisk("unsound", f"a comprehension over whatever there is: {text}")
    for clause in one.clauses:
        if clause.word == "reads" and clause.text == ("*",):
            yield _ON_MEMORY
    measured = [" ".join(clause.text) for clause in one.clauses if clause.word == "decreases"]
    body, stops = one.body or (), (";", "{", "invariant", "decreases", "modifies")
    for index, token in enumerate(body):
        if token == "decreases":
            measured.append(" ".join(takewhile(lambda word: word not in stops, body[index + 1 :])))
    if measured and one.kind in CALLABLES and any(_has_bit_vector(part) or bits & set(part) for part in parts):
        yield from (SoundnessRisk("unsound", f"decreases {measure}, with bit vectors in reach") for measure in measured)


def _own(one: Declaration) -> list[str]:
    """The tokens that define a type: constructors' fields, a synonym's definition, fields and constants."""
    fields = (member for member in one.members or () if member.kind in ("field", "const"))
    return [*_after_name(one), *(token for member in fields for token in member.head)]


def _after_name(one: Declaration) -> list[str]:
    """The head without the type's name, and a datatype's without its constructors' and their fields' names."""
    start = one.head.index(one.name) + 1 if one.name in one.head else 0
    head = one.head[start:]
    if one.kind != "datatype":
        return list(head)
    kept, depth = [], 0
    for token, following in pairwise((*head, "")):
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
    """Whether it is `type T = x: S | ...` and S is a sequence, or is omitted and may be a sequence."""
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
