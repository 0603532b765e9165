r"""Dafny's tokens, cut like its own scanner; blanks and comments are no tokens.

Where scanners of different versions, or the encodings between them, could disagree, the token is an error: outside
comments and strings only ASCII counts, and identifiers do not begin with a quote. Comments nest; an unclosed comment
swallows the rest, silently in Dafny too. A line end is \n alone once `plain` has been over the text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

ERROR = "\x00"
"""Begins the text of an invalid token."""

_TOKEN = re.compile(
    r"""[ \t\n\r]+
    |//[^\n]*
    |(?P<open>/\*)
    |(?P<token>
        [A-Za-z_?][A-Za-z0-9_'?]*
      | 0x[0-9A-Fa-f][0-9A-Fa-f_]* | [0-9][0-9_]*(?:\.[0-9][0-9_]*)?
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


def places(text: str) -> list[tuple[int, int]]:
    """Where each token of `plain(text)` begins and ends in the original text, with byte-order mark and line ends."""
    offsets = _offsets(text)
    found, at = [], 0
    for piece in pieces(plain(text)):
        stop = at + len(piece.text)
        if piece.token:
            found.append((offsets[at], offsets[stop]))
        at = stop
    return found


def _offsets(text: str) -> Sequence[int]:
    """The place of each character of `plain(text)` in the text, and its end."""
    first = len(text) - len(text.removeprefix("\ufeff"))
    if "\r\n" not in text:
        return range(first, len(text) + 1)
    inside = (at for at in range(first, len(text)) if not (text[at] == "\n" and at > first and text[at - 1] == "\r"))
    return [*inside, len(text)]


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
