"""`prepare=dafny_rows`: published sets of Dafny programs as rows for `+stage=verify verifier=dafny`, by `prepare.variant`:

    ground_truth     any set: each program against itself
    hints_removed    DafnyBench: each program without its hints, likewise
    pairs            DafnyBench: ground truth as the answer to hints_removed; vericoding: solutions as answers to tasks
    wrong            CloverBench: wrong variants as answers to the right programs
    tests            MBPP-DFY: programs with their tests as answers

The folder is that of the data set: it holds DafnyBench/dataset, CloverBench, MBPP-DFY-153 or jsonl/dafny_tasks.jsonl. Only pairs
leave out programs without a version without hints. If that version is torn (`torn.py`), the given program is the ground
truth with erased bodies. A row of `tests` passes if the program's specification proves what its tests
assert: then so does every body that is proved against it. Tests that `expect`, or only print, are left out: they would
have to be run, and nothing is run here.

CloverBench's wrong variants are programs that verify and specify too little, each beside the right program:

    C1  the text alone is changed; the program is the right program
    C2  the specification is weaker     C3  specification and text     C6  code and specification

Each verifies against its own specification; as an answer to the right program only C1 may pass. Rows of `wrong` also
have `weakened`: whether the variant's specification differs from the right program's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import write_json_lines
from rlvr_exp.domains.dafny.load import NO_HINTS, read_text, survey
from rlvr_exp.domains.dafny.syntax import Clause, Tokens, parse, qualified
from rlvr_exp.domains.dafny.tokens import plain, tokens
from rlvr_exp.records.context import RunContext

_FILES = {"C1": "{}_strong.dfy", "C2": "{}_C1.dfy", "C3": "{}_C1.dfy", "C6": "{}.dfy"}
"""CloverBench's file of a variant, by its class."""


def make_rows(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write the rows."""
    options = config.prepare
    output = Path(options.output or context.directory / "rows.jsonl")
    count = write_json_lines(output, rows(Path(options.path), options.variant))
    return f"{count} rows: {output}", {"rows": count}


def rows(folder: Path, variant: str) -> Iterator[Mapping[str, str | bool]]:
    """Rows {"id", "program", "candidate"}, in the order of their names.

    Raises:
        InputError: the folder has no data set, or a file of it is missing.
    """
    if variant == "wrong":
        for one in variants(folder):
            name = f"{one.kind}/{one.name}"
            yield {"id": name, "program": one.given, "candidate": one.text, "weakened": one.weakened}
        return
    if variant == "tests":
        for path in _files(folder, "MBPP-DFY-*/test/*.dfy", "MBPP-DFY"):
            text, source = read_text(path), path.parent.parent / "src" / path.name
            if not source.exists():
                continue
            words, program = tokens(plain(text)), read_text(source)
            # Tests have to assert something beyond the program's own asserts, and to expect nothing.
            if "expect" not in words and words.count("assert") > tokens(plain(program)).count("assert"):
                yield {"id": f"{path.parent.parent.name}/{path.stem}", "program": program, "candidate": text}
        return
    if variant == "hints_removed":
        for path in _files(folder / "DafnyBench" / "dataset" / variant, "*.dfy", "DafnyBench"):
            yield {"id": path.stem.removesuffix(NO_HINTS), "program": read_text(path), "candidate": read_text(path)}
        return
    found = survey(folder, "program")
    if variant == "ground_truth":
        yield from (
            {"id": program.id, "program": program.text, "candidate": program.text} for program in found.programs
        )
        return
    whole = (one for one in found.examples if one.whole and one.gold)
    yield from ({"id": one.id, "program": one.body, "candidate": one.gold} for one in whole)


def _files(folder: Path, pattern: str, name: str) -> list[Path]:
    found = sorted(folder.glob(pattern))
    if not found:
        raise InputError(InputProblem(str(folder), f"no {pattern} files", remedy=f"give the folder of {name}"))
    return found


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


def _specification(text: str) -> list[tuple[str, Tokens, tuple[Clause, ...], Tokens | None]]:
    """Every declaration without its code: head and clauses, and of functions the body too."""
    every = qualified(parse(plain(text)))
    return [(name, one.head, one.clauses, one.body if one.kind == "function" else None) for name, one in every]


def variants(path: Path | str) -> list[Variant]:
    """All variants of CloverBench, by class and name.

    Raises:
        InputError: no CloverBench with its adversarial_incorrect folder there, or a file of it is missing.
    """
    places = (Path(path), Path(path) / "CloverBench")
    root = next((one for one in places if (one / "adversarial_incorrect").is_dir()), None)
    if root is None:
        raise InputError(InputProblem(str(path), "no adversarial_incorrect folder", remedy="give CloverBench's folder"))
    found = []
    for kind, pattern in _FILES.items():
        for folder in sorted((root / "adversarial_incorrect" / kind).glob("*/")):
            name = folder.name
            files = root / "textbook_algo" / name / f"{name}_strong.dfy", folder / pattern.format(name)
            for file in files:
                if not file.is_file():
                    raise InputError(InputProblem(str(file), "missing", remedy="fetch the data set again"))
            found.append(Variant(name, kind, *map(read_text, files)))
    return found
