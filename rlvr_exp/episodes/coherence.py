"""Whether the outputs of a chain speak of the same thing: pure functions of texts.

The agreement of an output with the next one is the share that they have in common of what can be checked: names of the problem (its
function and arguments) and literals (numbers, quoted texts). Two outputs of which one has none of these do not agree. The last stage
is also held against the examples that are worked out before it, by running them; what they come to is given.
"""

import re
from collections.abc import Collection, Sequence
from itertools import pairwise
from statistics import fmean

WORD = re.compile(r"[A-Za-z_]\w*")
LITERAL = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|(?<![\w.])-?\d+(?:\.\d+)?")
NUMBERING = re.compile(r"^\s*\d+[.)]\s", re.MULTILINE)


def checkable(output: str, names: Collection[str]) -> set[str]:
    """The names of a problem and the literals in an output; the numbers of its lines are none."""
    text = NUMBERING.sub("", output)
    found = {word for word in WORD.findall(text) if word in names}
    return found | {one.replace('"', "'") for one in LITERAL.findall(text)}


def agreement(earlier: str, later: str, names: Collection[str]) -> float:
    """The overlap coefficient of what can be checked in two outputs, in [0, 1]."""
    first, second = checkable(earlier, names), checkable(later, names)
    smaller = min(len(first), len(second))
    return len(first & second) / smaller if smaller else 0.0


def by_stage(outputs: Sequence[str], names: Collection[str], examples: float | None = None) -> list[float]:
    """The agreement of each output with the next.

    Args:
        examples: the share of the worked examples that the last output, a program, fulfils; None: none is worked out.
    """
    found = [agreement(first, second, names) for first, second in pairwise(outputs)]
    if found and examples is not None:
        found[-1] = fmean([found[-1], examples])
    return found
