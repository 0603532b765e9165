"""Shared parts of the attack tests: problems to cheat at, the type of an attack, and judging one candidate at a time.

An attack is a candidate that answers wrongly unless it succeeds: it must never pass, and the next honest candidate
on the same worker must. A control is an honest candidate that a naive sandbox breaks: it must pass.
"""

import itertools
import secrets
import textwrap
from dataclasses import replace
from types import SimpleNamespace

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.fields import Limits
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem, StdinCase
from rlvr_exp.verifiers.base import Request, Verdict
from rlvr_exp.verifiers.python_io import PythonIO

LIMITS = Limits(cpu_s=0.5, wall_s=5.0)
SLEEPY = Limits(cpu_s=0.5, wall_s=0.25)
"""For attacks that only the wall clock ends."""
CASES = (Case((2,), 4), Case((3,), 6))
PROBLEM = PythonProblem("double", CASES, limits=LIMITS)
HONEST = "def double(x): return 2 * x"
MARK = "SECRET-"
SECRET = MARK + secrets.token_hex(8)
SECRETIVE = PythonProblem("double", (Case((2,), None), Case((3,), SECRET)), limits=LIMITS)
"""Its second answer cannot be guessed, only found."""
PROGRAM = PythonProblem("", (StdinCase("2\n", "4\n"), StdinCase("3\n", "6\n")), limits=LIMITS)
_fresh = itertools.count()


def make(workers: int = 1, **options: object) -> PythonIO:
    usual = {"cpu_s": 1.0, "wall_s": 6.0, "memory_mb": 200, "output_kb": 64, "level": "auto", "require": ""}
    return PythonIO(SimpleNamespace(workers=workers, **usual | options))


def judge(verifier: PythonIO, code: str, problem: PythonProblem = PROBLEM) -> Verdict:
    return verifier.verify([Request(problem, Candidate(code))])[0]


def unseen(code: str) -> str:
    """The same program with another text, so that it is judged and not taken from the cache."""
    return f"{code}\n# {next(_fresh)}"


def limited(**limits: float) -> PythonProblem:
    return replace(PROBLEM, limits=replace(LIMITS, **limits))


def double(body: str, first: str = "") -> str:
    """A candidate whose function has this body; `first` comes before it, at the module's level."""
    return f"{textwrap.dedent(first)}\ndef double(x):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"


def gains(body: str, first: str = "") -> str:
    """Answers rightly if the body's `won` is true at its end, and wrongly where it is false or the body raises."""
    return double(f"won = False\n{textwrap.dedent(body).strip()}\nreturn 2 * x if won else None", first)


def finds(body: str, first: str = "") -> str:
    """Answers `SECRETIVE` rightly if the body's `seen`, an iterable of texts, holds the mark and what follows it."""
    tail = "return next((t[at:at + 23] for t in seen if (at := t.find(MARK)) >= 0), 'nothing')"
    head = "if x == 2: return None"
    return double(
        f"{head}\n{textwrap.dedent(body).strip()}\n{tail}", f"MARK = 'SEC' + 'RET-'\n{textwrap.dedent(first)}"
    )
