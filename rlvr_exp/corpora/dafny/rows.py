"""DafnyBench, CloverBench's wrong variants and MBPP-DFY's tests, as rows for `+stage=verify verifier=dafny`.

    ground_truth     each ground truth against itself
    hints_removed    each program without its hints, likewise
    pairs            ground truth as the answer to hints_removed
    wrong            CloverBench: wrong variants as answers to the right programs
    tests            MBPP-DFY: programs with their tests as answers

The folder is the data set's, which holds DafnyBench/dataset, CloverBench or MBPP-DFY-153. Only pairs leave out
programs without a version without hints. A row of `tests` passes where the program's specification proves what its tests
assert: then so does every body that is proved against it. Tests that `expect`, or only print, are left out: they would
have to be run, and nothing is run here.

CloverBench's wrong variants are programs that verify and specify too little, each beside the right program:

    C1  the text alone is changed; the program is the right program
    C2  the specification is weaker     C3  specification and text     C6  code and specification

Each verifies against its own specification; as an answer to the right program only C1 may pass. Rows of `wrong` also
have `weakened`: whether the variant's specification differs from the right program's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.corpora.row_files import write_rows
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.dafny.layouts import read_text
from rlvr_exp.tasks.dafny.split import qualified
from rlvr_exp.tasks.dafny.syntax import Clause, Tokens, parse
from rlvr_exp.tasks.dafny.tokens import plain, tokens

_FILES = {"C1": "{}_strong.dfy", "C2": "{}_C1.dfy", "C3": "{}_C1.dfy", "C6": "{}.dfy"}
"""CloverBench's file of a variant, by its class."""


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write the rows."""
    options = config.prepare
    output = Path(options.output or context.directory / "rows.jsonl")
    count = write_rows(output, rows(Path(options.path), options.variant))
    return f"{count} rows: {output}", {"rows": count}


def rows(folder: Path, variant: str) -> Iterator[dict[str, str | bool]]:
    """Rows {"id", "program", "candidate"}, in the order of their names.

    Raises:
        InputError: no data set there.
    """
    if variant == "wrong":
        yield from _wrong(folder)
        return
    if variant == "tests":
        yield from _tests(folder)
        return
    dataset = folder / "DafnyBench" / "dataset"
    name = "hints_removed" if variant == "hints_removed" else "ground_truth"
    found = sorted((dataset / name).glob("*.dfy"))
    if not found:
        raise InputError(InputProblem(str(dataset / name), "no .dfy files", remedy="give the folder of DafnyBench"))
    for path in found:
        given = dataset / "hints_removed" / f"{path.stem}_no_hints.dfy" if variant == "pairs" else path
        if given.exists():
            yield {"id": path.stem, "program": read_text(given), "candidate": read_text(path)}


def _wrong(folder: Path) -> Iterator[dict[str, str | bool]]:
    for one in variants(folder):
        name = f"{one.kind}/{one.name}"
        yield {"id": name, "program": one.given, "candidate": one.text, "weakened": one.weakened}


def _tests(folder: Path) -> Iterator[dict[str, str | bool]]:
    found = sorted(folder.glob("MBPP-DFY-*/test/*.dfy"))
    if not found:
        raise InputError(InputProblem(str(folder), "no MBPP-DFY-*/test/*.dfy", remedy="give the folder of MBPP-DFY"))
    for path in found:
        text, given = read_text(path), path.parent.parent / "src" / path.name
        if given.exists() and _only_asserts(text, program := read_text(given)):
            yield {"id": f"{path.parent.parent.name}/{path.stem}", "program": program, "candidate": text}


def _only_asserts(tests: str, program: str) -> bool:
    """Whether tests assert anything beyond the program's own asserts, and expect nothing."""
    words, before = tokens(plain(tests)), tokens(plain(program))
    return "expect" not in words and words.count("assert") > before.count("assert")


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
    return list(_variants(root))


def _variants(root: Path) -> Iterator[Variant]:
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
