"""Annotations of bodies: removed from the tokens and from the text, and grafted onto another author's body.

From a function's body: `assert e;`, `calc {}`, `reveal f();` and calls of lemmas before an expression. From a method's:
these as statements, `ghost var`, forall statements, lemma calls, and the clauses of loops. What stays is compiled code,
or a function's meaning, so two bodies that are equal without proofs do the same.

In texts (`erased`), comments between annotations and the layout of the rest are kept; a line of annotations alone is removed
with its end. Only the braces of a body that is all proof stay.

Grafted annotations show whether a body can be proved at all. The k-th loop gets the clauses of the gold's k-th loop; a
statement goes where the code before or after it equals the gold's. Renamed variables count as the gold's. Left out:
annotations without such a place, annotations with a variable that the body does not declare, and annotations that the body
already has. A body that equals the gold's, apart from comments and blanks, gets all of them. Code is never changed.

Whether a proof holds is never decided here.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise

from rlvr_exp.domains.dafny.problem import DafnyExample
from rlvr_exp.domains.dafny.syntax import Declaration, Unreadable, parse
from rlvr_exp.domains.dafny.tokens import Unbalanced, Walker, is_name, partners, pieces, places, plain, tokens

_STARTS = frozenset(("", "{", "}", ";", "then", "else", "=>", "(", ",", ":=", ":|"))
_BEFORE_STATEMENTS = frozenset(("", "{", "}", ";", "=>", ":"))
_ASSIGNS = (":=", ":|")
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
    """Where each annotation of a method's body begins and ends, in order; `method_body` is the text between them.

    A ghost variable whose name the code has as well is code, since it may take the place of another variable there.
    """
    walk = Walker(tokens, partners(tokens))
    ghosts = list(_ghost_variables(walk))
    while True:
        found = list(_spans(walk, ghosts, proofs, runs))
        code = _outside(walk, found)
        left = [ghost for ghost in ghosts if ghost.name not in code]
        if len(left) == len(ghosts):
            return iter(found)
        ghosts = left


@dataclass(frozen=True)
class _Ghost:
    """A ghost variable, with the indices of its declaration and of its scope's end."""

    name: str
    start: int
    stop: int


def _spans(
    walk: Walker, ghosts: Collection[_Ghost], proofs: Collection[str], runs: Collection[str]
) -> Iterator[tuple[int, int]]:
    index = 0
    while index < walk.end:
        past = _past_ghosts(walk, index, ghosts)
        if past is not None and set(walk.tokens[index:past]) & set(runs):
            past = None
        elif past is None:
            past = _past_statement(walk, index, proofs, runs)
        if past is not None:
            yield index, past
        index = index + 1 if past is None else past


def _outside(walk: Walker, spans: Sequence[tuple[int, int]]) -> set[str]:
    inside = {index for start, stop in spans for index in range(start, stop)}
    return {token for index, token in enumerate(walk.tokens) if index not in inside}


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


def _past_statement(walk: Walker, index: int, proofs: Collection[str], runs: Collection[str]) -> int | None:
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
        return _past_forall(walk, index, proofs)
    if token == "label":
        return None if _is_left(walk, walk.at(index + 1)) else index + 3
    called = _called(walk, index)
    reveals = called.startswith("reveal_") and called not in runs
    return _past_call(walk, index) if called in proofs or reveals else None


def _called(walk: Walker, index: int) -> str:
    """The last of the names that dots join."""
    while walk.at(index + 1) == ".":
        index += 2
    return walk.at(index)


def _is_left(walk: Walker, label: str) -> bool:
    """Whether a `break` or `continue` names the label: then it is code, and not only a mark for `old@`."""
    return any(word in ("break", "continue") and name == label for word, name in pairwise(walk.tokens))


def _past_clause(walk: Walker, index: int) -> int:
    index += 2 if walk.at(index) == "free" else 1
    stop = walk.past_expression(index)
    return stop + 1 if walk.at(stop) == ";" else stop


def _past_forall(walk: Walker, index: int, proofs: Collection[str]) -> int | None:
    """The index after a forall statement with an ensures clause, or with nothing but one call of a proof; one that
    assigns stays."""
    stop = start = walk.past_expression(index + 1)
    while walk.at(stop) == "ensures":
        stop = walk.past_expression(stop + 1)
        stop += walk.at(stop) == ";"
    if walk.at(stop) != "{":
        return None
    close = walk.closes[stop]
    calls = _called(walk, stop + 1) in proofs and _past_call(walk, stop + 1) == close
    return close + 1 if stop > start or calls else None


