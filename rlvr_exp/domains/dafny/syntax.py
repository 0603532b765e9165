"""A program's declarations: kind, name, head, clauses and body of each, nested. And the program cut into its methods.

Follows the syntax of Dafny 4 closely enough to decide which tokens are specification; anything else is
Unreadable, never guessed. Bodies stay tokens. Names are not resolved here.

The cuts are offsets into the original text, byte-order mark, line ends and comments included, so the parts of a method
concatenate to the program. Constructors, iterators and functions without a `by method` body are no targets: they stay context.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from rlvr_exp.domains.dafny.tokens import (
    CLAUSES,
    DECLARES,
    ERROR,
    MODIFIERS,
    Unbalanced,
    Walker,
    has_directive,
    is_name,
    partners,
    pieces,
    places,
    plain,
    tokens,
)

Tokens = tuple[str, ...]

HOLDERS = frozenset(("module", "class", "trait"))
CALLABLES = frozenset(("method", "lemma", "function", "constructor", "iterator"))
_KINDS = {
    "predicate": "function",
    "copredicate": "function",
    "colemma": "lemma",
    "codatatype": "datatype",
    "newtype": "type",
    "var": "field",
}
_DEEPEST = 40


class Unreadable(ValueError):
    """Not a Dafny program, or a program that cannot be parsed safely."""


@dataclass(frozen=True)
class Clause:
    """One `requires`, `ensures`, ...: its keyword (or `yield requires`) and its tokens, without a last semicolon."""

    word: str
    text: Tokens


@dataclass(frozen=True)
class Where:
    """Indices of a callable's tokens in the program's list of them."""

    start: int
    """The first at-attribute or modifier, or its keyword."""
    keyword: int
    clauses: int
    """The first clause, or the token after the head."""
    opens: int
    """The brace that opens the compiled or proved body: a function's `by method` body, else its only body."""
    closes: int


@dataclass(frozen=True)
class Declaration:
    """One declaration. `head` is everything up to the clauses, including modifiers and keyword, without attributes."""

    kind: str
    name: str
    head: Tokens
    attributes: tuple[Tokens, ...] = ()
    clauses: tuple[Clause, ...] = ()
    body: Tokens | None = None
    compiled: Tokens | None = None
    """A function's `by method` body."""
    members: "tuple[Declaration, ...] | None" = None
    end: int = field(default=-1, compare=False)
    """The index of the token that closes the body."""
    stop: int = field(default=-1, compare=False)
    """Of a callable: the index after its last token."""
    where: Where | None = field(default=None, compare=False)
    """Its token indices, for a callable with a body."""

    @property
    def key(self) -> tuple[str, str]:
        """Its identity among its neighbours; for an import or a field its tokens."""
        return (self.kind, self.name if self.name or self.kind == "constructor" else " ".join(self.head))

    @property
    def ghost(self) -> bool:
        """Whether the running program does not call it."""
        return self.kind == "lemma" or "ghost" in self.head[:3]

    def names(self) -> Iterator[str]:
        """The names that it adds to its scope: its own, a datatype's constructors, a field's."""
        if self.name:
            yield from self.name.split(".")
        if self.kind == "datatype":  # Names after `=` and `|`.
            depth, due = 0, False
            for token in self.head:
                depth += (token in "([{") - (token in ")]}")
                if depth == 0 and token in ("=", "|"):
                    due = True
                elif depth == 0 and due and is_name(token) and token != "ghost":
                    yield token
                    due = False
        elif self.kind == "field":  # Names before a colon, outside a type's brackets.
            depth = 0
            for token, following in pairwise(self.head):
                depth += (token in ("(", "<")) - (token in (")", ">"))
                if depth == 0 and following == ":":
                    yield token
        elif self.kind == "import":
            named = [token for token in self.head if is_name(token) and token not in ("import", "opened")]
            yield from (named[0], named[-1]) if named else ()

    def everything(self) -> Iterator[str]:
        """All its tokens without those of its members."""
        for attribute in self.attributes:
            yield from attribute
        yield from self.head
        for clause in self.clauses:
            yield from (clause.word, *clause.text, ";")
        for body in (self.body, self.compiled):
            if body is not None:
                yield from ("{", *body, "}")


def parse(text: str) -> tuple[Declaration, ...]:
    """The declarations of a program; its text comes from `tokens.plain`.

    Raises:
        Unreadable: with the reason.
    """
    found = tokens(text)
    wrong = next((token for token in found if token[0] == ERROR), None)
    if wrong is not None:
        raise Unreadable(f"the character {wrong[1:]!r} outside of comments and strings")
    try:
        reader = _Reader(found, partners(found))
    except Unbalanced as fault:
        raise Unreadable(str(fault)) from fault
    return reader.declarations(0, len(found), 0, False)


