"""Constructs by which Dafny reports a proof without one, found in the tokens of a declaration.

Each risk is a rule and the tokens that break it, so that the given program's own can be distinguished from those that a
candidate adds. The guards compare them. Rules name classes of constructs, and are wider than the known faults of Dafny.
The reason for each rule, with Dafny's issues, is in rlvr_exp/docs/dafny.md.

Compiled code that chooses a value (`x :| P(x)`, `x := *`) is a risk of its own (`nondeterminism`): Dafny proves it, but no
program computes the value, so a specification copied behind `:|` would count as an implementation.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rlvr_exp.domains.dafny import annotations
from rlvr_exp.domains.dafny.syntax import Declaration
from rlvr_exp.domains.dafny.tokens import Walker, is_name, partners, pieces

HARMLESS = frozenset(
    ("trigger", "Trigger", "autotriggers", "nowarn", "error", "opaque", "Opaque", "transparent", "fuel", "Fuel")
    + ("tailrecursion", "TailRecursion", "nativeType", "NativeType", "warnShadowing", "contradiction", "split_here")
    + ("inductionTrigger", "InductionTrigger")
)
"""Attributes that guide a proof, a compiler or a message, with any arguments."""
_BARE = frozenset(
    ("isolate_assertions", "IsolateAssertions", "vcs_split_on_every_assert", "VcsSplitOnEveryAssert")
    + ("disable_nonlinear_arithmetic", "DisableNonlinearArithmetic", "subsumption", "matchinglooprewrite")
    + ("vcs_max_cost", "vcs_max_splits", "vcs_max_keep_going_splits")
)
"""Attributes that are harmless without arguments and with one number or `true` or `false`. With other arguments Dafny can leave
assertions out: `assert {:isolate "paths"} true;` proves false with 4.11."""
_INDUCTION = frozenset(("induction", "Induction"))
LIMITS = frozenset(("timeLimit", "timeLimitMultiplier", "rlimit", "resource_limit"))
"""Attributes that set a limit for one proof. Removed from the tool's input: the verifier's limits hold."""
_RULES = {
    "axiom": "axiom",
    "assumption": "assume",
    "verify": "verify-false",
    "verifyonly": "verify-false",
    "selective_checking": "verify-false",
    "start_checking_here": "verify-false",
    "only": "verify-false",
    "isolate": "verify-false",
    "extern": "extern",
}
INSTEAD = {
    "assume": "prove it with an assert or a lemma that has a body",
    "expect": "prove it with an assert",
    "axiom": "write a body that proves the lemma",
    "verify-false": "leave the attribute out, since everything has to be verified",
    "extern": "write a body",
    "attribute": "leave the attribute out",
    "no-body": "write a body in braces",
    "hole": "write its body",
    "decreases-star": "give a measure that decreases, such as `decreases n - i`",
    "forall-ensures": "write the fact as an `ensures` clause before the braces",
    "forall-index": "let the variables be integers between bounds, such as `forall i | 0 <= i < a.Length`",
    "map-comprehension": "build the map with a loop or a recursive function",
    "self-call": "name the result and promise something about it, such as `(r: int) ensures r > 0`",
    "mixed-types": "give the arrays or objects one element type",
    "reads-star": "name the objects, such as `reads a`",
    "nondeterminism": "compute the value with a loop, an if or a function, or make the variable ghost",
    "ghost-result": "take the result in a ghost variable",
    "declaration": "use functions, predicates, lemmas, methods and datatypes of plain fields",
    "unsound": "use int or nat",
    "witness": "give a value as the witness",
    "refinement": "write the code or the declaration itself",
    "import": "use only the modules that the given program imports",
    "include": "write the declarations in the program itself",
    "preprocessor": "begin no line with #",
    "spec-changed": "keep the given text as it is",
    "spec-removed": "keep all declarations of the given program",
    "spec-shadowed": "choose another name",
    "program-changed": "keep the given code and add only annotations",
}
"""One remedy for each rule, for the message."""
_LOOP_CLAUSES = frozenset(("invariant", "decreases", "modifies"))


@dataclass(frozen=True)
class SoundnessRisk:
    """A rule and the tokens that break it."""

    rule: str
    text: str


def attribute_of(tokens: Sequence[str], quantified: bool = False) -> SoundnessRisk | None:
    """The risk of one attribute, braces or at-sign included; None if it is harmless.

    Args:
        quantified: whether it is inside a clause or a body. There, induction over a quantifier needs no lemma that
            `manual_induction` would find.
    """
    if tokens[0] == "@":
        name, arguments = "".join(tokens[1:2]), list(tokens[3:-1])
        if len(tokens) > 2 and tokens[2] != "(":  # a qualified name or an expression
            return SoundnessRisk("attribute", " ".join(tokens))
    else:
        name, arguments = (tokens[2] if len(tokens) > 3 else ""), list(tokens[3:-1])
    plain = len(arguments) <= 1 and all(word.isdigit() or word in ("true", "false") for word in arguments)
    if name in HARMLESS or (name in _BARE and plain) or (name == "verify" and arguments == ["true"]):
        return None
    if name in _INDUCTION and (not quantified or arguments == ["false"]):
        return None
    rule = "assume" if name.startswith("assume") else _RULES.get(name.lower(), "attribute")
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


def has_heap(tokens: Collection[str]) -> bool:
    """Whether a program can have objects or arrays."""
    words = set(tokens)
    return bool({"new", "class", "trait", "iterator", "include"} & words) or any(
        word.startswith(("array", "object")) for word in words
    )


def soundness_risks(tokens: Sequence[str], heap: bool = True) -> Iterator[SoundnessRisk]:
    """All risks in a balanced list of tokens, apart from nondeterminism.

    Args:
        heap: whether the program has objects or arrays. Without them `reads *` reads nothing (dafny#6430).
    """
    walk = Walker(tokens, partners(tokens))
    for index, token in enumerate(tokens):
        before = walk.at(index - 1) if index else ""
        found = None
        if token == "{" and walk.is_attribute(index):
            found = attribute_of(tokens[index : walk.closes[index] + 1], quantified=True)
        elif token in ("assume", "expect"):
            found = SoundnessRisk(token, _until_end(walk, index))
        elif token == "decreases" and _starred(walk, index + 1):
            found = SoundnessRisk("decreases-star", "decreases *")
        elif token == "witness" and walk.at(index + 1) == "*":
            found = SoundnessRisk("witness", "witness *")
        elif token == "...":
            found = SoundnessRisk("refinement", token)
        elif token == "reads" and walk.at(index + 1) == "*" and heap:
            found = SoundnessRisk("reads-star", "reads *")
        elif token in ("map", "imap") and is_name(walk.at(index + 1) or ";") and before != ".":
            found = SoundnessRisk("map-comprehension", _until_end(walk, index))
        elif token == "ORDINAL":
            found = SoundnessRisk("unsound", "the type ORDINAL")
        elif token in ("while", "for") and before != "." and not _has_body(walk, index):
            found = SoundnessRisk("no-body", f"{token} without a body")
        elif token == "forall":
            found = _forall_risk(walk, index)
        if found is not None:
            yield found


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


def _past_clauses(walk: Walker, index: int, words: Collection[str]) -> int:
    """The index after the clauses with these words that begin there."""
    while walk.at(index) in words or (walk.at(index) == ";" and walk.at(index + 1) in (*words, "{")):
        index += 1
        if walk.at(index - 1) != ";":
            index = walk.past_expression(index)
    return index


def _has_body(walk: Walker, index: int) -> bool:
    """Whether the loop that begins there has a body."""
    word, first = walk.at(index), index + 1
    while walk.is_attribute(first):
        first = walk.closes[first] + 1
    if word == "while" and walk.at(first) == "{" and walk.at(first + 1) in ("case", "}"):
        return True
    bare = word == "while" and walk.at(first) in _LOOP_CLAUSES | {"case"}
    stop = first if bare else walk.past_expression(first)
    if walk.at(stop) in ("to", "downto"):
        stop = walk.past_expression(stop + 1)
    stop = _past_clauses(walk, stop, _LOOP_CLAUSES)
    return walk.at(stop) == "{" or (word == "while" and walk.at(stop) == "case")


def _forall_risk(walk: Walker, index: int) -> SoundnessRisk | None:
    """The risk of a forall statement; None for a quantifier."""
    if index and walk.at(index - 1) not in _BEFORE_STATEMENTS:
        return None
    stop = walk.past_expression(index + 1)
    if walk.at(stop) not in ("ensures", "{", ";"):
        return None
    opens = _past_clauses(walk, stop, ("ensures",))
    if walk.at(opens) != "{":
        return SoundnessRisk("no-body", "forall without a body")
    if opens > stop:
        return None
    # Without `ensures`, Dafny takes the fact from the body; only an assignment is no fact.
    inside, at = [], opens + 1
    while at < walk.closes[opens]:
        inside.append(walk.at(at))
        at = walk.closes[at] + 1 if walk.at(at) in ("(", "[", "{") else at + 1
    if not inside or (":=" in inside and _over_integers(walk.tokens[index + 1 : opens])):
        return None
    if _typed_integers(walk.tokens[index + 1 : opens]):
        return None
    if ":=" in inside:
        return SoundnessRisk("forall-index", " ".join(walk.tokens[index:opens]))
    return SoundnessRisk("forall-ensures", " ".join(walk.tokens[index:opens]) + " without ensures")


def _typed_integers(words: Sequence[str]) -> bool:
    """Whether the variables of a forall statement have the types `int` and `nat` in writing, and it has no range. dafny#6366 needs
    values of other types, for which the range or a requirement is not defined."""
    parts = " ".join(words).split(" , ")
    return all(part.split(" ")[1:] in ([":", "int"], [":", "nat"]) for part in parts)


_INTEGERS = (":", "int", "nat", ",")


def _over_integers(words: Sequence[str]) -> bool:
    """Whether the variables of a forall statement are integers, and its range has no call on them. Dafny takes the calls and fields
    in the range to be defined for values of all types (dafny#6533)."""
    bar = words.index("|") if "|" in words else len(words)
    names = {word for word in words[:bar] if is_name(word) and word not in _INTEGERS}
    if not set(words[:bar]) <= {*names, *_INTEGERS} or {"forall", "exists"} & set(words):
        return False
    depth = 0
    for before, word, after in zip(words[bar:], words[bar + 1 :], [*words[bar + 2 :], ""], strict=False):
        depth += (word == "(" and is_name(before)) - (word == ")" and depth > 0)
        if word in names and (depth or after in (".", "in", "!") or before in ("in", "==")):
            return False
    return True


def nondeterminism(one: Declaration, proofs: Collection[str], runs: Collection[str]) -> Iterator[SoundnessRisk]:
    """The choices of values in compiled code: `:|`, `:= *`, `if *` and `while *`; not `var x :| x in s;`.

    Args:
        proofs: names of lemmas and ghost methods.
        runs: names of compiled methods.
    """
    if one.ghost or "twostate" in one.head:
        return
    parts: list[Sequence[str]] = []
    if one.kind in ("method", "constructor", "iterator") and one.body:
        parts = [annotations.method_body(one.body, proofs, runs)]
    elif one.kind == "function":
        parts = [annotations.function_body(one.body or ()), annotations.method_body(one.compiled or (), proofs, runs)]
    elif one.kind in ("const", "field", "datatype", "type"):
        parts = [one.head]
    for part in parts:
        for index, token in enumerate(part):
            if token not in (":|", "*"):
                continue
            before, after = part[max(index - 1, 0)], part[index + 1] if index + 1 < len(part) else ";"
            havoc = token == "*" and before in (":=", ",", "return", "yield") and after in (";", ",")
            guard = token == "*" and (
                before in ("if", "while") or (before == "(" and part[index - 2] in ("if", "while"))
            )
            statement = _statement(part, index)
            if (token == ":|" and not _takes_element(statement)) or havoc or guard:
                yield SoundnessRisk("nondeterminism", " ".join(statement))


def ghost_results(one: Declaration, ghosts: Collection[str]) -> Iterator[SoundnessRisk]:
    """The results of lemmas that are assigned to fields or array elements.

    Dafny 4.11 allows that in ghost code. The heap then changes in a proof that Dafny forgets (`calc { a[0]; { a[0] := Six(); }
    6; }` proves false), or code reads a value that only a proof knows.
    """
    for part in (one.body or (), one.compiled or ()):
        closes = partners(part)
        opens = {close: index for index, close in closes.items()}
        for index, token in enumerate(part):
            if token not in (":=", ":-"):
                continue
            first = index
            while first and part[first - 1] not in (";", "{", "}", "=>", ":", "(", "["):
                first = opens.get(first - 1, first - 1)
            stop = index
            while stop < len(part) and part[stop] not in (";", "by", "}", ")", "]"):
                stop = closes[stop] + 1 if part[stop] in ("(", "[", "{") else stop + 1
            called = opens.get(stop - 1, 0) - 1
            if called > index and part[called] == ">":  # L<int>(x)
                called = max((at for at in range(index, called) if part[at] in ghosts), default=0)
            if part[called] in ghosts and {".", "["} & set(part[first:index]):
                yield SoundnessRisk("ghost-result", " ".join(part[first:stop]))


def _takes_element(statement: Sequence[str]) -> bool:
    """Whether it is `var x :| x in s` or `x :| x in s`, the only way of code to go through a set."""
    words = list(statement)[statement[0] == "var" :]
    if len(words) < 5 or words[1] not in (":", ":|"):
        return False
    taken = words[words.index(":|") + 1 :]
    return taken[:2] == [words[0], "in"] and all(is_name(word) or word == "." for word in taken[2:])


def _statement(tokens: Sequence[str], index: int) -> Sequence[str]:
    """The tokens of the statement around an index."""
    first = index
    while first and tokens[first - 1] not in (";", "{", "}"):
        first -= 1
    stop = index + 1
    while stop < len(tokens) and tokens[stop] not in (";", "{", "}"):
        stop += 1
    return tokens[first:stop]


_LARGE = frozenset(("iset", "imap", "->", "-->", "~>", "object"))
_KINDS = {
    "class": "a class",
    "trait": "a trait",
    "iterator": "an iterator",
    "constructor": "a constructor",
    "module": "a module",
    "import": "an import",
    "export": "an export",
    "field": "a field",
    "include": "an include",
}
_MODIFIERS = ("twostate", "least", "greatest", "inductive", "copredicate", "colemma", "abstract", "replaceable")


def declaration_risk(one: Declaration, outermost: bool, invariant: Collection[str]) -> SoundnessRisk | None:
    """The risk that a new declaration has by its kind: what proofs hardly need and Dafny's soundness issues are made of.

    Args:
        outermost: whether it is not a member of a type.
        invariant: generic types that are not covariant. Dafny takes a `T<int>` for a `T<nat>`.
    """
    words = set(one.head)
    found = None
    if one.kind in _KINDS:
        found = _KINDS[one.kind]
    elif "codatatype" in words:
        found = "a codatatype"
    elif modifier := next((word for word in _MODIFIERS if word in one.head[:4]), None):
        found = f"a {modifier} declaration"
    elif one.kind == "datatype" and _LARGE & words:
        found = f"a datatype that mentions {min(_LARGE & words)}"
    elif one.kind == "datatype" and "extends" in words:
        found = "a datatype that extends a trait"
    elif one.kind == "datatype" and one.name in invariant:
        found = "a datatype with a type parameter that is not covariant"
    elif one.kind == "type" and ("newtype" in words or "|" in words or "=" not in words):
        found = "a type with a constraint or without a definition"
    elif one.kind == "const" and (":=" not in words or not outermost or _LARGE & words):
        found = "a constant of a type, without a value or of functions"
    if found is None:
        return None
    return SoundnessRisk("declaration", found)
