"""The two roles as tasks: the part of an example that a role is given, and the part that it has to write."""

from dataclasses import dataclass
from typing import Literal

from rlvr_exp.tasks.dafny.example import DafnyExample
from rlvr_exp.tasks.dafny.syntax import parse
from rlvr_exp.tasks.dafny.tokens import plain

Role = Literal["writer", "annotator"]
ROLES: tuple[Role, ...] = ("writer", "annotator")


@dataclass(frozen=True)
class RoleExample:
    """An example in one role: the inputs of a task."""

    role: Role
    example: DafnyExample

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
