"""Constructs by which Dafny reports "0 errors" without a proof, found in the tokens of one declaration.

Each risk is a rule and the tokens that break it, so that the given program's own can be distinguished from those that a
candidate adds. Nothing is compared here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_exp.tasks.dafny.expressions import CLAUSES, Walker, partners
from rlvr_exp.tasks.dafny.tokens import pieces

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
    """The risk of one attribute, braces included; None where it is harmless."""
    name = tokens[2] if len(tokens) > 3 else ""
    if name in HARMLESS or list(tokens[1:]) == [":", "verify", "true", "}"]:
        return None
    rule = "assume" if name.startswith("assume") else _RULES.get(name, "attribute")
    return SoundnessRisk(rule, " ".join(tokens))


def _is_limit(tokens: Sequence[str]) -> bool:
    """Whether it is like `{:timeLimit 60}`, with a plain number."""
    return len(tokens) == 5 and tokens[1] == ":" and tokens[2] in LIMITS and tokens[3].isdigit() and tokens[4] == "}"


def without_limits(text: str) -> str:
    """The program with its own limits of proofs blanked out, every other character in its place."""
    if not any(name in text for name in LIMITS):
        return text
    parts: list[list[Any]] = [[piece.text, piece.token] for piece in pieces(text)]
    found = [part for part in parts if part[1]]
    for index, part in enumerate(found):
        five = found[index : index + 5]
        if part[0] == "{" and _is_limit([one[0] for one in five]):
            for one in five:
                one[0] = " " * len(one[0])
    return "".join(one[0] for one in parts)


_BEFORE_STATEMENTS = ("{", "}", ";", "", "=>", ":", ")")
"""What may stand before a statement: of a case and of a label, too."""
_AFTER_NAMES = (":=", ".", "(", ",", ")")
"""What follows a name, where `expect` is one."""


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
            found = SoundnessRisk("assume", " ".join(walk.tokens[index : _past_freed(walk, index)]))
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
        elif token == "case" and _has_typed_pattern(walk, index):
            found = SoundnessRisk("unsound", "a pattern whose variable has a type of its own, which Dafny 2.3 believes")
        if found is not None:
            yield found


def bodyless(tokens: Sequence[str]) -> int:
    """How many loops and forall statements have no body."""
    walk = Walker(tokens, partners(tokens))
    loops = [index for index, token in enumerate(tokens) if token in ("while", "for", "forall")]
    return sum(not _has_body(walk, index) for index in loops)


def _past_freed(walk: Walker, index: int) -> int:
    """The index after the words of a `free` clause and its expression."""
    while walk.at(index) in CLAUSES:
        index += 1
    return max(walk.past_expression(index), index + 1)


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
    stop = walk.past_expression(index)
    parts: list[list[str]] = [[]]
    depth = 0
    for token in walk.tokens[index:stop]:
        depth += (token in ("(", "[", "{")) - (token in (")", "]", "}"))
        if token == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return ["*"] in parts


def _has_body(walk: Walker, index: int) -> bool:
    """Whether the loop or the forall that begins there has a body, or is no statement but an expression."""
    word, first = walk.at(index), index + 1
    while walk.is_attribute(first):
        first = walk.closes[first] + 1
    if word == "while" and walk.at(first) == "{" and walk.at(first + 1) in ("case", "}"):
        return True
    if word == "while" and walk.at(first) in _LOOP_CLAUSES | {"case"}:
        stop = first
    else:
        stop = walk.past_expression(first)
    if word == "forall" and _is_quantifier(walk.tokens[index:stop]):
        return True
    clauses = {"ensures"} if word == "forall" else _LOOP_CLAUSES
    while walk.at(stop) in clauses or (walk.at(stop) == ";" and walk.at(stop + 1) in clauses | {"{"}):
        stop += 1
        if walk.at(stop - 1) not in (";", "free"):
            stop = walk.past_expression(stop)
    return walk.at(stop) == "{" or (word == "while" and walk.at(stop) == "case")


def _is_quantifier(tokens: Sequence[str]) -> bool:
    """Whether it is an expression: it has a `::` for every quantifier in it; a statement has one fewer."""
    return tokens.count("::") >= sum(token in ("forall", "exists") for token in tokens)
