"""The two tools that apply rules, the package ast_grep_py and the program ast-grep: found once, versions probed."""

import importlib.util
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.sandbox.harnesses.ast_grep.job import find_program

_REMEDY = "pip install 'rlvr_exp[ast-grep]'"
_PROBE_S = 60


@dataclass(frozen=True)
class Tools:
    """`versions`: by name, for cache keys and the manifest."""

    program: str
    """Absolute path."""
    versions: tuple[tuple[str, str], ...]


@cache
def find_tools() -> Tools:
    """Both tools of this installation.

    Raises:
        InputError: one of them is missing or does not start.
    """
    if importlib.util.find_spec("ast_grep_py") is None:
        raise InputError(InputProblem("verifier=ast_grep", "the package ast_grep_py is not installed", remedy=_REMEDY))
    program = find_program()
    if program is None:
        raise InputError(InputProblem("verifier=ast_grep", "the program ast-grep is not installed", remedy=_REMEDY))
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=_PROBE_S, check=True)
    except (OSError, subprocess.SubprocessError) as fault:
        raise InputError(
            InputProblem("verifier=ast_grep", "ast-grep does not start", str(fault), remedy=_REMEDY)
        ) from fault
    names = (("ast-grep-py", version("ast-grep-py")), ("ast-grep", done.stdout.split()[-1]))
    return Tools(program, names)