def _past_line(walk: Walker, index: int) -> int | None:
    """The index after a statement that ends with a semicolon, whatever its brackets contain."""
    while index < walk.end and walk.at(index) != ";":
        if walk.at(index) in ("}", ")", "]"):
            return None
        index = walk.closes[index] + 1 if walk.at(index) in ("{", "(", "[") else index + 1
    return index + 1


def _past_ghosts(walk: Walker, index: int, ghosts: Collection[_Ghost]) -> int | None:
    """The index after a statement that declares these ghost variables or assigns to them alone."""
    if (walk.at(index - 1) if index else "") not in _BEFORE_STATEMENTS:
        return None
    declares = walk.at(index) == "ghost" and walk.at(index + 1) == "var"
    if declares:
        seen = {ghost.name for ghost in ghosts if ghost.start == index}
    else:
        seen = {ghost.name for ghost in ghosts if ghost.start < index < ghost.stop}
    targets = _names(walk, index + 2) if declares else _targets(walk, index)
    return _past_line(walk, index) if targets and seen.issuperset(targets) else None


def _targets(walk: Walker, index: int) -> list[str]:
    """The plain names that an assignment gives values to; none where it is another statement."""
    found = [walk.at(index)]
    while walk.at(index + 1) == ",":
        index += 2
        found.append(walk.at(index))
    return found if walk.at(index + 1) in _ASSIGNS else []


def _ghost_variables(walk: Walker) -> Iterator[_Ghost]:
    for index, pair in enumerate(pairwise(walk.tokens)):
        if pair == ("ghost", "var"):
            stop = _end_of_scope(walk, index)
            yield from (_Ghost(name, index, stop) for name in _names(walk, index + 2))


def _names(walk: Walker, index: int) -> list[str]:
    """The names in a list `a: T, b := ...` of declared variables; none where it has a pattern."""
    found: list[str] = []
    angles, due = 0, True
    while index < walk.end and walk.at(index) not in (*_ASSIGNS, ";"):
        token = walk.at(index)
        if due and not walk.is_attribute(index):
            if not is_name(token) or walk.at(index + 1) not in (",", ":", ";", *_ASSIGNS):
                return []
            found.append(token)
        due = (due and walk.is_attribute(index)) or (token == "," and not angles)
        angles += (token == "<") - (token == ">")
        index = walk.closes[index] + 1 if token in ("(", "[", "{") else index + 1
    return found


def _end_of_scope(walk: Walker, index: int) -> int:
    """The brace that closes the block of a statement, or the next case."""
    while index < walk.end and walk.at(index) not in ("}", "case"):
        index = walk.closes[index] + 1 if walk.at(index) in ("{", "(", "[") else index + 1
    return index


_BLANKS, _ENDS = " \t", "\r\n"
Span = tuple[int, int]


def erased(body: str, proofs: Collection[str], goes: Callable[[str], bool] | None = None) -> str:
    """A method's body without annotations, braces included.

    Args:
        proofs: names of the program's lemmas and ghost methods.
        goes: decides which comments are part of annotations, by their text; none if not given.

    Raises:
        expressions.Unbalanced: brackets do not match.
    """
    found = places(body)
    spans = [(found[a][0], found[b - 1][1]) for a, b in annotations(tokens(plain(body)), proofs)]
    if goes is not None:
        spans = sorted([*spans, *_beyond(_comments(body, goes), spans)])
    parts, at = [], 0
    for start, stop in _joined(body, spans):
        start, stop = _widened(body, start, stop)
        parts.append(body[at:start])
        at = stop
    return "".join(parts) + body[at:]


def hollow(body: str) -> str:
    """The braces of a body, the last with its indentation."""
    line = body[max(body.rfind(end) for end in _ENDS) + 1 :]
    if len(line) == len(body):
        return "{}"
    indent = line[: len(line) - len(line.lstrip(_BLANKS))]
    return "{" + ("\r\n" if "\r\n" in body else "\n") + indent + "}"


def _comments(body: str, goes: Callable[[str], bool]) -> Iterator[Span]:
    at = 0
    for piece in pieces(body):
        if not piece.token and piece.text[0] == "/" and goes(piece.text.rstrip()):
            yield at, at + len(piece.text.rstrip())
        at += len(piece.text)


