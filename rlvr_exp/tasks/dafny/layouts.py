"""Layouts of published sets of Dafny programs on disk: which files belong to them, and what each file holds.

Knows names and keys, nothing of Dafny but the marker comments of HumanEval-Dafny. Tests, templates and wrong variants
next to the programs are not training data and are not read.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.dafny import example_rows
from rlvr_exp.tasks.dafny.example import DafnyExample
from rlvr_exp.tasks.dafny.program import Program

TRUTH, STRIPPED, NO_HINTS = "ground_truth", "hints_removed", "_no_hints"
_MARKERS = ("// impl-start", "// pure-end", "// post-conditions-start")
Found = Iterator[Program | DafnyExample]


@dataclass(frozen=True)
class DataSetLayout:
    """The layout of one set."""

    name: str
    files: Callable[[Path], list[Path]]
    """The set's files at or below a path; none where the path holds another set."""
    read: Callable[[Path, str], Found]
    """The content of a file; its second argument is the file's name below the loaded folder."""


def read_text(file: Path) -> str:
    """A file's text, with its line ends and byte-order mark. Raises InputError where it is not UTF-8."""
    try:
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as fault:
        got = f"byte {fault.start + 1} of the file"
        raise InputError(InputProblem(str(file), "not UTF-8", got=got, remedy="save it as UTF-8")) from fault


def _dafny_bench(path: Path) -> list[Path]:
    folders = [path / below / TRUTH for below in ("DafnyBench/dataset", "dataset", ".")]
    truth = next((folder for folder in folders if folder.is_dir()), path if path.name == TRUTH else None)
    if truth is not None:
        return sorted(truth.glob("*.dfy"))
    lists = [path, path / "test.json", path / "DafnyBench" / "test.json"]
    return [file for file in lists if file.name == "test.json" and file.is_file()][:1]


def _read_bench(file: Path, source: str) -> Found:
    if file.suffix == ".json":
        yield from example_rows.bench_programs(read_text(file), file, source)
        return
    partner = file.parent.parent / STRIPPED / f"{file.stem}{NO_HINTS}.dfy"
    yield Program(file.stem, read_text(file), "", source, read_text(partner) if partner.is_file() else "")


def _clover(path: Path) -> list[Path]:
    folders = (path / "CloverBench" / "textbook_algo", path / "textbook_algo", path)
    inside = next((one for one in folders if one.is_dir() and one.name == "textbook_algo"), None)
    return sorted(inside.glob("*/*_strong.dfy")) if inside else []


def _read_clover(file: Path, source: str) -> Found:
    yield Program(file.stem.removesuffix("_strong"), read_text(file), "", source)


def _mbpp(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.name.startswith("mbpp-") and path.suffix == ".json" else []
    roots = [path] if path.name.startswith("MBPP-") else sorted(path.glob("MBPP-*"))
    return [file for root in roots for file in (*sorted(root.glob("src/*.dfy")), *sorted(root.glob("*.json")))]


def _read_mbpp(file: Path, source: str) -> Found:
    if file.suffix == ".json":
        yield from example_rows.programs_by_id(read_text(file), file, source)
    else:
        yield Program(f"{file.parent.parent.name}/{file.stem}", read_text(file), "", source)


def _human_eval(path: Path) -> list[Path]:
    files = [path] if path.suffix == ".dfy" else sorted(path.glob("*.dfy")) if path.is_dir() else []
    marked = any(marker in read_text(file) for file in files for marker in _MARKERS)
    return files if marked else []


def _read_program(file: Path, source: str) -> Found:
    yield Program(source.removesuffix(".dfy"), read_text(file), "", source)


def _rows(path: Path) -> list[Path]:
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return [file for file in files if file.name.endswith(example_rows.SUFFIXES) and not _is_hidden(file, path)]


def _plain(path: Path) -> list[Path]:
    files = [path] if path.suffix == ".dfy" and path.is_file() else sorted(path.rglob("*.dfy")) if path.is_dir() else []
    return [file for file in files if not _is_hidden(file, path)]


def _is_hidden(file: Path, root: Path) -> bool:
    return file != root and any(part.startswith(".") for part in file.relative_to(root).parts)


LAYOUTS = {
    layout.name: layout
    for layout in (
        DataSetLayout("dafnybench", _dafny_bench, _read_bench),
        DataSetLayout("clover_bench", _clover, _read_clover),
        DataSetLayout("mbpp_dfy", _mbpp, _read_mbpp),
        DataSetLayout("rows", _rows, example_rows.items),
        DataSetLayout("humaneval_dafny", _human_eval, _read_program),
        DataSetLayout("programs", _plain, _read_program),
    )
}
"""All layouts, in the order in which they are tried."""
