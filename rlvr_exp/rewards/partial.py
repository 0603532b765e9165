"""Partial credit along the way to a proof: an answer that is parsed, that resolves, the share of obligations proved.

Each term adds to the one before, so that parse < resolve < verify < passed holds whatever the weights above 0 are. A
cheat, and an answer that never reached the tool, is paid nothing; what ran out of resources had been resolved.
"""

from dataclasses import dataclass
from typing import ClassVar

from rlvr_exp.rewards.base import RewardInput, Term, ValueRange
from rlvr_exp.rewards.terms import share

PARSED = frozenset(("resolve", "verify", "timeout"))
"""Buckets of an answer that was parsed; a broken tool (`runtime_error`, `memory`) says nothing of how far it came."""
RESOLVED = frozenset(("verify", "timeout"))


@dataclass(frozen=True)
class Parses(Term):
    """1 when the tool parsed the answer, else 0."""

    weight: float
    when_correct: ClassVar[ValueRange] = ValueRange(1.0, 1.0)
    when_wrong: ClassVar[ValueRange] = ValueRange(0.0, 1.0)

    def __call__(self, verified: RewardInput) -> float:
        return float(verified.correct or verified.verdict.bucket in PARSED)


@dataclass(frozen=True)
class Resolves(Term):
    """1 when names and types of the answer were resolved, else 0."""

    weight: float
    when_correct: ClassVar[ValueRange] = ValueRange(1.0, 1.0)
    when_wrong: ClassVar[ValueRange] = ValueRange(0.0, 1.0)

    def __call__(self, verified: RewardInput) -> float:
        return float(verified.correct or verified.verdict.bucket in RESOLVED)


@dataclass(frozen=True)
class Obligations(Term):
    """Share of the proof obligations that were proved, in [0, 1]; 1 for a correct answer and for no other."""

    weight: float
    when_correct: ClassVar[ValueRange] = ValueRange(1.0, 1.0)
    when_wrong: ClassVar[ValueRange] = ValueRange(0.0, 1.0, open_top=True)

    def __call__(self, verified: RewardInput) -> float:
        return share(verified) if verified.correct or verified.verdict.bucket in RESOLVED else 0.0