class _Reader:
    def __init__(self, found: Sequence[str], closes: dict[int, int]):
        self._walk = Walker(found, closes)
        self._tokens, self._closes = found, closes

    def declarations(self, index: int, end: int, depth: int, members: bool) -> tuple[Declaration, ...]:
        """All declarations between two indices; `members`: of a class, which may have fields."""
        if depth > _DEEPEST:
            raise Unreadable("nested deeper than anything written by people")
        found = []
        while index < end:
            if self._tokens[index] == ";":  # a semicolon that an older style puts after a declaration
                index += 1
                continue
            declaration, index = self._declaration(index, depth, members)
            found.append(declaration)
        return tuple(found)

    def _declaration(self, start: int, depth: int, members: bool) -> tuple[Declaration, int]:
        before, index = self._at_attributes(start)
        modified, index = index, self._past_modifiers(index)
        word = self._walk.at(index)
        if word not in DECLARES and not (word == "var" and members):
            raise Unreadable(f"{self._shown(index)} where a declaration should begin")
        kind = _KINDS.get(word, word)
        modifiers = [*self._tokens[modified:index], word]
        keyword = index
        index += 1
        if word in ("function", "predicate") and self._walk.at(index) == "method":
            modifiers.append("method")
            index += 1
        attributes, index = self._attributes(index)
        attributes = before + attributes
        if kind in HOLDERS:
            head, more, brace = self._head(index)
            if self._walk.at(brace) != "{":
                raise Unreadable(f"a {kind} without braces")
            close = self._closes[brace]
            inner = self.declarations(brace + 1, close, depth + 1, kind != "module")
            full, attributes = tuple(modifiers + head), attributes + more
            return Declaration(kind, _dotted(head), full, tuple(attributes), members=inner), close + 1
        if kind in CALLABLES:
            return self._callable(kind, modifiers, attributes, (start, keyword), index, members)
        return self._plain(kind, modifiers, attributes, index, depth, members)

    def _shown(self, index: int) -> str:
        return repr(" ".join(self._tokens[index : index + 3]))

    def _past_modifiers(self, index: int) -> int:
        while self._walk.at(index) in MODIFIERS:
            index += 1
        return index

    def _at_attributes(self, index: int) -> tuple[list[Tokens], int]:
        """Attributes `@Name(arguments)` before a declaration."""
        found = []
        while self._walk.at(index) == "@":
            stop = self._walk.past_at_attribute(index)
            found.append(tuple(self._tokens[index:stop]))
            index = stop
        return found, index

    def _attributes(self, index: int) -> tuple[list[Tokens], int]:
        found = []
        while self._walk.is_attribute(index):
            close = self._closes[index]
            found.append(tuple(self._tokens[index : close + 1]))
            index = close + 1
        return found, index

    def _head(self, index: int) -> tuple[list[str], list[Tokens], int]:
        """Tokens up to a clause, a brace or the next declaration, without attributes."""
        head: list[str] = []
        attributes: list[Tokens] = []
        while index < self._walk.end:
            token = self._tokens[index]
            if self._walk.is_attribute(index):
                more, index = self._attributes(index)
                attributes += more
                continue
            if token in ("{", "}", ";") or token in CLAUSES or self._begins(index):
                break
            stop = self._closes[index] + 1 if token in ("(", "[") else index + 1
            head += self._tokens[index:stop]
            index = stop
        return head, attributes, index

    def _begins(self, index: int) -> bool:
        """Whether a declaration begins there; contextual modifiers count only before its keyword."""
        token = self._walk.at(index)
        if token == "@":
            return self._begins(self._at_attributes(index)[1])
        modified = token in MODIFIERS and self._walk.at(self._past_modifiers(index)) in DECLARES | {"var"}
        return token in DECLARES or modified

    def _callable(
        self,
        kind: str,
        modifiers: list[str],
        attributes: list[Tokens],
        begun: tuple[int, int],
        index: int,
        members: bool,
    ) -> tuple[Declaration, int]:
        head, more, first = self._head(index)
        clauses, index = self._clauses(first)
        body = compiled = where = None
        end = -1
        if self._walk.at(index) == "{":
            end = self._closes[index]
            where = Where(*begun, first, index, end)
            body, index = self._braced(index)
            if self._walk.at(index) == "by" and self._walk.at(index + 1) == "method":
                brace = index + 2
                compiled, index = self._braced(brace)
                where = Where(*begun, first, brace, index - 1)
        self._check_end(index, kind, members)
        name = head[0] if head and is_name(head[0]) else ""
        full = tuple(modifiers + head)
        details = (tuple(attributes + more), tuple(clauses), body, compiled)
        return Declaration(kind, name, full, *details, end=end, stop=index, where=where), index

    def _ends(self, index: int, members: bool) -> bool:
        token = self._walk.at(index)
        return token in ("}", ";") or self._begins(index) or (members and token == "var")

    def _check_end(self, index: int, kind: str, members: bool) -> None:
        if index < self._walk.end and not self._ends(index, members):
            raise Unreadable(f"{self._shown(index)} behind a {kind}")

    def _clauses(self, index: int) -> tuple[list[Clause], int]:
        found: list[Clause] = []
        while True:
            word = self._walk.at(index)
            if word == ";" and self._walk.at(index + 1) in CLAUSES | {"{"}:
                index += 1
                continue
            if word not in CLAUSES:
                return found, index
            index += 1
            while word.endswith("yield") and self._walk.at(index) in CLAUSES:
                word += f" {self._walk.at(index)}"
                index += 1
            stop = self._walk.past_expression(index)
            found.append(Clause(word, tuple(self._tokens[index:stop])))
            index = stop

    def _braced(self, index: int) -> tuple[Tokens, int]:
        if self._walk.at(index) != "{":
            raise Unreadable("a body is missing")
        close = self._closes[index]
        return tuple(self._tokens[index + 1 : close]), close + 1

    def _plain(
        self, kind: str, modifiers: list[str], attributes: list[Tokens], index: int, depth: int, members: bool
    ) -> tuple[Declaration, int]:
        """A datatype, type, constant, field, import, export or include: up to the next declaration."""
        first, walk = index, self._walk
        if kind in ("const", "type"):  # A name, perhaps a type, perhaps an expression, perhaps a witness.
            while True:
                index = walk.past_expression(index)
                if walk.at(index) == "ghost" and walk.at(index + 1) == "witness":
                    index += 2
                elif walk.at(index) == "witness":
                    index += 1
                else:
                    break
        else:
            while index < walk.end and not self._ends(index, members):
                token = self._tokens[index]
                if token == "{" and kind == "datatype" and not walk.is_attribute(index):
                    break
                index = self._closes[index] + 1 if token in ("(", "[", "{") else index + 1
        head = modifiers + list(self._tokens[first:index])
        name = "" if kind in ("import", "export", "include", "field") else walk.at(first)
        inner = None
        if walk.at(index) == "{" and kind in ("datatype", "type"):
            close = self._closes[index]
            inner = self.declarations(index + 1, close, depth + 1, True)
            index = close + 1
        else:
            self._check_end(index, kind, members)
        return Declaration(kind, name, tuple(head), tuple(attributes), members=inner), index


