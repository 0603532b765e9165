"""Pruning of annotations that Dafny does not prove.

`prune` drops the first annotation of each callable that one of Dafny's errors points to, verifies the rest, and repeats this until
the program verifies or no error points to an annotation (Houdini, Flanagan and Leino, FME 2001; for the annotations of language
models DafnyPro, arXiv 2601.05385). It drops one at a time because a wrong annotation can make the solver fail at others that hold.

Annotations of the given program are never dropped. A `decreases` clause goes if Dafny cannot prove that it decreases, and of a
conjunction only the conjunct that fails. Code, lemmas and functions stay.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

from rlvr_exp.domains.dafny.annotations import annotations, without_spans
from rlvr_exp.domains.dafny.syntax import Declaration, Unreadable, every, parse
from rlvr_exp.domains.dafny.tokens import COMPREHENSIONS, Walker, partners, tokens_with_starts


class Located(Protocol):
    """An error of Dafny. Line and column count from 1."""

    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...


Judge = Callable[[str], tuple[Any, Sequence[Located]]]
"""Verifies a program. It returns its own result, and the errors of a program that is not proved; empty if it is proved or if
dropping annotations cannot help."""


@dataclass(frozen=True)
class Pruned:
    """A program without the annotations that failed."""

    text: str
    dropped: tuple[str, ...]
    """Dropped annotations in the order of their rounds."""
    result: Any
    """The result of the last run."""


def prune(text: str, given: str, errors: Sequence[Located], judge: Judge) -> Pruned | None:
    """Drop failing annotations until nothing fails. None if nothing can be dropped.

    Args:
        text: the failed program, with line ends as in `tokens.plain`.
        given: the program whose annotations stay.
        errors: the errors of `text`.
    """
    found, dropped = None, list[str]()
    while errors and (step := without_failing(text, given, errors)) is not None:
        text = step[0]
        dropped += step[1]
        result, errors = judge(text)
        found = Pruned(text, tuple(dropped), result)
    return found


def without_failing(text: str, given: str, errors: Sequence[Located]) -> tuple[str, list[str]] | None:
    """The program without the annotations that errors point to, and their texts. None if no error points to one."""
    try:
        program = _Program(text)
        spans = program.failing(errors, _Program(given).counted())
    except Unreadable:
        return None
    return (without_spans(text, spans), [text[start:stop] for start, stop in spans]) if spans else None


Span = tuple[int, int]
_LOOSER = frozenset(("==>", "<==", "<==>", "||", "if", "var", "match", "::", "by"))
"""Words that take a conjunction as their operand, or that are no expression."""


class _Program:
    """The annotations of a program by the places of their tokens."""

    def __init__(self, text: str):
        self._text = text
        declarations = [*every(parse(text))]
        self._tokens, self._starts = tokens_with_starts(text)
        self._walk = Walker(self._tokens, partners(self._tokens))
        self._proofs = {one.name for one in declarations if one.ghost and one.kind in ("lemma", "method")}
        self._spans = [
            (one, span)
            for one in declarations
            if one.where is not None and (one.kind != "function" or one.compiled is not None)
            for span in self._of_block(one.where.opens)
        ]
        """Every annotation, the outer ones first."""

    def _of_block(self, opens: int) -> Iterator[Span]:
        """The annotations between braces, and those inside of them."""
        first = opens + 1
        inside = self._tokens[first : self._walk.closes[opens]]
        for start, stop in annotations(inside, self._proofs):
            yield first + start, first + stop
            index = first + start
            while index < first + stop:
                if self._tokens[index] == "{" and not self._walk.is_attribute(index):
                    yield from self._of_block(index)
                    index = self._walk.closes[index]
                index += 1

    def _key(self, one: Declaration, span: Span) -> tuple[str, ...]:
        return (one.name, *self._tokens[slice(*span)])

    def counted(self) -> Counter[tuple[str, ...]]:
        """How often each callable has each annotation."""
        return Counter(self._key(*found) for found in self._spans)

    def failing(self, errors: Sequence[Located], given: Counter[tuple[str, ...]]) -> list[Span]:
        """The offsets of the first annotation of each callable that an error points to."""
        left, own = Counter(given), dict[Span, int]()
        for one, span in self._spans:
            if left[self._key(one, span)]:
                left[self._key(one, span)] -= 1
            else:
                own[span] = id(one)
        chosen: dict[int, Span] = {}
        for at in sorted(map(self._index, errors)):
            within = [span for span in own if span[0] <= at < span[1]]
            if within:
                chosen.setdefault(own[within[-1]], self._conjunct(within[-1], at))
            elif self._tokens[at] in ("while", "for") and (measure := self._measure(at)) in own:
                chosen.setdefault(own[measure], measure)
        return [(self._starts[a], self._starts[b - 1] + len(self._tokens[b - 1])) for a, b in chosen.values()]

    def _conjunct(self, span: Span, at: int) -> Span:
        """The conjunct of an invariant or assertion that holds the token, with an operator beside it."""
        start, stop = span
        first, last = start + 1, stop - (self._tokens[stop - 1] == ";")
        if self._tokens[start] not in ("invariant", "assert") or self._walk.past_expression(first) != last:
            return span
        splits, index = [first - 1], first
        while index < last:
            token = self._tokens[index]
            if token in _LOOSER:
                return span
            if token in COMPREHENSIONS:
                break
            if token == "&&":
                splits.append(index)
            index = self._walk.closes[index] + 1 if token in ("(", "[", "{") else index + 1
        splits.append(last)
        place = next(place for place, (_, end) in enumerate(pairwise(splits)) if at < end or end == last)
        if len(splits) == 2 or at in splits:
            return span
        return (splits[place] + 1, splits[place + 1] + 1) if place + 2 < len(splits) else (splits[place], last)

    def _measure(self, loop: int) -> Span:
        """The decreases clause of a loop; an empty span if it has none."""
        for index in range(loop + 1, self._walk.end):
            if self._tokens[index] in ("while", "for"):
                break
            found = next((span for _, span in self._spans if span[0] == index), None)
            if self._tokens[index] == "decreases" and found:
                return found
        return (0, 0)

    def _index(self, error: Located) -> int:
        """The last token that does not begin after the error's place."""
        lines = self._text.split("\n")[: error.line - 1]
        offset = sum(map(len, lines)) + len(lines) + error.column - 1
        return max((index for index, start in enumerate(self._starts) if start <= offset), default=0)
