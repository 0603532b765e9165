"""Dafny programs to complete, judged by Dafny."""

from dataclasses import dataclass
from typing import Literal

from rlvr_exp.domains.dafny.syntax import Unreadable, parse
from rlvr_exp.domains.dafny.tokens import plain, tokens
from rlvr_exp.tasks.formats.base import Format
from rlvr_exp.tasks.formats.fields import Fields, Limits, limits_of, optional_text, text_of

Protect = Literal["specification", "program"]
"""The protected part of a given Dafny program: its specification, with free code; or everything but annotations."""


@dataclass(frozen=True)
class DafnyProblem:
    """A Dafny program to complete: the candidate is the complete program, the given specification is protected."""

    program: str
    limits: Limits = Limits()
    protect: Protect | None = None
    """The part that the candidate must keep; None: by the verifier's option."""
    keep: str | None = None
    """The same program with code, all of which the candidate must keep as well: without annotations the two are equal,
    and an empty body stays empty. The specification is that of `program`."""


class Dafny(Format):
    name = "dafny"
    problem = DafnyProblem
    keys = ("program",)
    candidate_key = "candidate"
    answer = "program"
    languages = ("dafny", "dfy")
    fixed_answers = "rlvr_exp.domains.dafny.universal:fixed_answers"

    def read_problem(self, fields: Fields) -> DafnyProblem:
        return DafnyProblem(text_of(fields, "program"), limits_of(fields), keep=optional_text(fields, "keep"))

    def prompt(self, problem: DafnyProblem) -> str:
        whole = (problem.program, "specification as it stands")
        shown, kept = whole if problem.keep is None else (problem.keep, "specification and its code as they stand")
        return (
            f"Complete this Dafny program so that Dafny verifies it. Keep its {kept}.\n\n"
            f"```dafny\n{shown.strip(chr(10))}\n```\n\nAnswer with the whole program in one code block.\n"
        )

    def fault(self, problem: DafnyProblem, text: str) -> str:
        try:
            parse(plain(text))
        except Unreadable as fault:
            return str(fault)
        return ""

    def tokens(self, text: str) -> list[str]:
        return tokens(text)
