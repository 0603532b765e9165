"""Partial credit on the way to a proof: for parsing, for resolution, and for the share of obligations proved.

Each term adds to the term before it, so that parse < resolve < verify < passed holds for any weights above 0. A cheat,
and a completion that never reached the tool, earns nothing; a program that ran out of resources had been resolved.
"""

from typing import ClassVar

from rlvr_exp.config import verifier as options
from rlvr_exp.episodes.types import Completion
from rlvr_exp.rewards.base import Term, ValueRange
from rlvr_exp.rewards.terms import share

PARSED = frozenset(("resolve", "verify", "timeout"))
"""Buckets of programs that were parsed; a broken tool (`runtime_error`, `memory`) does not show how far it came."""
RESOLVED = frozenset(("verify", "timeout"))


class Parses(Term, options.Parses):
    """1 when the tool parsed the program, else 0."""

    when_correct: ClassVar[ValueRange] = ValueRange(1.0, 1.0)
    when_wrong: ClassVar[ValueRange] = ValueRange(0.0, 1.0)

    def __call__(self, completion: Completion) -> float:
        return float(completion.correct or completion.verdict.bucket in PARSED)


class Resolves(Term, options.Resolves):
    """1 when names and types of the program were resolved, else 0."""

    when_correct: ClassVar[ValueRange] = ValueRange(1.0, 1.0)
    when_wrong: ClassVar[ValueRange] = ValueRange(0.0, 1.0)

    def __call__(self, completion: Completion) -> float:
        return float(completion.correct or completion.verdict.bucket in RESOLVED)


class Obligations(Term, options.Obligations):
    """Share of the proof obligations that were proved, in [0, 1]; 1 only for a correct completion."""

    when_correct: ClassVar[ValueRange] = ValueRange(1.0, 1.0)
    when_wrong: ClassVar[ValueRange] = ValueRange(0.0, 1.0, open_top=True)

    def __call__(self, completion: Completion) -> float:
        return share(completion) if completion.correct or completion.verdict.bucket in RESOLVED else 0.0
