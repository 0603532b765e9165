"""Problems that Dafny judges, and the examples that they are made from: one method with its specification, code and proof,
or a whole program.

The texts of a method's example are cuts of one program and concatenate to it byte for byte. `syntax.py` makes the cuts,
`annotations.py` defines annotations. A `RoleExample` is what one role is given and writes.
"""

import re
from dataclasses import dataclass
from typing import Literal, get_args

from rlvr_exp.domains.dafny.syntax import Unreadable, parse
from rlvr_exp.domains.dafny.tokens import plain, tokens
from rlvr_exp.tasks.formats.base import Format
from rlvr_exp.tasks.formats.fields import Fault, Fields, Limits, limits_of, optional_text, text_of, wrong

Role = Literal["writer", "annotator"]
ROLES: tuple[Role, ...] = ("writer", "annotator")
Protect = Literal["specification", "program"]
"""The protected part of a given Dafny program: its specification, with free code; or everything but annotations."""

PLACE = re.compile(r"(.*?\b)line (\d+): (.*)")
"""A line of a verdict's log that points to a line of the judged program: the words before, the number, the message."""


Strength = Literal["strict", "refresh", "default"]
"""Option sets of Dafny for verdicts, the strictest first (`rlvr_exp/docs/dafny.md`)."""
STRENGTHS: tuple[Strength, ...] = get_args(Strength)


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
    strength: Strength | None = None
    """The strictest option set of Dafny that the reference program passes; None: not known, judged as `refresh`."""


class Dafny(Format):
    name = "dafny"
    problem = DafnyProblem
    keys = ("program",)
    candidate_key = "candidate"
    answer = "program"
    languages = ("dafny", "dfy")
    fixed_answers = "rlvr_exp.domains.dafny.universal:fixed_answers"

    def read_problem(self, fields: Fields) -> DafnyProblem:
        keep, strength = optional_text(fields, "keep"), fields.get("strength")
        if strength is not None and strength not in STRENGTHS:
            raise Fault(wrong("strength", fields, ", ".join(STRENGTHS)))
        return DafnyProblem(text_of(fields, "program"), limits_of(fields), keep=keep, strength=strength)

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

    def explained(self, feedback: str, text: str) -> str:
        """The feedback with the lines of the program that it points to."""
        source, found = plain(text).split("\n"), []
        for line in feedback.splitlines():
            place = PLACE.fullmatch(line)
            known = place is not None and int(place[2]) <= len(source)
            found += [line, f"    {source[int(place[2]) - 1].strip()}"] if place and known else [line]
        return "\n".join(found)

    def tokens(self, text: str) -> list[str]:
        return tokens(text)


@dataclass(frozen=True)
class DafnyExample:
    """A target (method, lemma or function by method) inside its program.

    `before + header + spec + annotated_body + after` is the original program. In an example that is a whole program, only the
    two bodies have texts: `body` is the given program, and `annotated_body` is the reference program.
    """

    id: str
    header: str
    """The signature with its attributes, up to the first clause or the body."""
    spec: str
    """The clauses: requires, ensures, modifies, reads, decreases; with all blanks up to the body's opening brace."""
    body: str
    """The body without annotations, in its braces; comments stay in their place."""
    annotated_body: str
    """The body in its proved form, in its braces."""
    before: str = ""
    """The program before the target: datatypes, functions, lemmas, other methods, the braces of its module or class."""
    after: str = ""
    family: str = ""
    """The corpus's family or the data set's name; a stratum of splits."""
    source: str = ""
    """Its file, relative to the loaded folder."""
    mutants: tuple[str, ...] = ()
    """Annotated bodies that Dafny refuses, if the data have any."""
    whole: Role | None = None
    """The role that completes the whole program. The reference program is empty if there is none. None: one method."""
    groups: tuple[str, ...] = ()
    """Names of groups: examples with a group in common stay in one split. A name also ties the names that continue it
    with `_`."""
    strength: Strength | None = None
    """As in `DafnyProblem`."""

    def program(self, body: str | None) -> str:
        """The complete program with that body; None: with a hole, header and specification alone."""
        return f"{self.before}{self.header}{self.spec}{body or ''}{self.after}"

    @property
    def gold(self) -> str:
        """The original program."""
        return self.program(self.annotated_body)

    @property
    def content(self) -> str:
        """The original program; the given one if there is no reference program."""
        return self.gold or self.body

    @property
    def title(self) -> str:
        """The kind and name of a method: `method Max`."""
        (one,) = parse(plain(self.header))
        return f"{one.kind} {one.name}".rstrip()


@dataclass(frozen=True)
class RoleExample:
    """An example in one role: the inputs of a task."""

    role: Role
    example: DafnyExample

    @property
    def id(self) -> str:
        return f"{self.example.id}/{self.role}"

    @property
    def problem(self) -> DafnyProblem:
        """The problem that an answer is judged by."""
        one = self.example
        given = one.body if one.whole else one.program(None if self.role == "writer" else one.body)
        protect: Protect = "specification" if self.role == "writer" else "program"
        return DafnyProblem(given, protect=protect, strength=one.strength)

    @property
    def given(self) -> str:
        """The given body, in its braces, or the given program; empty for the writer of a body."""
        return plain(self.example.body).strip() if self.role == "annotator" or self.example.whole else ""

    @property
    def gold(self) -> str:
        """The wanted body, in its braces, or the wanted program, which may be empty."""
        is_body = self.role == "writer" and not self.example.whole
        return plain(self.example.body if is_body else self.example.annotated_body).strip()
