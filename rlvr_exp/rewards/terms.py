"""The reward terms, a small class each. Every term reads the verdict or the candidate; none runs anything itself.

Partial credit on the way to a proof: for parsing, for resolution, and for the share of obligations proved.

Each term adds to the term before it, so that parse < resolve < verify < passed holds for any weights above 0. A cheat,
and a completion that never reached the tool, earns nothing; a program that ran out of resources had been resolved.
"""

import hashlib
import io
import tokenize
from typing import ClassVar

from rlvr_exp.config import verifier as options
from rlvr_exp.episodes.types import Completion
from rlvr_exp.rewards.base import Term, ValueRange
from rlvr_exp.tasks.formats.rows import format_of
from rlvr_exp.verifiers.base import PROMPT_TOO_LONG

SEVERITY = {
    "rejected": -1.0,
    "parse": -0.9,
    "truncated": -0.8,
    "resolve": -0.7,
    "runtime_error": -0.6,
    "memory": -0.6,
    "output_limit": -0.6,
    "timeout": -0.5,
    "out_of_resource": -0.5,
    "verify": -0.3,
    "wrong_answer": -0.2,
    "side_effect": -0.2,
    PROMPT_TOO_LONG: -0.2,
}
"""Values of `Severity`: the further a completion is from passing, the lower. A cheat is lowest."""


def share(completion: Completion) -> float:
    """Share of the cases or obligations that passed, in [0, 1]; 1 only for a correct completion."""
    # A verdict can fail with every case passed (it printed too much on its way out): not a full share.
    verdict = completion.verdict
    if completion.correct:
        return 1.0
    return min(verdict.score, (verdict.total - 0.5) / verdict.total) if verdict.total else 0.0


class CasesPassed(Term, options.CasesPassed):
    """Share of the cases passed, in [0, 1]; 1 only for a correct completion."""

    when_correct: ClassVar[ValueRange] = ValueRange(1.0, 1.0)
    when_wrong: ClassVar[ValueRange] = ValueRange(0.0, 1.0, open_top=True)

    def __call__(self, completion: Completion) -> float:
        return share(completion)


class AllPassed(Term, options.AllPassed):
    """1 for a correct completion, else 0."""

    when_correct: ClassVar[ValueRange] = ValueRange(1.0, 1.0)
    when_wrong: ClassVar[ValueRange] = ValueRange(0.0, 0.0)

    def __call__(self, completion: Completion) -> float:
        return 1.0 if completion.correct else 0.0


class Syntax(Term, options.Syntax):
    """1 when there is a candidate and the verifier could parse it, else 0."""

    when_correct: ClassVar[ValueRange] = ValueRange(1.0, 1.0)
    when_wrong: ClassVar[ValueRange] = ValueRange(0.0, 1.0)

    def __call__(self, completion: Completion) -> float:
        unread = completion.verdict.bucket in ("parse", "truncated", PROMPT_TOO_LONG)
        return 0.0 if unread or completion.candidate.text is None else 1.0


class Length(Term, options.Length):
    """For correct completions scale / (scale + 1 + tokens), in (0, 1): strictly better when shorter. Others get 0."""

    when_correct: ClassVar[ValueRange] = ValueRange(0.0, 1.0, open_top=True)
    when_wrong: ClassVar[ValueRange] = ValueRange(0.0, 0.0)

    def __call__(self, completion: Completion) -> float:
        return self.scale_tokens / (self.scale_tokens + 1 + completion.tokens) if completion.correct else 0.0


class Severity(Term, options.Severity):
    """0 for a correct completion; below 0 for every other, by SEVERITY."""

    when_correct: ClassVar[ValueRange] = ValueRange(0.0, 0.0)
    when_wrong: ClassVar[ValueRange] = ValueRange(min(SEVERITY.values()), max(SEVERITY.values()))

    def __call__(self, completion: Completion) -> float:
        if completion.correct:
            return 0.0
        return SEVERITY[completion.verdict.bucket or "rejected"]


LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


class CodeLength(Term, options.CodeLength):
    """For correct completions scale / (scale + 1 + characters of code), in (0, 1): strictly better when shorter. Others
    get 0. Thoughts and prose around the code do not count, and comments and blanks in it do not."""

    when_correct: ClassVar[ValueRange] = ValueRange(0.0, 1.0, open_top=True)
    when_wrong: ClassVar[ValueRange] = ValueRange(0.0, 0.0)

    def __call__(self, completion: Completion) -> float:
        return self.scale_characters / (self.scale_characters + 1 + length(completion)) if completion.correct else 0.0


def length(completion: Completion) -> int:
    """Characters of the candidate's tokens, in the scanner of its format, or else in Python's."""
    text = completion.candidate.text or ""
    kind = format_of(completion.task.problem)
    if kind is not None and (own := kind.tokens(text)) is not None:
        return sum(map(len, own))
    try:
        found = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):  # Not Python: whatever is no blank counts.
        return len("".join(text.split()))
    return sum(len(part.string) for part in found if part.type not in LAYOUT)


PARSED = frozenset(("resolve", "verify", "timeout", "out_of_resource"))
"""Buckets of programs that were parsed; a broken tool (`runtime_error`, `memory`) does not show how far it came."""
RESOLVED = frozenset(("verify", "timeout", "out_of_resource"))


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


class Random(Term, options.Random):
    """0 or 1 with equal probability, whatever the answer: the control of Shao et al., Spurious Rewards (2506.10947).

    A hash of task, number and text of the completion decides, so that a resumed run pays the same.
    """

    when_correct: ClassVar[ValueRange] = ValueRange(0.0, 1.0)
    when_wrong: ClassVar[ValueRange] = ValueRange(0.0, 1.0)

    def __call__(self, completion: Completion) -> float:
        said = f"{completion.task.id}\0{completion.sample}\0{completion.text}"
        return float(hashlib.sha256(said.encode(errors="surrogatepass")).digest()[0] & 1)
