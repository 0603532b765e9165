"""The two roles as tasks: what a role is shown of an example and what it is to answer."""

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
        """The body that is shown, in its braces; the writer sees none."""
        return plain(self.example.body).strip() if self.role == "annotator" else ""

    @property
    def gold(self) -> str:
        """The body that is wanted, in its braces."""
        return plain(self.example.body if self.role == "writer" else self.example.annotated_body).strip()

    @property
    def title(self) -> str:
        """The target's kind and name: `method Max`."""
        (one,) = parse(plain(self.example.header))
        return f"{one.kind} {one.name}".rstrip()