def _beyond(comments: Iterator[Span], spans: list[Span]) -> list[Span]:
    return [one for one in comments if not any(start <= one[0] < stop for start, stop in spans)]


def _joined(body: str, spans: list[Span]) -> list[Span]:
    """Spans merged where only blanks are between them."""
    found: list[Span] = []
    for start, stop in spans:
        if found and not body[found[-1][1] : start].strip(_BLANKS):
            found[-1] = (found[-1][0], stop)
        else:
            found.append((start, stop))
    return found


def _widened(body: str, start: int, stop: int) -> Span:
    """The span with left-over blanks: its complete line, blanks after it at a line's start, before it at an end."""
    left, right = start, stop
    while left and body[left - 1] in _BLANKS:
        left -= 1
    while right < len(body) and body[right] in _BLANKS:
        right += 1
    first, last = not left or body[left - 1] in _ENDS, right == len(body) or body[right] in _ENDS
    if first and last:
        return left, right + (2 if body.startswith("\r\n", right) else 1)
    return (left, stop) if last else (start, right)


_BOUNDARIES = frozenset(("{", "}", ";"))


@dataclass(frozen=True)
class Annotation:
    """One annotation of a body. `place`: the index of the code token that follows it."""

    tokens: tuple[str, ...]
    text: str
    place: int

    @property
    def clause(self) -> bool:
        """Whether it belongs to a loop, not a statement."""
        return self.tokens[0] in _LOOP_CLAUSES


class Body:
    """A body, braces included, taken apart into code and annotations.

    Raises:
        Unbalanced: brackets do not match.
    """

    def __init__(self, text: str, proofs: Collection[str]):
        self.text = text
        found, self._starts = _tokens(text)
        self.code: list[str] = []
        self._places: list[int] = []
        """The index among all tokens of each token of the code."""
        self.annotations: list[Annotation] = []
        at = 0
        for start, stop in annotations(found, proofs):
            self._keep(found, at, start)
            spoken = text[self._starts[start] : self._starts[stop - 1] + len(found[stop - 1])]
            self.annotations.append(Annotation(tuple(found[start:stop]), spoken, len(self.code)))
            at = stop
        self._keep(found, at, len(found))
        self.loops = _loops(self.code)

    def _keep(self, found: Sequence[str], start: int, stop: int) -> None:
        self.code += found[start:stop]
        self._places += range(start, stop)

    @property
    def declared(self) -> list[str]:
        """Names of its variables in their order, without those of annotations."""
        return list(dict.fromkeys(_declared(self.code)))

    def grafted(self, chosen: Sequence[Annotation]) -> str:
        """The text with annotations before the code tokens that they name, each on its own line."""
        parts, at = [], 0
        for one in sorted(chosen, key=lambda one: one.place):
            start = self._starts[self._places[one.place]]
            lead = self.text[self.text.rfind("\n", 0, start) + 1 : start]
            parts += [self.text[at:start], f"\n{one.text}\n" if lead.strip() else f"{one.text}\n{lead}"]
            at = start
        return "".join([*parts, self.text[at:]])


def grafted(written: str, example: DafnyExample) -> str:
    """The written body with the gold's annotations; unchanged where its brackets do not match. A body with the gold's
    code and no further annotations becomes the gold's text."""
    proofs = _proofs(example.gold)
    try:
        own = Body(written, proofs)
    except Unbalanced:
        return written
    gold = Body(plain(example.annotated_body), proofs)
    gold = Body(_renamed(gold, own), proofs)
    if own.code == gold.code and {one.tokens for one in own.annotations} <= {one.tokens for one in gold.annotations}:
        return gold.text
    return own.grafted(list(_Grafting(gold, own).chosen()))


def _renamed(gold: Body, own: Body) -> str:
    """The gold with its variables renamed as in the other body, where both declare equally many variables that the
    other lacks: matched in their order."""
    theirs, ours = (
        [name for name in one.declared if name not in other.declared] for one, other in ((gold, own), (own, gold))
    )
    parts = pieces(gold.text)
    if len(theirs) != len(ours) or {part.text for part in parts} & set(ours):
        return gold.text
    names = dict(zip(theirs, ours, strict=True))
    return "".join(names.get(part.text, part.text) for part in parts)


