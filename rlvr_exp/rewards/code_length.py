"""The length of the code of an answer: what a verifier judges, without its comments and blanks, in characters."""

import io
import tokenize
from typing import ClassVar

from rlvr_exp.config import reward as options
from rlvr_exp.episodes.types import Completion
from rlvr_exp.rewards.base import Term, ValueRange
from rlvr_exp.tasks.dafny.tokens import tokens
from rlvr_exp.tasks.formats.dafny import DafnyProblem

LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


class CodeLength(Term, options.CodeLength):
    """For correct completions scale / (scale + 1 + characters of code), in (0, 1): strictly better when shorter. Others
    get 0. Thoughts and prose around the code do not count, and comments and blanks in it do not."""

    when_correct: ClassVar[ValueRange] = ValueRange(0.0, 1.0, open_top=True)
    when_wrong: ClassVar[ValueRange] = ValueRange(0.0, 0.0)

    def __call__(self, completion: Completion) -> float:
        return self.scale_characters / (self.scale_characters + 1 + length(completion)) if completion.correct else 0.0


def length(completion: Completion) -> int:
    """Characters of the candidate's tokens, in Dafny's or Python's scanner (an ast-grep action is read by the latter)."""
    text = completion.candidate.text or ""
    if isinstance(completion.task.problem, DafnyProblem):
        return sum(map(len, tokens(text)))
    try:
        found = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):  # Not Python: whatever is no blank counts.
        return len("".join(text.split()))
    return sum(len(part.string) for part in found if part.type not in LAYOUT)
