"""Dafny examples from files, in the layouts that data sets are published in. Decides no split, judges no program.

    load(path)                  recognizes the set by its layout
    load_dafny_bench            ground_truth/NAME.dfy and hints_removed/NAME_no_hints.dfy, or test.json
    load_humaneval_dafny        NNN-name.dfy with marker comments
    load_mbpp_dfy               MBPP-DFY-153 and MBPP-DFY-50: src/task_id_N.dfy, and JSON objects of programs by id
    load_clover_bench           textbook_algo/NAME/NAME_strong.dfy; its wrong variants: rlvr_exp.corpora.dafny.rows
    load_jsonl                  a program or a DafnyExample a row: example_rows.py
    load_programs               any .dfy files

`survey` also lists the programs without an example, with reasons: an unreadable program is expected in these sets.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.dafny.example import DafnyExample
from rlvr_exp.tasks.dafny.layouts import LAYOUTS, DataSetLayout
from rlvr_exp.tasks.dafny.program import Program, examples
from rlvr_exp.tasks.dafny.syntax import Unreadable

NO_TARGET, UNREADABLE = "no method or lemma with a body", "cannot be read"


@dataclass
class Survey:
    """The content of a set."""

    set: str
    """The layout's name."""
    examples: list[DafnyExample] = field(default_factory=list)
    programs: list[Program] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """Programs without an example, by id, each with the reason."""


def load(path: Path | str) -> list[DafnyExample]:
    """Every example at or below a path, whatever the set.

    Raises:
        InputError: nothing is there, or a file does not fit its layout; with file, key and remedy.
    """
    return survey(path).examples


def survey(path: Path | str) -> Survey:
    """As `load`, with the programs left out."""
    path = Path(path)
    if not path.exists():
        raise InputError(
            InputProblem(str(path), "no such file or folder", remedy="point data.path at a Dafny data set")
        )
    for layout in LAYOUTS.values():
        files = layout.files(path)
        if files:
            return _read(layout, path, files)
    allowed = "DafnyBench, HumanEval-Dafny, MBPP-DFY, CloverBench, .dfy files or .jsonl rows"
    raise InputError(InputProblem(str(path), "no Dafny programs here", allowed=allowed))


def load_dafny_bench(path: Path | str) -> list[DafnyExample]:
    """DafnyBench. Raises InputError."""
    return _only("dafnybench", Path(path))


def load_humaneval_dafny(path: Path | str) -> list[DafnyExample]:
    """HumanEval-Dafny. Raises InputError."""
    return _only("humaneval_dafny", Path(path))


def load_mbpp_dfy(path: Path | str) -> list[DafnyExample]:
    """MBPP-DFY. Raises InputError."""
    return _only("mbpp_dfy", Path(path))


def load_clover_bench(path: Path | str) -> list[DafnyExample]:
    """CloverBench, its right programs. Raises InputError."""
    return _only("clover_bench", Path(path))


def load_jsonl(path: Path | str) -> list[DafnyExample]:
    """Rows of programs or of examples. Raises InputError."""
    return _only("rows", Path(path))


def load_programs(path: Path | str) -> list[DafnyExample]:
    """Any file or folder of .dfy. Raises InputError."""
    return _only("programs", Path(path))


def _only(name: str, path: Path) -> list[DafnyExample]:
    files = LAYOUTS[name].files(path) if path.exists() else []
    if not files:
        raise InputError(InputProblem(str(path), f"nothing in the layout of {name}", remedy="see docs/dafny_data.md"))
    return _read(LAYOUTS[name], path, files).examples


def _read(layout: DataSetLayout, path: Path, files: list[Path]) -> Survey:
    found = Survey(layout.name)
    root = path if path.is_dir() else path.parent
    for file in files:
        source = file.relative_to(root).as_posix()
        for item in layout.read(file, source):
            _take(found, replace(item, family=item.family or layout.name))
    if not found.programs and not found.examples:
        got = f"{len(files)} files in the layout of {layout.name}"
        raise InputError(InputProblem(str(path), "no Dafny programs here", got=got))
    _refuse_clashes(path, found)
    return found


def _take(found: Survey, item: Program | DafnyExample) -> None:
    if isinstance(item, DafnyExample):
        found.examples.append(item)
        return
    found.programs.append(item)
    try:
        own = examples(item)
    except Unreadable as fault:
        found.left_out[item.id] = f"{UNREADABLE}: {fault}"
        return
    found.examples += own
    if not own:
        found.left_out[item.id] = NO_TARGET


def _refuse_clashes(path: Path, found: Survey) -> None:
    """Refuse duplicate ids: later steps could not distinguish such tasks."""
    counts = Counter(one.id for one in found.examples)
    clashes = [name for name, count in counts.items() if count > 1]
    if clashes:
        remedy = "give each row an id of its own"
        raise InputError(InputProblem(str(path), f"{len(clashes)} ids stand twice", got=clashes[0], remedy=remedy))