class _Grafting:
    """The places of the gold's annotations in another body."""

    def __init__(self, gold: Body, own: Body):
        self._gold, self._own = gold, own
        blocks = SequenceMatcher(None, gold.code, own.code, autojunk=False).get_matching_blocks()
        self._same = {block.a + n: block.b + n for block in blocks for n in range(block.size)}
        self._missing = set(gold.declared) - set(own.declared)

    def chosen(self) -> Iterator[Annotation]:
        """The annotations that have a place, in the gold's order."""
        present = {(one.tokens, one.place) for one in self._own.annotations}
        for one in self._gold.annotations:
            place = self._loop(one) if one.clause else self._statement(one)
            if place is None or self._missing & _free(one.tokens):
                self._missing |= set(_declared(one.tokens))
            elif (one.tokens, place) not in present and not self._settled(one, place):
                yield Annotation(one.tokens, one.text, place)

    def _loop(self, one: Annotation) -> int | None:
        """The brace of the loop with the same number."""
        if one.place not in self._gold.loops:
            return None
        number = self._gold.loops.index(one.place)
        found = self._own.loops[number] if number < len(self._own.loops) else -1
        return found if found >= 0 else None

    def _statement(self, one: Annotation) -> int | None:
        before = self._same.get(one.place - 1)
        places = (self._same.get(one.place), None if before is None else before + 1)
        return next((place for place in places if place is not None and self._fits(place, one)), None)

    def _fits(self, place: int, one: Annotation) -> bool:
        """Whether a statement may precede that token."""
        if not 0 < place < len(self._own.code):
            return False
        before, after = self._own.code[place - 1], self._own.code[place]
        if after == "case":
            return before != "{" and self._gold.code[one.place] == "case"
        return before in _BOUNDARIES and after not in ("else", "{")

    def _settled(self, one: Annotation, place: int) -> bool:
        """Whether the loop already has a `decreases`: two would mean something else."""
        own = (other.tokens[0] for other in self._own.annotations if other.place == place)
        return one.tokens[0] == "decreases" and "decreases" in own


def _tokens(text: str) -> tuple[list[str], list[int]]:
    """The tokens of a text and where each starts."""
    found, starts, at = [], [], 0
    for piece in pieces(text):
        if piece.token:
            found.append(piece.text)
            starts.append(at)
        at += len(piece.text)
    return found, starts


def _loops(code: Sequence[str]) -> list[int]:
    """For each loop of a code without annotations the index of its body's brace; -1 where it has none of the usual
    form."""
    walk = Walker(code, partners(code))
    found = []
    for index in (index for index, token in enumerate(code) if token in ("while", "for")):
        stop = walk.past_expression(index + 1)
        if walk.at(stop) in ("to", "downto"):
            stop = walk.past_expression(stop + 1)
        found.append(stop if walk.at(stop) == "{" else -1)
    return found


def _declared(tokens: Sequence[str]) -> Iterator[str]:
    """Names that `var` and `for` declare."""
    for index, token in enumerate(tokens):
        if token not in ("var", "for"):
            continue
        for at in range(index + 1, len(tokens) - 1):
            if tokens[at] in (":=", ":|", ";", "{"):
                break
            if is_name(tokens[at]) and tokens[at - 1] in (token, ",", "(") and tokens[at + 1] not in (">", "<", "."):
                yield tokens[at]


def _free(tokens: Sequence[str]) -> set[str]:
    """Names that an annotation uses and does not bind itself: no members, no bound variables."""
    bound = set(_declared(tokens))
    for index, token in enumerate(tokens):
        if token in ("forall", "exists", "set", "map", "iset", "imap"):
            after = index + 1
            while after < len(tokens) and tokens[after] not in ("::", "|", "{"):
                bound.add(tokens[after])
                after += 1
    return {
        token
        for index, token in enumerate(tokens)
        if is_name(token) and token not in bound and (index == 0 or tokens[index - 1] != ".")
    }


@lru_cache(maxsize=4096)
def _proofs(program: str) -> frozenset[str]:
    """Names of the lemmas and ghost methods of a program: calls of them are annotations. None where it cannot be
    read."""
    try:
        return frozenset(_ghosts(parse(plain(program))))
    except Unreadable:
        return frozenset()


def _ghosts(declarations: Sequence[Declaration]) -> Iterator[str]:
    for one in declarations:
        if one.ghost and one.kind in ("lemma", "method"):
            yield one.name
        yield from _ghosts(one.members or ())
