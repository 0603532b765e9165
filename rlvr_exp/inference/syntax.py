"""Whether a candidate has the syntax of its language, without running or verifying it."""

from typing import Any

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.completion import syntax_fault
from rlvr_exp.tasks.dafny.syntax import Unreadable, parse
from rlvr_exp.tasks.dafny.tokens import plain
from rlvr_exp.tasks.edits.action import parse_action
from rlvr_exp.tasks.edits.faults import ActionFault
from rlvr_exp.tasks.problems import AstGrepProblem, DafnyProblem, PytestProblem, PythonProblem


def fault_of(problem: Any, candidate: Candidate) -> str:
    """The syntax error, in a line; empty where there is none, or for a problem of a user's own."""
    if candidate.text is None:
        return candidate.fault or "no answer in the text"
    if isinstance(problem, PythonProblem | PytestProblem):
        found = syntax_fault(candidate.text)
        return "" if found is None else f"line {found[0]}: {found[1]}"
    if isinstance(problem, AstGrepProblem):
        return _raised(parse_action, ActionFault, candidate.text, problem.language)
    if isinstance(problem, DafnyProblem):
        return _raised(parse, Unreadable, plain(candidate.text))
    return ""


def _raised(read: Any, fault: type[ValueError], *given: str) -> str:
    try:
        read(*given)
    except fault as wrong:
        return str(wrong)
    return ""
