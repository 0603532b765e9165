"""One method with its specification, its code and its proof: training data of both roles, and the part of it that each role
is given and writes.

The texts are cuts of one program and concatenate to it byte for byte. `syntax.py` makes the cuts, `annotations.py` defines
annotations.
"""

from dataclasses import dataclass
from typing import Literal

from rlvr_exp.domains.dafny.syntax import parse
from rlvr_exp.domains.dafny.tokens import plain


@dataclass(frozen=True)
class DafnyExample:
    """A target (method, lemma or function by method) inside its program.

    `before + header + spec + annotated_body + after` is the original program.
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
    """The program after the target."""
    family: str = ""
    """The corpus's family or the data set's name; a stratum of splits."""
    source: str = ""
    """Its source: the file, relative to the loaded folder."""
    mutants: tuple[str, ...] = ()
    """Annotated bodies that Dafny refuses, where the data have some."""

    def program(self, body: str | None) -> str:
        """The complete program with that body; None: with a hole, header and specification alone."""
        return f"{self.before}{self.header}{self.spec}{body or ''}{self.after}"

    @property
    def gold(self) -> str:
        """The original program."""
        return self.program(self.annotated_body)


Role = Literal["writer", "annotator"]
ROLES: tuple[Role, ...] = ("writer", "annotator")


@dataclass(frozen=True)
class RoleExample:
    """An example in one role: the inputs of a task."""

    role: Role
    example: DafnyExample

    @property
    def id(self) -> str:
        return f"{self.example.id}/{self.role}"

    @property
    def given(self) -> str:
        """The given body, in its braces; empty for the writer."""
        return plain(self.example.body).strip() if self.role == "annotator" else ""

    @property
    def gold(self) -> str:
        """The wanted body, in its braces."""
        return plain(self.example.body if self.role == "writer" else self.example.annotated_body).strip()

    @property
    def title(self) -> str:
        """The target's kind and name: `method Max`."""
        (one,) = parse(plain(self.example.header))
        return f"{one.kind} {one.name}".rstrip()
