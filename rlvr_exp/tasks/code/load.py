"""The set in a path, and its records. A set is recognized by the keys of its rows or by its folders, never by its name.

Where several files of a set are in one folder, the file that the set's reader names first is read; `path` may name
another. Of a user's own rows all files are read. All faults are reported at once, each with file, line and key.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from types import ModuleType

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.code.files import ROWS, Row, first_row, read_rows
from rlvr_exp.tasks.code.record import CodeRecord
from rlvr_exp.tasks.code.sets import (
    canitedit,
    edit_eval,
    human_eval,
    human_eval_plus,
    humanevalpack,
    mbpp,
    mbpp_plus,
    own_rows,
    quixbugs,
)
from rlvr_exp.tasks.tables import ARROW, is_table

BY_ROWS: tuple[ModuleType, ...] = (
    human_eval,
    human_eval_plus,
    mbpp,
    mbpp_plus,
    canitedit,
    humanevalpack,
    edit_eval,
)
SETS = (*(reader.NAME for reader in BY_ROWS), quixbugs.NAME, own_rows.NAME)
EVALUATION_ONLY = {canitedit.NAME: "its licence forbids its use as training data"}
"""Sets that no policy may be trained on, with the reason."""
AUTO = "auto"
SHOWN = 20
"""Faults printed before the rest is only counted."""
DEPTH = 2
"""How far below the path files are searched for."""


def load(path: Path, wanted: str = AUTO) -> list[CodeRecord]:
    """Every task of the set at `path`.

    Raises:
        InputError: there is no set, there are several, or any file, row or key is wrong.
    """
    reader, files = _choose(path, wanted)
    if reader is quixbugs:
        return _whole(quixbugs.read_folder(path), path)
    return _whole(_read(reader, files), path if len(files) > 1 else files[0])


def evaluation_only(path: Path, wanted: str = AUTO) -> str:
    """Why no policy may be trained on the set at `path`, with its name; empty where one may. Raises InputError."""
    name = _choose(path, wanted)[0].NAME
    return f"{name}: {EVALUATION_ONLY[name]}" if name in EVALUATION_ONLY else ""


def sets_at(path: Path) -> dict[str, list[Path]]:
    """The files of each set at `path`, by its name; files that cannot be read are passed over."""
    if _is_quixbugs(path):
        return {quixbugs.NAME: [path]}
    return {reader.NAME: files for reader, files in _found(path, AUTO)[0].items()}


def _is_quixbugs(path: Path) -> bool:
    return path.is_dir() and (path / quixbugs.CORRECT).is_dir()


def _choose(path: Path, wanted: str) -> tuple[ModuleType, list[Path]]:
    """The reader of the set at a path, and the files that it reads."""
    if wanted in (AUTO, quixbugs.NAME) and _is_quixbugs(path):
        return quixbugs, [path]
    found, faults = _found(path, wanted)
    if len(found) != 1:
        raise InputError(_unclear(path, wanted, found), *faults[:SHOWN])
    ((reader, files),) = found.items()
    if reader is own_rows:
        problems = [first_row(file) for file in files if own_rows.of_problems(first_row(file).values)]
        if faults or problems:
            raise InputError(*map(_of_problems, problems), *faults[:SHOWN])
        return reader, files
    named = sorted(files, key=lambda file: reader.FILES.index(file.name) if file.name in reader.FILES else 99)
    if len(files) > 1 and named[0].name not in reader.FILES:
        names = ", ".join(file.name for file in files)
        raise InputError(InputProblem("data.path", f"several files of {reader.NAME}", names, remedy="name one of them"))
    return reader, named[:1]


def _found(path: Path, wanted: str) -> tuple[dict[ModuleType, list[Path]], list[InputProblem]]:
    """The files of each set, and the faults of other files."""
    found: dict[ModuleType, list[Path]] = {}
    faults: list[InputProblem] = []
    for file in _files(path):
        try:
            row = first_row(file)
            reader = _reader(frozenset(row.values))
        except InputError as fault:  # There may be other files next to a set; reported where no set is found.
            faults += fault.problems
            continue
        if reader is not None and wanted in (AUTO, reader.NAME):
            found.setdefault(reader, []).append(file)
        elif near := _nearly(row, wanted):
            faults.append(near)
    return found, faults


def _unclear(path: Path, wanted: str, found: dict[ModuleType, list[Path]]) -> InputProblem:
    if found:
        names = ", ".join(sorted(reader.NAME for reader in found))
        return InputProblem("data.path", "several sets are here", names, remedy="name its folder or file, or data.set")
    what = "no code set is here" if wanted == AUTO else f"no file of {wanted} is here"
    remedy = "a set's folder or file in its original format, or rows of your own: prompt, and tests or cases"
    return InputProblem("data.path", what, str(path), ", ".join(SETS), remedy=remedy)


def _of_problems(row: Row) -> InputProblem:
    what, allowed = "a row of data=problems: it has a text and no prompt", "prompt, and tests or cases"
    remedy = "data=problems for stages of reasoning and +stage=adversarial; else call the text prompt"
    return InputProblem(row.where, what, ", ".join(row.values), allowed, "", remedy)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    levels = ["/".join("*" * depth) for depth in range(1, DEPTH + 1)]
    inside = sorted(file for level in levels for file in path.glob(level) if file.name.endswith(ROWS))
    files = [file for file in inside if file.is_file() and not file.name.startswith(".")]
    return [file for file in files if file.suffix != ARROW or is_table(file)]


def _reader(keys: frozenset[str]) -> ModuleType | None:
    """The set whose keys a row has; of several, the set with the most keys; of none, a user's own rows."""
    fitting = [reader for reader in BY_ROWS if keys >= reader.KEYS and keys.isdisjoint(reader.NOT)]
    own = None if keys.isdisjoint(own_rows.ANY) else own_rows
    return max(fitting, key=lambda reader: len(reader.KEYS), default=own)


