"""Names of the success rates of a vote: `voted_at_8`, and with up to two answers to an input `voted_at_8_top_2`."""

import re

_NAME = re.compile(r"voted_at_([1-9]\d*)(?:_top_([2-9]|[1-9]\d+))?")


def voted_metrics(samples: int, answers: int) -> tuple[str, ...]:
    """The rates of a vote of so many samples: of its first answer, and of up to `answers`; none where that is 0."""
    first = f"voted_at_{samples}"
    return (first, f"{first}_top_{answers}")[: min(answers, 2)]


def read_voted(metric: str) -> tuple[int, int] | None:
    """Samples and answers of such a name; None: it is another metric's."""
    match = _NAME.fullmatch(metric)
    return (int(match[1]), int(match[2] or 1)) if match else None