def _dotted(head: Sequence[str]) -> str:
    """The name that a head begins with: A or A.B.C."""
    if not head or not is_name(head[0]):
        raise Unreadable("a declaration without a name")
    name = head[0]
    for index in range(1, len(head) - 1, 2):
        if head[index] != ".":
            break
        name += "." + head[index + 1]
    return name


_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Method:
    """A method, a lemma, or a function's `by method` part that has a body."""

    name: str
    """Qualified: `Module.Class.Name`."""
    kind: str
    """`method`, `lemma` or `function`."""
    ghost: bool
    """Whether its body is not compiled: all of it is proof."""
    declaration: Declaration
    before: str
    header: str
    spec: str
    body: str
    after: str


@dataclass(frozen=True)
class Split:
    """A parsed program."""

    methods: tuple[Method, ...]
    proofs: frozenset[str]
    """Names of its lemmas and ghost methods: calls of them are annotations."""
    declarations: tuple[Declaration, ...]


def split(text: str) -> Split:
    """All methods of a program, in the order of the text.

    Raises:
        Unreadable: it is no Dafny that can be parsed safely; the reason is the message.
    """
    shown = plain(text)
    if has_directive(shown):
        raise Unreadable("a line that begins with a directive to Boogie's preprocessor")
    declarations = parse(shown)
    spans = places(text)
    methods = []
    for name, one in qualified(declarations):
        body = one.compiled if one.kind == "function" else one.body
        if one.kind in ("method", "lemma", "function") and body is not None:
            methods.append(_method(text, spans, name, one))
    proofs = frozenset(one.name for one in every(declarations) if one.ghost and one.kind in ("lemma", "method"))
    return Split(tuple(methods), proofs, declarations)


def every(declarations: Sequence[Declaration]) -> Iterator[Declaration]:
    """All declarations, members included."""
    for one in declarations:
        yield one
        yield from every(one.members or ())


def qualified(declarations: Sequence[Declaration], above: str = "") -> Iterator[tuple[str, Declaration]]:
    """Every declaration with its qualified name."""
    for one in declarations:
        name = f"{above}{one.name or one.kind}"
        yield name, one
        yield from qualified(one.members or (), f"{name}.")


def _method(text: str, spans: Sequence[tuple[int, int]], name: str, one: Declaration) -> Method:
    where = one.where
    if where is None:
        raise Unreadable(f"{name} has a body that was not found again")
    start, opens, end = spans[where.start][0], spans[where.opens][0], spans[where.closes][1]
    # The header ends with the signature's line if only blanks follow; else before the next token.
    at, cut = spans[where.clauses - 1][1], spans[where.clauses][0]
    for piece in pieces(text[at:cut]):
        ended = _LINE_END.search(piece.text) if piece.text.isspace() else None
        if ended is not None:
            cut = at + ended.end()
            break
        at += len(piece.text)
    ghost = one.ghost and one.kind != "function"
    parts = (text[:start], text[start:cut], text[cut:opens], text[opens:end], text[end:])
    return Method(name, one.kind, ghost, one, *parts)
