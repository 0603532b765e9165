"""A program cut into its methods: where each begins, where its specification is, where its body is.

The cuts are offsets into the original text, byte-order mark, line ends and comments included, so the parts of a method
concatenate to the program. Tokens and declarations come from `tokens.py` and `syntax.py`. Constructors,
iterators and functions without a `by method` body are no targets: they stay context.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlvr_exp.tasks.dafny.syntax import Declaration, Unreadable, Where, parse
from rlvr_exp.tasks.dafny.tokens import has_directive, pieces, places, plain

_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Method:
    """A method, a lemma, or a function's `by method` part, that has a body."""

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
    every = list(qualified(declarations))
    spans = places(text)
    methods = tuple(_method(text, spans, name, one) for name, one in every if is_target(one))
    proofs = frozenset(one.name for _, one in every if one.ghost and one.kind in ("lemma", "method"))
    return Split(methods, proofs, declarations)


def is_target(one: Declaration) -> bool:
    """Whether a declaration is a method in the sense of this module."""
    body = one.compiled if one.kind == "function" else one.body
    return one.kind in ("method", "lemma", "function") and body is not None


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
    cut = _header_end(text, spans, where)
    ghost = one.ghost and one.kind != "function"
    parts = (text[:start], text[start:cut], text[cut:opens], text[opens:end], text[end:])
    return Method(name, one.kind, ghost, one, *parts)


def _header_end(text: str, spans: Sequence[tuple[int, int]], where: Where) -> int:
    """The end of the signature's line where only blanks follow; else where the next token begins."""
    at, stop = spans[where.clauses - 1][1], spans[where.clauses][0]
    for piece in pieces(text[at:stop]):
        ended = _LINE_END.search(piece.text) if piece.text.isspace() else None
        if ended is not None:
            return at + ended.end()
        at += len(piece.text)
    return stop
