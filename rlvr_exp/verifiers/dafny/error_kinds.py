"""The kind of an unproved obligation, from the tool's message. One table for 2.3 and 4.x, first match wins."""

import re

_KINDS = (
    ("invariant-entry", r"BP5004|invariant (?:might|could) not (?:hold|be proved) on entry|not be proved on entry"),
    ("invariant-maintained", r"BP5005|invariant (?:might|could) not be (?:maintained|proved to be maintained)"),
    ("postcondition", r"BP5003|postcondition"),
    ("precondition", r"BP5002|precondition"),
    ("termination", r"decreases|failure to decrease|termination|cannot prove termination"),
    ("modifies", r"modifies clause|may violate context's modifies|frame"),
    ("reads", r"insufficient reads clause|reads clause"),
    ("index", r"index out of range|range|upper bound|lower bound|element might not be in domain"),
    ("null", r"null|might not be allocated"),
    ("division", r"divisor|division by zero|possible division"),
    ("subrange", r"subset constraints|subrange|value does not satisfy|result of operation might violate"),
    ("assign-such-that", r"cannot establish the existence of LHS|such-that"),
    ("match", r"missing case|matching|case"),
    ("initialisation", r"definite|uninitialized|might be accessed before"),
    ("calc", r"calculation step"),
    ("forall", r"possible violation of postcondition of forall"),
    ("trait", r"overrid|refine|implement"),
    ("assertion", r"BP5001|assertion|might not hold"),
)
_TABLE = [(kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _KINDS]


def kind_of(text: str, related: str = "") -> str:
    """The kind. `related`: the message below it, which in 2.3 is sometimes the decisive message."""
    for kind, pattern in _TABLE:
        if pattern.search(text) or (related and pattern.search(related)):
            return kind
    return "other"
