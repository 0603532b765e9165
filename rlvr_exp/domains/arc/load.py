"""ARC tasks from files, in every published layout, with all faults of the data.

Read below a folder, without hidden folders, or from one file:

    NAME.json                               one task: {"train": [{"input", "output"}, ...], "test": [...]}
    NAME_challenges.json, NAME_solutions.json   many tasks by id, and their test outputs
    NAME.jsonl, NAME.jsonl.xz               one task a row, with "id" and, if known, "family" and "program"

Unknown keys are ignored. All faults are reported at once, each with its file and key.
"""

import codecs
import json
import lzma
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.domains.arc.puzzle import ArcRecord, Pair, from_lists
from rlvr_exp.tasks.rows import OTHER_NAMES
from rlvr_exp.tasks.sources import source_of

SPLITS = ("train", "dev", "test", "test_unseen")
UPSTREAM = ("training", "evaluation")
SHOWN = 20
"""Faults printed before the rest is only counted."""
ROWS = (".jsonl", ".jsonl.xz")
CHALLENGES, SOLUTIONS = "challenges", "solutions"


def load(path: Path) -> list[ArcRecord]:
    """Every task at or below `path`, sorted by file and position. Ids that clash are replaced by their origins.

    Raises:
        InputError: no task was found, or any file, key or cell is wrong.
    """
    files = _files(path)
    records: list[ArcRecord] = []
    faults: list[InputProblem] = []
    for file in files:
        try:
            records += _read(file, path, faults)
        except InputError as error:
            faults += error.problems
    if not files or not (records or faults):
        remedy = "point data.path at a folder of task files, or leave it empty for the embedded corpus"
        faults.append(InputProblem(str(path), "no ARC tasks here", remedy=remedy))
    origins = Counter(record.origin for record in records)
    faults += [InputProblem(origin, "two tasks of this name", got=str(n)) for origin, n in origins.items() if n > 1]
    ids = Counter(record.id for record in records)
    records = [replace(record, id=record.origin) if ids[record.id] > 1 else record for record in records]
    if len(faults) > SHOWN:
        more = InputProblem("data.path", f"{len(faults) - SHOWN} further faults", remedy="correct these first")
        faults = [*faults[:SHOWN], more]
    if faults:
        raise InputError(*faults)
    return records


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    inside = sorted(file for file in path.rglob("*") if file.is_file() and file.name.endswith((".json", *ROWS)))
    return [file for file in inside if not any(part.startswith(".") for part in file.relative_to(path).parts)]


def _read(file: Path, root: Path, faults: list[InputProblem]) -> list[ArcRecord]:
    """The tasks of one file; faults of single tasks are appended, a fault of the file itself is raised."""
    folder = file.parent.relative_to(root if root.is_dir() else root.parent)
    above = "" if folder == Path() else f"{folder.as_posix()}/"
    words = (root.resolve().name, *folder.parts)
    one_task = not file.name.endswith(ROWS) and not file.stem.endswith((CHALLENGES, SOLUTIONS))
    own = () if one_task else (file.name,)
    source = source_of(root, (*folder.parts, *own))
    found: list[ArcRecord] = []
    for where, origin, family, split, value in _entries(file, words):
        try:
            found.append(record_of(value, where, above + origin, family, split, source))
        except InputError as error:
            faults += error.problems
    return found


def _entries(file: Path, words: Sequence[str]) -> Iterator[tuple[str, str, str, str, dict[str, Any]]]:
    """For each task of a file: its place, origin below the folder, family, split, and its JSON value."""
    folder_split = next((word for word in reversed(words) if word in UPSTREAM), "")
    if file.name.endswith(ROWS):
        stem = file.name.split(".jsonl")[0]
        split = stem if stem in (*SPLITS, *UPSTREAM, *OTHER_NAMES) else folder_split
        for number, row in enumerate(_rows(file), 1):
            where = f"{file}, line {number}"
            name = _string(row, "id", where)
            yield where, f"{stem}/{name}", _string(row, "family", where, stem), split, row
    elif file.stem.endswith(SOLUTIONS):
        partner = file.with_name(file.stem.removesuffix(SOLUTIONS) + CHALLENGES + file.suffix)
        if not partner.is_file():
            remedy = f"put {partner.name} next to it"
            raise InputError(InputProblem(str(file), f"{SOLUTIONS} without {CHALLENGES}", remedy=remedy))
    elif file.stem.endswith(CHALLENGES):
        split = next((word for word in UPSTREAM if word in file.stem), folder_split)
        for name, task in _joined(file).items():
            yield f"{file}, {name}", f"{file.stem}/{name}", file.stem, split, task
    else:
        yield str(file), file.stem, words[-1], folder_split, _json(file.read_bytes(), str(file))


