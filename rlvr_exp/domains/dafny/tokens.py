r"""Dafny's tokens, cut like its own scanner; blanks and comments are no tokens.

Where scanners of different versions, or the encodings between them, could disagree, the token is an error: outside
comments and strings only ASCII counts, and identifiers do not begin with a quote. Comments nest; an unclosed comment
swallows the rest, silently in Dafny too. A line end is \n alone once `plain` has been over the text.

The end of an expression is found without a grammar of expressions: by whether the next token must be an operand. Dafny has no
mark between a specification and a body. After a complete operand `{` can only begin a body; if an operand is due, it begins a
set. Bars, comprehensions, `match` and let-expressions are followed as far as necessary.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

ERROR = "\x00"
"""Begins the text of an invalid token."""

_TOKEN = re.compile(
    r"""[ \t\n\r]+
    |//[^\n]*
    |(?P<open>/\*)
    |(?P<token>
        [A-Za-z_?][A-Za-z0-9_'?]*
      | 0x[0-9A-Fa-f][0-9A-Fa-f_]* | [0-9][0-9_]*(?:\.[0-9][0-9_]*)?(?:e-?[0-9][0-9_]*)?
      | [0-9][0-9_]*\.(?![.0-9A-Za-z_?'(])
      | "(?:[^"\\\r\n]|\\['"\\0nrt]|\\u[0-9A-Fa-f]{4}|\\U\{[0-9A-Fa-f_]+\})*"
      | @"(?:[^"]|"")*"
      | '(?:[ -&(-\[\]-~]|\\['"\\0nrt]|\\u[0-9A-Fa-f]{4}|\\U\{[0-9A-Fa-f_]+\})'(?![A-Za-z0-9_'?])
      | <==> | ==> | <== | --> | \.\.\. | :: | := | :\| | :- | == | != | <= | >= | && | \|\| | \.\. | => | -> | ~> | !!
      | [-+*/%^&|<>=!~.,:;()\[\]{}`@\#]
      )""",
    re.VERBOSE,
)
_MARK = re.compile(r"/\*|\*/")
_ENDS = r"\n\r\v\f\x1c-\x1f\x85\u2028\u2029"
_UNSEEN = (
    r"\x00-\x20\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f"
    r"\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Blank and invisible characters, for use inside a character class."""
_HASH = re.compile(f"(?<![{_UNSEEN}])([{_UNSEEN}]*)#")
"""With all that is unseen before it: so that each run of blanks is read once."""
_LINE_END = re.compile(f"[{_ENDS}]")
_COMMENTED = re.compile(r"[^\n]")


@dataclass(frozen=True)
class Piece:
    """A stretch of the text: a token, or (`token` false) blanks and comments."""

    text: str
    token: bool


def plain(text: str) -> str:
    """The text with \\n line ends and without a byte-order mark, as Dafny's reader hands it to the scanner."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def has_directive(text: str) -> bool:
    """Whether a line, even inside a comment or a string, begins with `#`, perhaps after invisible characters.

    Dafny's reader and scanner obey such lines (`#if`, `#line`) before they process comments, and drop text.
    """
    if "#" not in text:
        return False
    return any(not found.start() or _LINE_END.search(found[1]) for found in _HASH.finditer(text))


def printed(text: str) -> str:
    """The program printed from its tokens: each comment is blanks of the same length, line ends stay in their place.

    A parser of this text cannot find other tokens by its own idea of where a comment ends, and the positions that it
    reports are those of the original text.
    """
    if "/" not in text:
        return text
    return "".join(
        piece.text if piece.token or "/" not in piece.text else _COMMENTED.sub(" ", piece.text)
        for piece in pieces(text)
    )


def tokens(text: str) -> list[str]:
    """The tokens in order. An invalid token begins with ERROR."""
    found: list[str] = []
    at, end = 0, len(text)
    match = _TOKEN.match
    while at < end:
        part = match(text, at)
        if part is None:
            found.append(ERROR + text[at])
            at += 1
        elif part.lastgroup == "token":
            found.append(part[0])
            at = part.end()
        elif part.lastgroup == "open":
            at = _comment_end(text, part.end())
        else:
            at = part.end()
    return found


def pieces(text: str) -> list[Piece]:
    """The complete text, cut where `tokens` cuts it; the pieces join to the text."""
    found: list[Piece] = []
    at, end = 0, len(text)
    while at < end:
        part = _TOKEN.match(text, at)
        stop = at + 1 if part is None else _comment_end(text, part.end()) if part.lastgroup == "open" else part.end()
        found.append(Piece(text[at:stop], part is None or part.lastgroup == "token"))
        at = stop
    return found


def tokens_with_starts(text: str) -> tuple[list[str], list[int]]:
    """The tokens of a text and the offset of each."""
    found, starts, at = [], [], 0
    for piece in pieces(text):
        if piece.token:
            found.append(piece.text)
            starts.append(at)
        at += len(piece.text)
    return found, starts


def places(text: str) -> list[tuple[int, int]]:
    """The first and the next offset of each token of `plain(text)` in the original text, with byte-order mark and line ends."""
    first = len(text) - len(text.removeprefix("\ufeff"))
    offsets: Sequence[int] = range(first, len(text) + 1)
    """The offset of each character of `plain(text)` in the text, and its end."""
    if "\r\n" in text:
        ends = range(first, len(text))
        inside = (at for at in ends if not (text[at] == "\n" and at > first and text[at - 1] == "\r"))
        offsets = [*inside, len(text)]
    found, starts = tokens_with_starts(plain(text))
    return [(offsets[at], offsets[at + len(token)]) for token, at in zip(found, starts, strict=True)]


def with_inserted(text: str, before: Mapping[int, str], left_out: Collection[int] = ()) -> str:
    """The text with words inserted before some of its tokens, by their index, and without others."""
    parts: list[str] = []
    index = 0
    for piece in pieces(text):
        if piece.token:
            parts.append(before.get(index, ""))
            index += 1
        if not piece.token or index - 1 not in left_out:
            parts.append(piece.text)
    return "".join([*parts, before.get(index, "")])


def _comment_end(text: str, at: int) -> int:
    """The index after the mark that closes the comment whose inside begins at `at`."""
    depth = 1
    while depth:
        mark = _MARK.search(text, at)
        if mark is None:
            return len(text)
        depth += 1 if mark[0] == "/*" else -1
        at = mark.end()
    return at


CLAUSES = frozenset(("requires", "ensures", "modifies", "reads", "decreases", "invariant", "yield"))
MODIFIERS = frozenset(
    ("abstract", "ghost", "static", "opaque", "replaceable", "twostate", "least", "greatest", "inductive")
)
DECLARES = frozenset(
    ("module", "import", "export", "include", "class", "trait", "datatype", "codatatype", "newtype", "type", "const")
    + ("function", "predicate", "copredicate", "method", "lemma", "colemma", "constructor", "iterator")
)
STATEMENTS = frozenset(
    ("while", "for", "return", "break", "continue", "print", "modify", "label", "new", "if", "match", "forall")
    + ("calc", "expect")
)
_BEGINS = frozenset(("var", "assert", "assume", "reveal"))
COMPREHENSIONS = frozenset(("set", "iset", "map", "imap", "forall", "exists"))
_PREFIXES = frozenset(("if", "seq", "multiset", "then", "else", "case", "in", "as", "is"))
_INFIX_WORDS = frozenset(("in", "as", "is", "then", "else", "case"))
_STOPS = frozenset(")]}")
_OPENS = {"(": ")", "[": "]", "{": "}"}


class Unbalanced(ValueError):
    """Brackets do not match: the program cannot parse."""


def partners(tokens: Sequence[str]) -> dict[int, int]:
    """The index of each bracket's closing partner. Raises Unbalanced."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token in _OPENS:
            opened.append(index)
        elif token in _STOPS:
            if not opened or _OPENS[tokens[opened[-1]]] != token:
                raise Unbalanced(f"a {token} that closes nothing")
            found[opened.pop()] = index
    if opened:
        raise Unbalanced(f"a {tokens[opened[-1]]} that is never closed")
    return found


def is_name(token: str) -> bool:
    """Whether it is an identifier or a reserved word."""
    return token[0].isalpha() or token[0] in "_?"


def _is_operand(token: str) -> bool:
    """Whether it is a name or a literal."""
    return is_name(token) or token[0] in "0123456789\"'" or token[:2] == '@"'


class Walker:
    """Walks over one list of tokens."""

    def __init__(self, tokens: Sequence[str], closes: dict[int, int]):
        self.tokens, self.closes, self.end = tokens, closes, len(tokens)

    def at(self, index: int) -> str:
        """The token at an index, or an empty string past the end."""
        return self.tokens[index] if index < self.end else ""

    def is_attribute(self, index: int) -> bool:
        """Whether an attribute `{:name ...}` begins at an index."""
        return self.at(index) == "{" and self.at(index + 1) == ":"

    def past_at_attribute(self, index: int) -> int:
        """The index after the attribute `@A.Name(arguments)` that begins at `index`."""
        index += 2
        while self.at(index) == ".":
            index += 2
        return self.closes[index] + 1 if self.at(index) == "(" else index

    def past_expression(self, index: int) -> int:
        """The index of the first token that is no part of the expression, or list of them, that begins at `index`."""
        state = _State()
        while index < self.end and self.tokens[index] not in _STOPS:
            step = self._operand(index, state) if state.due else self._operator(index, state)
            if step is None:
                break
            index = step
        return index

    def _operand(self, index: int, state: "_State") -> int | None:
        token = self.tokens[index]
        if self.is_attribute(index):
            return self.closes[index] + 1
        if token == "{" and not state.calc and ";" in self.tokens[index : self.closes[index]]:
            return None  # Statements, and no set: `as Num<int> { x := 0; }`, where the type only seems to compare.
        if token in _OPENS:
            state.due = token == "{" and state.calc
            state.calc = False
            return self.closes[index] + 1
        if token == ";":
            return state.ends_let(index)
        if token == "|":
            if state.open and state.open[-1] == "comprehension" and self.at(index - 1) == ">":
                state.open.pop()  # the bound variable's type ended in >
            else:
                state.open.append("bar")
        elif token == "::" and "comprehension" in state.open:
            state.close("comprehension")
        elif token in _BEGINS:
            state.lets += 1
        elif token == "match":
            state.matches += 1
        elif token == "calc":
            state.calc = True
        elif token in COMPREHENSIONS:
            if self.at(index + 1) not in ("{", "[", "<"):
                state.open.append("comprehension")
        elif token in CLAUSES or token in DECLARES or token in STATEMENTS - {"if"}:
            return None
        elif token == "*" or (token not in _PREFIXES and _is_operand(token)):
            state.due = False
        return index + 1

    def _operator(self, index: int, state: "_State") -> int | None:
        token = self.tokens[index]
        if token in ("(", "["):
            return self.closes[index] + 1
        if token == "{":
            if self.is_attribute(index):
                return self.closes[index] + 1
            if not state.matches:
                return None
            state.matches -= 1
            return self.closes[index] + 1
        if token == ";":
            return state.ends_let(index)
        if token == "#" or (token in ("==", "!=") and self.at(index + 1) == "#"):
            state.due = token != "#"  # P#[k](x), and a ==#[k] b
            bracket = index + 1 if token == "#" else index + 2
            return self.closes.get(bracket, bracket) + 1
        if token in (".", "`"):
            return index + 1 if self.at(index + 1) == "(" else index + 2
        if token == "|" and state.open:
            state.due = state.open.pop() == "comprehension"
            return index + 1
        if token == "::":
            state.close("comprehension")
        if token == "case" and state.matches:
            state.matches -= 1
        if (is_name(token) and token not in _INFIX_WORDS) or token[0] in "0123456789\"'":
            return None
        state.due = True
        return index + 1


class _State:
    """The state of a walk: whether an operand is due, open bars and comprehensions, lets and matches."""

    def __init__(self) -> None:
        self.due, self.calc = True, False
        self.open: list[str] = []
        self.lets = self.matches = 0

    def ends_let(self, index: int) -> int | None:
        """A semicolon: between a let and its body, or the end."""
        if not self.lets:
            return None
        self.lets -= 1
        self.due = True
        return index + 1

    def close(self, what: str) -> None:
        """Drop the innermost open item of that kind, and items still open inside it."""
        while self.open and self.open.pop() != what:
            pass
