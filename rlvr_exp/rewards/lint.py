"""A penalty for lint in a Python answer, by Ruff, which reads a program and never runs it."""

import json
import subprocess
from functools import lru_cache
from typing import ClassVar

from rlvr_exp.config import verifier as options
from rlvr_exp.episodes.types import Completion
from rlvr_exp.rewards.base import Term, ValueRange

LONGEST_S = 60.0


class Ruff(Term, options.Ruff):
    """Findings of Ruff per line of code, from -1 (one or more a line, or not Python) to 0 (none).

    Skopin and Kotelnikov (2605.30478) add such a penalty to unit tests. Their weights of severities are not known to us, so each
    finding counts alike.
    """

    when_correct: ClassVar[ValueRange] = ValueRange(-1.0, 0.0)
    when_wrong: ClassVar[ValueRange] = ValueRange(-1.0, 0.0)

    def __call__(self, completion: Completion) -> float:
        text = completion.candidate.text
        if text is None:
            return -1.0
        lines = sum(bool(line.strip()) for line in text.splitlines())
        return -min(1.0, findings(text, tuple(self.select)) / max(1, lines))


@lru_cache(maxsize=4096)
def findings(text: str, select: tuple[str, ...]) -> int:
    """The number of findings in a program. A program that is not Python has at least one a line."""
    try:
        given = text.encode()
    except UnicodeError:  # Lone surrogates are no program.
        return len(text)
    done = subprocess.run(options.ruff_check(select), input=given, capture_output=True, timeout=LONGEST_S, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"ruff ended with {done.returncode}: {done.stderr.decode(errors='replace').strip()}")
    found = json.loads(done.stdout)
    return len(text) if any(one["code"] in (None, "invalid-syntax") for one in found) else len(found)
