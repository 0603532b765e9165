"""DafnyBench, CloverBench's wrong variants and MBPP-DFY's tests, as rows for `+stage=verify verifier=dafny`.

    ground_truth     each ground truth against itself
    hints_removed    each program without its hints, likewise
    pairs            ground truth as the answer to hints_removed
    wrong            CloverBench: wrong variants as answers
    tests            MBPP-DFY: programs with their tests as answers

The folder is the data set's, which holds DafnyBench/dataset, CloverBench or MBPP-DFY-153. Only pairs leave out
programs without a version without hints. Rows of `wrong` also have `weakened`: whether the variant's specification
differs from the given specification. A row of `tests` passes where the program's specification proves what its tests
assert: then so does every body that is proved against it. Tests that `expect`, or only print, are left out: they would
have to be run, and nothing is run here.
"""

from collections.abc import Iterator
from pathlib import Path

from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.corpora.dafny.clover import variants
from rlvr_exp.corpora.row_files import write_rows
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.dafny.tokens import plain, tokens


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
            yield {"id": path.stem, "program": _text(given), "candidate": _text(path)}


def _wrong(folder: Path) -> Iterator[dict[str, str | bool]]:
    for one in variants(folder):
        name = f"{one.kind}/{one.name}"
        yield {"id": name, "program": one.given, "candidate": one.text, "weakened": one.weakened}


def _tests(folder: Path) -> Iterator[dict[str, str | bool]]:
    found = sorted(folder.glob("MBPP-DFY-*/test/*.dfy"))
    if not found:
        raise InputError(InputProblem(str(folder), "no MBPP-DFY-*/test/*.dfy", remedy="give the folder of MBPP-DFY"))
    for path in found:
        text, given = _text(path), path.parent.parent / "src" / path.name
        if given.exists() and _only_asserts(text, program := _text(given)):
            yield {"id": f"{path.parent.parent.name}/{path.stem}", "program": program, "candidate": text}


def _only_asserts(tests: str, program: str) -> bool:
    """Whether tests assert anything beyond the program's own asserts, and expect nothing."""
    words, before = tokens(plain(tests)), tokens(plain(program))
    return "expect" not in words and words.count("assert") > before.count("assert")


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write the rows."""
    options = config.prepare
    output = Path(options.output or context.directory / "rows.jsonl")
    count = write_rows(output, rows(Path(options.path), options.variant))
    return f"{count} rows: {output}", {"rows": count}
