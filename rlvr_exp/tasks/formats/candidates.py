"""What can be told of a candidate without running or verifying it: a syntax error, and its layout for a reader."""

from typing import Any

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.rows import format_of


def fault_of(problem: Any, candidate: Candidate) -> str:
    """The syntax error, in a line; empty where there is none, or for a problem of a user's own."""
    if candidate.text is None:
        return candidate.fault or "no answer in the text"
    form = format_of(problem)
    return form.fault(problem, candidate.text) if form else ""


def laid_out(problem: Any, candidate: Candidate) -> str | None:
    """The candidate in its language's usual layout; None where it has a fault, or no layout that is surely the same:
    the syntax trees are equal, docstrings to the letter, or the actions are."""
    form = format_of(problem)
    if candidate.text is None or form is None or form.fault(problem, candidate.text):
        return None
    return form.layout(problem, candidate.text)
