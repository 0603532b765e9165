"""The set in a path, and its records. A set is recognized by the keys of its rows or by its folders, never by its name.

If several files of a set are in one folder, the file that the set's reader names first is read; `path` may name
another. If the reader names none, as for a set in parts or a user's own rows, all files are read. All faults are reported
at once, each with file, line and key.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path

from rlvr_exp.core import domains
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.code_records import ANY, OWN_ROWS, CodeRecord, CodeSet, of_problems
from rlvr_exp.tasks.edit_sets import CANITEDIT, CORRECT, EDIT_EVAL, QUIXBUGS, read_quixbugs
from rlvr_exp.tasks.rows import ARROW, ROWS, Row, first_row, is_table, read_rows

EVALUATION_ONLY = {CANITEDIT.name: "its licence forbids its use as training data"}
"""Sets that no policy may be trained on, with the reason."""
AUTO = "auto"
SHOWN = 20
"""Faults printed before the rest is only counted."""
DEPTH = 2
"""How far below the path files are searched for."""


@cache
def by_rows() -> tuple[CodeSet, ...]:
    """The sets that are recognized by the keys of their rows."""
    own = (path for one in domains.domains().values() for path in one.code_sets)
    return (*map(domains.load, own), CANITEDIT, EDIT_EVAL)


def load(path: Path, wanted: str = AUTO) -> list[CodeRecord]:
    """Every task of the set at `path`.

    Raises:
        InputError: there is no set, there are several, or any file, row or key is wrong.
    """
    chosen, files = _choose(path, wanted)
    if chosen is None:
        return _whole(read_quixbugs(path), path)
    return _whole(_read(chosen, files), path if len(files) > 1 else files[0])


def evaluation_only(path: Path, wanted: str = AUTO) -> str:
    """Why no policy may be trained on the set at `path`, with its name; empty if one may. Raises InputError."""
    chosen, _ = _choose(path, wanted)
    if chosen is None or chosen.name not in EVALUATION_ONLY:
        return ""
    return f"{chosen.name}: {EVALUATION_ONLY[chosen.name]}"


def sets_at(path: Path) -> dict[str, list[Path]]:
    """The files of each set at `path`, by its name; files that cannot be read are passed over."""
    if _is_quixbugs(path):
        return {QUIXBUGS: [path]}
    return {one.name: files for one, files in _found(path, AUTO)[0].items()}


def _is_quixbugs(path: Path) -> bool:
    return path.is_dir() and (path / CORRECT).is_dir()


def _choose(path: Path, wanted: str) -> tuple[CodeSet | None, list[Path]]:
    """The set at a path, and the files to read; None for QuixBugs, since it is a folder."""
    if wanted in (AUTO, QUIXBUGS) and _is_quixbugs(path):
        return None, [path]
    found, faults = _found(path, wanted)
    if len(found) != 1:
        raise InputError(_unclear(path, wanted, found), *faults[:SHOWN])
    ((chosen, files),) = found.items()
    if chosen is OWN_ROWS:
        problems = [first_row(file) for file in files if of_problems(first_row(file).values)]
        if faults or problems:
            raise InputError(*map(_of_problems, problems), *faults[:SHOWN])
    if not chosen.files:
        return chosen, files
    named = sorted(files, key=lambda file: chosen.files.index(file.name) if file.name in chosen.files else 99)
    if len(files) > 1 and named[0].name not in chosen.files:
        names = ", ".join(file.name for file in files)
        raise InputError(InputProblem("data.path", f"several files of {chosen.name}", names, remedy="name one of them"))
    return chosen, named[:1]


def _found(path: Path, wanted: str) -> tuple[dict[CodeSet, list[Path]], list[InputProblem]]:
    """The files of each set, and the faults of other files."""
    found: dict[CodeSet, list[Path]] = {}
    faults: list[InputProblem] = []
    for file in _files(path):
        try:
            row = first_row(file)
            fitting = _fitting(frozenset(row.values))
        except InputError as fault:  # There may be other files next to a set; reported where no set is found.
            faults += fault.problems
            continue
        if fitting is not None and wanted in (AUTO, fitting.name):
            found.setdefault(fitting, []).append(file)
        elif near := _nearly(row, wanted):
            faults.append(near)
    return found, faults


def _unclear(path: Path, wanted: str, found: dict[CodeSet, list[Path]]) -> InputProblem:
    if found:
        names = ", ".join(sorted(one.name for one in found))
        return InputProblem("data.path", "several sets are here", names, remedy="name its folder or file, or data.set")
    what = "no code set is here" if wanted == AUTO else f"no file of {wanted} is here"
    known = (*(one.name for one in by_rows()), QUIXBUGS, OWN_ROWS.name)
    remedy = "a set's folder or file in its original format, or rows of your own: prompt, and tests or cases"
    return InputProblem("data.path", what, str(path), ", ".join(known), remedy=remedy)


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


def _fitting(keys: frozenset[str]) -> CodeSet | None:
    """The set whose keys a row has; of several, the set with the most keys; of none, a user's own rows."""
    fitting = [one for one in by_rows() if keys >= one.keys and keys.isdisjoint(one.without)]
    own = None if keys.isdisjoint(ANY) else OWN_ROWS
    return max(fitting, key=lambda one: len(one.keys), default=own)


def _nearly(row: Row, wanted: str) -> InputProblem | None:
    """The keys that a row lacks of its nearest set; None if it is near none."""
    keys = row.values.keys()
    sets = [one for one in by_rows() if wanted in (AUTO, one.name)]
    near = max(sets, key=lambda one: len(keys & one.keys) / len(one.keys), default=None)
    if near is not None and 2 * len(keys & near.keys) >= len(near.keys):
        found, lacking = sorted(keys & near.without), sorted(near.keys - keys)
        differs = f"lacks {', '.join(lacking)}" if lacking else f"has {', '.join(found)} too"
        return InputProblem(row.where, f"nearly a row of {near.name}: it {differs}", ", ".join(keys))
    if "prompt" in keys and wanted in (AUTO, OWN_ROWS.name):
        return InputProblem(row.where, "nearly a row of your own: it lacks tests or cases", ", ".join(keys))
    return None


def _read(chosen: CodeSet, files: Sequence[Path]) -> Iterator[CodeRecord]:
    faults: list[InputProblem] = []
    for row in chain.from_iterable(map(read_rows, files)):
        try:
            yield chosen.read(row)
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
