"""Bodies as text without their annotations: the rules of `erase.py` for tokens, applied to the original text.

Comments between annotations and the layout of the rest are kept; a line of annotations alone is removed with its end.
Of a body that is all proof only the braces stay.
"""

from collections.abc import Callable, Collection, Iterator

from rlvr_exp.tasks.dafny import erase
from rlvr_exp.tasks.dafny.tokens import pieces, places, plain, tokens

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
    spans = [(found[a][0], found[b - 1][1]) for a, b in erase.annotations(tokens(plain(body)), proofs)]
    if goes is not None:
        spans = sorted([*spans, *_outside(_comments(body, goes), spans)])
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


def _outside(comments: Iterator[Span], spans: list[Span]) -> list[Span]:
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