def _nearly(row: Row, wanted: str) -> InputProblem | None:
    """What a row lacks of the set that it is nearest to; None where it is near none."""
    keys = row.values.keys()
    sets = [reader for reader in BY_ROWS if wanted in (AUTO, reader.NAME)]
    near = max(sets, key=lambda reader: len(keys & reader.KEYS) / len(reader.KEYS), default=None)
    if near is not None and 2 * len(keys & near.KEYS) >= len(near.KEYS):
        found, lacking = sorted(keys & near.NOT), sorted(near.KEYS - keys)
        differs = f"lacks {', '.join(lacking)}" if lacking else f"has {', '.join(found)} too"
        return InputProblem(row.where, f"nearly a row of {near.NAME}: it {differs}", ", ".join(keys))
    if "prompt" in keys and wanted in (AUTO, own_rows.NAME):
        return InputProblem(row.where, "nearly a row of your own: it lacks tests or cases", ", ".join(keys))
    return None


def _read(reader: ModuleType, files: Sequence[Path]) -> Iterator[CodeRecord]:
    faults: list[InputProblem] = []
    for row in chain.from_iterable(map(read_rows, files)):
        try:
            yield reader.read(row)
        except InputError as fault:
            faults += fault.problems
        except (SyntaxError, ValueError, RecursionError) as fault:
            faults.append(InputProblem(row.where, "its code cannot be read as Python", got=str(fault)))
    if faults:
        more = [InputProblem("data.path", f"{len(faults) - SHOWN} further faults")] if len(faults) > SHOWN else []
        raise InputError(*faults[:SHOWN], *more)


def _whole(records: Iterator[CodeRecord], path: Path) -> list[CodeRecord]:
    found = list(records)
    twice = [name for name, count in Counter(record.id for record in found).items() if count > 1]
    if twice or not found:
        what = "ids that stand twice" if twice else "holds no task"
        raise InputError(InputProblem(str(path), what, got=", ".join(twice[:SHOWN])))
    return found