def record_of(value: Any, where: str, origin: str, family: str, split: str, source: str = "") -> ArcRecord:
    """A task from its JSON value. `where` names it in errors. Raises InputError with all its faults."""
    if not isinstance(value, dict):
        raise InputError(InputProblem(where, "not a task", type(value).__name__, "an object with train and test"))
    faults: list[InputProblem] = []
    train, test = (_pairs(value.get(key), f"{where}, {key}", key == "train", faults) for key in ("train", "test"))
    gold = value.get("program")
    if gold is not None and not isinstance(gold, str):
        faults.append(InputProblem(f"{where}, program", "not text", got=type(gold).__name__))
    if faults:
        raise InputError(*faults)
    named = value.get("family") == family  # A file of one task is counted by its folder, whatever the task says.
    return ArcRecord(origin.rsplit("/", 1)[-1], origin, family, split, train, test, gold, source, named)


def _pairs(value: Any, where: str, with_output: bool, faults: list[InputProblem]) -> tuple[Pair, ...]:
    if not isinstance(value, list) or not value:
        got = "nothing" if value is None else "an empty list" if value == [] else type(value).__name__
        faults.append(InputProblem(where, "no pairs", got=got, allowed="a list of at least one pair"))
        return ()
    found = []
    for number, pair in enumerate(value):
        try:
            found.append(_pair(pair, f"{where}[{number}]", with_output))
        except InputError as error:
            faults += error.problems
    return tuple(found)


def _pair(value: Any, where: str, with_output: bool) -> Pair:
    if not isinstance(value, dict):
        raise InputError(InputProblem(where, "not a pair", type(value).__name__, "an object with input and output"))
    missing = [key for key in ("input", "output") if key not in value and (key == "input" or with_output)]
    if missing:
        raise InputError(*(InputProblem(f"{where}.{key}", "missing", got=f"keys {sorted(value)}") for key in missing))
    output = from_lists(value["output"], f"{where}.output") if "output" in value else None
    return Pair(from_lists(value["input"], f"{where}.input"), output)


def _joined(file: Path) -> dict[str, Any]:
    """The challenges of a file, each test with its output if there is a file of solutions."""
    challenges = _object(file)
    partner = file.with_name(file.stem.removesuffix(CHALLENGES) + SOLUTIONS + file.suffix)
    if not partner.is_file():
        return challenges
    solutions = _object(partner)
    return {name: _with_outputs(task, solutions.get(name), f"{partner}, {name}") for name, task in challenges.items()}


def _with_outputs(task: Any, outputs: Any, where: str) -> Any:
    tests = task.get("test") if isinstance(task, dict) else None
    if not isinstance(tests, list) or not all(isinstance(pair, dict) for pair in tests):
        return task  # the task's own fault, reported when it is read
    if not isinstance(outputs, list) or len(outputs) != len(tests):
        got = f"{len(outputs)} grids" if isinstance(outputs, list) else "nothing" if outputs is None else "no list"
        raise InputError(InputProblem(where, "outputs do not fit the tests", got=got, allowed=f"{len(tests)} grids"))
    return {**task, "test": [{**pair, "output": output} for pair, output in zip(tests, outputs, strict=True)]}


def _object(file: Path) -> dict[str, Any]:
    value = _json(file.read_bytes(), str(file))
    if not isinstance(value, dict):
        raise InputError(InputProblem(str(file), "not tasks by id", got=type(value).__name__, allowed="an object"))
    return value


def _rows(file: Path) -> Iterator[Any]:
    content = file.read_bytes()
    if file.suffix == ".xz":
        try:
            content = lzma.decompress(content)
        except lzma.LZMAError as error:
            fault = InputProblem(str(file), "damaged archive", got=str(error), remedy="fetch the file again")
            raise InputError(fault) from error
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip():
            yield _json(line, f"{file}, line {number}")


def _json(content: bytes, where: str) -> Any:
    try:
        return json.loads(content.removeprefix(codecs.BOM_UTF8).decode())
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(InputProblem(where, "not JSON", got=str(error))) from error


def _string(row: Any, key: str, where: str, default: str | None = None) -> str:
    value = row.get(key, default) if isinstance(row, dict) else None
    if not isinstance(value, str) or not value:
        got = "nothing" if value is None else repr(value)[:60]
        raise InputError(InputProblem(f"{where}, {key}", "missing or not text", got=got))
    return value
