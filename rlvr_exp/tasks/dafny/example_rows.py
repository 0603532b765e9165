"""Dafny programs and examples in JSON: rows of a .jsonl file, DafnyBench's test.json, MBPP-DFY's object by id.

A row is a DafnyExample by its fields (`header`, `spec`, `body`, `annotated_body`, and optionally `id`, `before`,
`after`, `family`, `mutants`), or a program: `program`, or `code`, or DafnyBench's `ground_truth` with `hints_removed`.
Other keys are ignored. Faults are reported with file, line and key, all faults of a file at once.
"""

import gzip
import json
import lzma
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.dafny.example import DafnyExample
from rlvr_exp.tasks.dafny.program import Program

SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.xz")
_TEXTS = ("header", "spec", "body", "annotated_body")
_PROGRAM_KEYS = ("program", "ground_truth", "code")
_SHOWN = 20
Fields = Mapping[str, Any]


def items(file: Path, source: str) -> Iterator[Program | DafnyExample]:
    """The programs and examples in the rows of a file, in their order. Raises InputError."""
    found: list[Program | DafnyExample] = []
    faults: list[InputProblem] = []
    for number, line in enumerate(_lines(file), 1):
        if not line.strip():
            continue
        try:
            found.append(_item(_object(line, f"{file}, line {number}"), f"{file}, line {number}", source, number))
        except InputError as fault:
            faults += fault.problems
    if len(faults) > _SHOWN:
        faults = [*faults[:_SHOWN], InputProblem(str(file), f"{len(faults) - _SHOWN} further faults")]
    if faults:
        raise InputError(*faults)
    yield from found


def row_of(example: DafnyExample) -> dict[str, Any]:
    """An example in the form that `items` parses, without its source."""
    texts = {key: getattr(example, key) for key in ("id", *_TEXTS, "before", "after", "family")}
    return {**texts, "mutants": list(example.mutants)} if example.mutants else texts


def bench_programs(text: str, file: Path, source: str) -> Iterator[Program]:
    """Programs of DafnyBench's test.json, a list of test_file, ground_truth, hints_removed. Raises InputError."""
    value = _json(text, str(file))
    if not isinstance(value, list):
        raise InputError(InputProblem(str(file), "not a list of programs", got=type(value).__name__))
    for number, row in enumerate(value):
        where = f"{file}[{number}]"
        name = _text(row, "test_file", where).removesuffix(".dfy")
        yield Program(name, _text(row, "ground_truth", where), "", source, _text(row, "hints_removed", where))


def programs_by_id(text: str, file: Path, source: str) -> Iterator[Program]:
    """The programs of an object of programs by id, without entries that have no `code`. Raises InputError."""
    value = _json(text, str(file))
    if not isinstance(value, dict):
        raise InputError(InputProblem(str(file), "not an object of programs by id", got=type(value).__name__))
    for name, row in value.items():
        if isinstance(row, dict) and "code" not in row:
            continue
        yield Program(f"{file.stem}/{name}", _text(row, "code", f"{file}, {name}"), "", source)


def _item(row: Fields, where: str, source: str, number: int) -> Program | DafnyExample:
    name = row.get("id", row.get("test_file", f"{Path(source).name.split('.jsonl')[0]}/{number}"))
    if type(name) not in (str, int) or name == "":
        raise InputError(InputProblem(f"{where}, id", "no name", got=repr(name)[:60], allowed="a string or an integer"))
    name = str(name).removesuffix(".dfy")
    family = _text(row, "family", where, "")
    if any(key in row for key in ("annotated_body", "header")):
        texts = {key: _text(row, key, where) for key in _TEXTS}
        texts |= {key: _text(row, key, where, "") for key in ("before", "after")}
        return DafnyExample(name, **texts, family=family, source=source, mutants=_mutants(row, where))
    key = next((key for key in _PROGRAM_KEYS if key in row), None)
    if key is None:
        allowed = f"{', '.join(_TEXTS)}; or one of {', '.join(_PROGRAM_KEYS)}"
        raise InputError(
            InputProblem(where, "neither an example nor a program", got=f"keys {sorted(row)}", allowed=allowed)
        )
    return Program(name, _text(row, key, where), family, source, _text(row, "hints_removed", where, ""))


def _mutants(row: Fields, where: str) -> tuple[str, ...]:
    value = row.get("mutants", [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise InputError(
            InputProblem(f"{where}, mutants", "not bodies", got=repr(value)[:60], allowed="a list of texts")
        )
    return tuple(value)


def _text(row: Any, key: str, where: str, default: str | None = None) -> str:
    value = row.get(key, default) if isinstance(row, dict) else None
    if not isinstance(value, str):
        got = "nothing" if value is None else repr(value)[:60]
        raise InputError(InputProblem(f"{where}, {key}", "missing or not text", got=got))
    return value


def _object(line: bytes, where: str) -> Fields:
    value = _json(line, where)
    if not isinstance(value, dict):
        raise InputError(InputProblem(where, "not a row", got=type(value).__name__, allowed="a JSON object"))
    return value


def _json(content: bytes | str, where: str) -> Any:
    try:
        return json.loads(content if isinstance(content, str) else content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as fault:
        raise InputError(InputProblem(where, "not JSON", got=str(fault)[:200])) from fault


def _lines(file: Path) -> list[bytes]:
    content = file.read_bytes()
    try:
        if file.suffix == ".xz":
            content = lzma.decompress(content)
        elif file.suffix == ".gz":
            content = gzip.decompress(content)
    except (lzma.LZMAError, OSError, EOFError, zlib.error) as fault:
        raise InputError(
            InputProblem(str(file), "damaged archive", str(fault), remedy="fetch the file again")
        ) from fault
    return content.split(b"\n")
