"""One method with its specification, its code and its proof: what both roles learn from.

The texts are cuts of one program and concatenate to it byte for byte; nothing here reads Dafny. Where they are cut:
`split.py`. What an annotation is: `erase.py`.
"""

from dataclasses import dataclass


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
    """The body without annotations, in its braces; comments stay where they were."""
    annotated_body: str
    """The body as it is proved, in its braces."""
    before: str = ""
    """The program before the target: datatypes, functions, lemmas, other methods, the braces of its module or class."""
    after: str = ""
    """The program after the target."""
    family: str = ""
    """The generator's family or the data set's name; a stratum of splits."""
    source: str = ""
    """Where it was read: the file, relative to the folder that was loaded."""
    mutants: tuple[str, ...] = ()
    """Annotated bodies that Dafny refuses, where the data give some."""

    def program(self, body: str | None) -> str:
        """The whole program with that body; None: with a hole, header and specification alone."""
        return f"{self.before}{self.header}{self.spec}{body or ''}{self.after}"

    @property
    def gold(self) -> str:
        """The original program."""
        return self.program(self.annotated_body)
