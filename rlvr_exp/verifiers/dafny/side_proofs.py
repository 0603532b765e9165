"""Statements by which Dafny 2.3 believes what was shown of other values, or lets a ghost value into code.

The proofs of `assert ... by` and the hints of `calc` stand beside the code: what they assign is forgotten behind them, and
what they showed is kept. Dafny 2.3 does not look at assignments in the first, nor at those of a call's results in the
second. It does not look at what a pattern takes apart in code, and a loop of an iterator keeps what it knew of the
iterator's own fields. The rules refuse more than that, in words that proofs hardly use.
"""

from collections.abc import Collection, Iterator

from rlvr_exp.tasks.dafny.expressions import Walker, is_name, partners
from rlvr_exp.tasks.dafny.syntax import Declaration
from rlvr_exp.verifiers.dafny.soundness_rules import SoundnessRisk

_BEFORE_STATEMENTS = ("", "{", "}", ";", "=>", ":")
_ASSIGNS = (":=", ":|", ":-")


def soundness_risks_of(one: Declaration, methods: Collection[str]) -> Iterator[SoundnessRisk]:
    """The risks in one declaration.

    Args:
        methods: names of methods, ghost ones too.
    """
    for part in (one.head, *(clause.text for clause in one.clauses), one.body or (), one.compiled or ()):
        yield from _Statements(part).changes(methods)
    if one.kind != "function" and not one.ghost:
        yield from _Statements(one.body or ()).patterns()
    if one.kind == "iterator" and "while" in (one.body or ()):
        yield SoundnessRisk("unsound", "a loop of an iterator, whose fields Dafny 2.3 takes to stay as they are")


class _Statements:
    """The statements in balanced tokens."""

    def __init__(self, tokens: tuple[str, ...]):
        self._walk = Walker(tokens, partners(tokens))
        self._opens = {close: index for index, close in self._walk.closes.items()}

    def changes(self, methods: Collection[str]) -> Iterator[SoundnessRisk]:
        """Whatever may change a value in the proof of an assert or in a hint: calls of methods, and any assignment but
        a declaration's own."""
        for start, stop in self._proofs():
            for index in range(start, stop):
                token = self._walk.at(index)
                calls = token in methods and self._walk.at(index + 1) in ("(", "<")
                if calls or token == "modify" or (token in _ASSIGNS and self._is_assignment(index)):
                    yield SoundnessRisk("unsound", f"a proof within the body changes something: {self._around(index)}")

    def patterns(self) -> Iterator[SoundnessRisk]:
        """Variables of code that a pattern declares: Dafny 2.3 lets them take ghost values."""
        for index, token in enumerate(self._walk.tokens):
            if token == "var" and self._before(index) in _BEFORE_STATEMENTS and self._is_pattern(index + 1):
                yield SoundnessRisk("unsound", f"code takes a value apart: {self._around(index)}")

    def _proofs(self) -> Iterator[tuple[int, int]]:
        """The insides of the braces behind `by` and `calc`."""
        for index, token in enumerate(self._walk.tokens):
            brace = index + 1
            while token == "calc" and (self._walk.at(brace) not in ("", "{", "}") or self._walk.is_attribute(brace)):
                brace = self._walk.closes.get(brace, brace) + 1
            if token in ("by", "calc") and self._walk.at(brace) == "{":
                yield brace + 1, self._walk.closes[brace]

    def _before(self, index: int) -> str:
        return self._walk.at(index - 1) if index else ""

    def _is_assignment(self, index: int) -> bool:
        """Whether the sign there gives a value to what stands already: it does not declare a variable, and is no update
        of a sequence, a map or a datatype."""
        before = index - 1
        while before >= 0 and self._walk.at(before) not in (";", "{", "}", "=>"):
            token = self._walk.at(before)
            if token in ("var", "(", "[") or (token in ("if", "case") and self._walk.at(index) == ":|"):
                return False
            before = self._opens.get(before, before) - 1
        return True

    def _is_pattern(self, index: int) -> bool:
        while is_name(self._walk.at(index) or ";") and self._walk.at(index + 1) in (".", "("):
            index += 2 if self._walk.at(index + 1) == "." else 1
        return self._walk.at(index) == "("

    def _line(self, index: int) -> tuple[str, ...]:
        """The tokens up to the next semicolon."""
        stop = index
        while stop < self._walk.end and self._walk.at(stop) != ";":
            stop += 1
        return tuple(self._walk.tokens[index:stop])

    def _around(self, index: int) -> str:
        return " ".join((*self._walk.tokens[max(0, index - 3) : index], *self._line(index)))
