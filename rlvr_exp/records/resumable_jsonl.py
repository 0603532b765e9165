"""Resumable files of rows, one JSON object per line, each with FILE.made.json, which records what it was built from.

Owns both files. A file with the same provenance is continued, also after kill -9 in the middle of a line; any other
file is refused and stays as it is. `AnswerFile` is the output of an inference, rlvr_exp.records.verdict_file that of a
verification.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import Any, Self

from rlvr_exp.core.errors import GuardStop, InputError, InputProblem
from rlvr_exp.core.files import write_json

LOG_CHARACTERS = 2000


def shown(log: str) -> str:
    """The log, truncated, and without lone surrogates, which strict JSON readers reject."""
    if len(log) > LOG_CHARACTERS:
        half = LOG_CHARACTERS // 2
        log = f"{log[:half]}\n[...]\n{log[-half:]}"
    return log.encode("utf-8", "backslashreplace").decode()


class ResumableJsonl:
    """The file at `path`, claimed for this process.

    Args:
        provenance: everything that determines the rows: nested JSON, compared key by key.

    Raises:
        InputError: it has another provenance or none, is damaged, in use, or cannot be written.
    """

    option: str
    """The option that names the file, for messages."""

    def __init__(self, path: Path, provenance: Mapping[str, Any]):
        self.path, self._sidecar = path, path.with_name(f"{path.name}.made.json")
        self._file = self._claimed()
        try:
            self._check(provenance)
            self.rows = self._complete_rows()
        except BaseException:
            self._file.close()
            raise

    @staticmethod
    def fits(row: Any) -> bool:
        """Whether a value read from the file is a valid row."""
        return isinstance(row, dict)

    def existing(self) -> Iterator[dict[str, Any]]:
        """The existing rows."""
        with open(self.path, encoding="ascii", errors="replace", newline="\n") as file:
            for number, line in enumerate(file, 1):
                if number > self.rows:
                    return
                yield self._parsed(line, number)

    def write(self, row: Mapping[str, Any]) -> None:
        """Add a line; it has left this process when this returns. Raises GuardStop where the disk is full."""
        data = memoryview(json.dumps(row, allow_nan=False).encode() + b"\n")
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as fault:
            raise GuardStop(
                f"{self.path} cannot be written: {fault.strerror}. Make room and run the same command again: it goes "
                f"on after the {self.rows} rows that are there"
            ) from fault
        self.rows += 1

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _claimed(self) -> FileIO:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = open(self.path, "a+b", buffering=0)
        except OSError as fault:
            raise InputError(
                self._problem(f"cannot be written: {fault.strerror}", self.path, "another file")
            ) from fault
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as fault:
            file.close()
            what = "is being written by another run"
            raise InputError(self._problem(what, self.path, "wait for it to end")) from fault
        return file

    def _check(self, provenance: Mapping[str, Any]) -> None:
        ours = json.loads(json.dumps(provenance))
        if os.fstat(self._file.fileno()).st_size == 0:
            try:
                write_json(self._sidecar, ours)
            except OSError as fault:
                what = f"cannot be written: {fault.strerror}"
                raise InputError(self._problem(what, self._sidecar, "another file")) from fault
            return
        try:
            theirs = json.loads(self._sidecar.read_text(encoding="utf-8"))
        except (OSError, ValueError) as fault:
            what = f"holds something, and {self._sidecar.name} does not record its provenance"
            raise InputError(self._problem(what, self.path, self._remedy)) from fault
        differing = list(_differences(theirs, ours))
        if differing:
            raise InputError(
                *(
                    InputProblem(self.option, f"was written with another {key}", difference, "", "", self._remedy)
                    for key, difference in differing
                )
            )

    def _complete_rows(self) -> int:
        """Truncate an incomplete last line; returns the number of complete lines."""
        self._file.seek(0)
        end = rows = at = 0
        while chunk := self._file.read(1 << 20):
            rows += chunk.count(b"\n")
            last = chunk.rfind(b"\n")
            end = at + last + 1 if last >= 0 else end
            at += len(chunk)
        self._file.truncate(end)
        return rows

    def _parsed(self, line: str, number: int) -> dict[str, Any]:
        try:
            row = json.loads(line)
            if self.fits(row):
                return row
        except (ValueError, TypeError):
            pass
        raise InputError(self._problem(f"line {number} is damaged", self.path, self._remedy))

    @property
    def _remedy(self) -> str:
        return f"another {self.option}, or remove {self.path}"

    def _problem(self, what: str, path: Path, remedy: str) -> InputProblem:
        return InputProblem(self.option, what, str(path), "", "", remedy)


def _differences(theirs: Any, ours: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in dict.fromkeys([*ours, *theirs]):
            yield from _differences(theirs.get(name), ours.get(name), f"{key}.{name}".lstrip("."))
    elif theirs != ours:
        yield key, f"{json.dumps(theirs)} there, {json.dumps(ours)} now"


class AnswerFile(ResumableJsonl):
    """The file of answers; `provenance` is everything that determines them."""

    option = "infer.output"

    @staticmethod
    def fits(row: Any) -> bool:
        return isinstance(row, dict) and {"id", "outcome", "attempts"} <= row.keys()
