"""CloverBench's wrong variants: programs that verify and specify too little, each with the right program of which it is
a variant.

    C1  the text alone is changed; the program is the right program
    C2  the specification is weaker     C3  specification and text     C6  code and specification

Each verifies against its own specification; as an answer to the right program only C1 may pass.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.dafny.layouts import read_text
from rlvr_exp.tasks.dafny.split import qualified
from rlvr_exp.tasks.dafny.syntax import Clause, Tokens, parse
from rlvr_exp.tasks.dafny.tokens import plain

_FILES = {"C1": "{}_strong.dfy", "C2": "{}_C1.dfy", "C3": "{}_C1.dfy", "C6": "{}.dfy"}


@dataclass(frozen=True)
class Variant:
    """One wrong program."""

    name: str
    kind: str
    """C1, C2, C3 or C6."""
    given: str
    """The right program."""
    text: str

    @property
    def weakened(self) -> bool:
        """Whether its specification differs from the right program's. Raises Unreadable."""
        return _specification(self.given) != _specification(self.text)


def variants(path: Path | str) -> list[Variant]:
    """All variants of the set, by class and name.

    Raises:
        InputError: no CloverBench with its adversarial_incorrect folder there, or a file of it is missing.
    """
    places = (Path(path), Path(path) / "CloverBench")
    root = next((one for one in places if (one / "adversarial_incorrect").is_dir()), None)
    if root is None:
        raise InputError(InputProblem(str(path), "no adversarial_incorrect folder", remedy="give CloverBench's folder"))
    return list(_found(root))


def _found(root: Path) -> Iterator[Variant]:
    for kind, pattern in _FILES.items():
        for folder in sorted((root / "adversarial_incorrect" / kind).glob("*/")):
            name = folder.name
            given, text = root / "textbook_algo" / name / f"{name}_strong.dfy", folder / pattern.format(name)
            missing = next((file for file in (given, text) if not file.is_file()), None)
            if missing is not None:
                raise InputError(InputProblem(str(missing), "missing", remedy="fetch the data set again"))
            yield Variant(name, kind, read_text(given), read_text(text))


def _specification(text: str) -> list[tuple[str, Tokens, tuple[Clause, ...], Tokens | None]]:
    """Every declaration without its code: head and clauses, and of functions the body too."""
    every = qualified(parse(plain(text)))
    return [(name, one.head, one.clauses, one.body if one.kind == "function" else None) for name, one in every]
