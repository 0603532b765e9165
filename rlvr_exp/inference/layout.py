"""A candidate formatted for a reader: Python by ruff, an ast-grep action as indented JSON. It is never verified.

A layout is given only where it is the same program: the syntax trees are equal, docstrings to the letter, or
the actions are. Dafny programs and languages of a user's own have none. ruff reads a program and never runs it; it is
an option of the installation (`pip install 'rlvr_exp[format]'`).
"""

import ast
import json
import subprocess
import sys
from functools import lru_cache
from typing import Any

from rlvr_exp.inference.syntax import fault_of
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.edits.action import parse_action
from rlvr_exp.tasks.problems import AstGrepProblem, PytestProblem, PythonProblem

# Without the settings of whatever folder the run is started in.
RUFF = (sys.executable, "-m", "ruff", "format", "--isolated", "--no-cache", "--stdin-filename=answer.py", "-")
LONGEST_S = 60.0


def laid_out(problem: Any, candidate: Candidate) -> str | None:
    """The candidate in its language's usual layout; None where it has a fault, or no layout that is surely the same."""
    if candidate.text is None or fault_of(problem, candidate):
        return None
    if isinstance(problem, PythonProblem | PytestProblem):
        return python(candidate.text)
    if isinstance(problem, AstGrepProblem):
        return _action(candidate.text, problem.language)
    return None


def _action(text: str, language: str) -> str | None:
    """None for an action that is written as YAML or as a command, and stays as it is."""
    try:
        written = json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
    except ValueError:
        return None
    return written if parse_action(written, language) == parse_action(text, language) else None


@lru_cache(maxsize=256)
def python(text: str) -> str | None:
    """A valid module as ruff lays it out; None where ruff does not take it, or changes more than the layout."""
    try:
        done = subprocess.run(RUFF, input=text.encode(), capture_output=True, timeout=LONGEST_S, check=False)
        written = done.stdout.decode()
        return written if not done.returncode and _tree(written) == _tree(text) else None
    except (UnicodeError, subprocess.TimeoutExpired, RecursionError, SyntaxError):
        return None  # Lone surrogates, or a nesting that is too deep to compare.


def _tree(text: str) -> str:
    """Without places and layout."""
    return ast.dump(ast.parse(text))
