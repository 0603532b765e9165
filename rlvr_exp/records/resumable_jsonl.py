"""Files of JSON rows that survive an interrupt: answers, verdicts, and the journal of the completions in progress.

A file of answers or verdicts has FILE.made.json, which records its provenance. A run continues a file with the same provenance,
also after `kill -9` in the middle of a line, and refuses any other file. A journal keeps each completion of a batch in progress,
and is removed when the batch's own file is complete.
"""

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from io import FileIO
from pathlib import Path
from typing import Any, Self

from rlvr_exp.core.errors import GuardStop, InputError, InputProblem
from rlvr_exp.core.files import write_json
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.core.statistics import wilson
from rlvr_exp.records.directory import writing
from rlvr_exp.tasks.formats.fields import RowId
from rlvr_exp.verifiers.base import OUTCOMES, Verdict

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
        """Add a line. It has left this process when this returns. Raises GuardStop if the disk is full."""
        try:
            _write(self._file.fileno(), row)
        except OSError as fault:
            raise GuardStop(
                f"{self.path} cannot be written: {fault.strerror}. Free disk space and run the same command again: it "
                f"continues after the {self.rows} existing rows"
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
            other, remedy = "was written with another", self._remedy
            raise InputError(
                *(InputProblem(self.option, f"{other} {key}", of, "", "", remedy) for key, of in differing)
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


KEYS = ("id", "outcome", "bucket", "rule", "score", "passed", "total", "seconds", "cached", "log")


def row_of(identity: RowId, verdict: Verdict) -> dict[str, Any]:
    """A verdict as a row of the file."""
    own = {"id": identity, "score": verdict.score, "seconds": round(verdict.seconds, 6), "log": shown(verdict.log)}
    values = {**vars(verdict), **own}
    return {name: values[name] for name in KEYS}


class VerdictFile(ResumableJsonl):
    """The file of verdicts; `provenance` is everything that determines them."""

    option = "verify.output"

    @staticmethod
    def fits(row: Any) -> bool:
        return tuple(row) == KEYS and row["outcome"] in OUTCOMES


class VerdictCounter:
    """Counts rows of a file of verdicts."""

    def __init__(self) -> None:
        self._outcomes: Counter[str] = Counter()
        self._buckets: Counter[str] = Counter()
        self._rules: Counter[str] = Counter()
        self._seconds = 0.0

    def add(self, row: Mapping[str, Any]) -> None:
        self._outcomes[row["outcome"]] += 1
        if row["bucket"]:
            self._buckets[row["bucket"]] += 1
        if row["rule"]:
            self._rules[row["rule"]] += 1
        self._seconds += row["seconds"]

    def metrics(self) -> dict[str, float]:
        """Counts; a bucket or rule that did not occur is left out."""
        counts: dict[str, float] = {"rows": self._outcomes.total()}
        counts |= {f"outcome/{name}": self._outcomes[name] for name in OUTCOMES}
        counts |= {f"bucket/{name}": count for name, count in sorted(self._buckets.items())}
        counts |= {f"rule/{name}": count for name, count in sorted(self._rules.items())}
        return counts | {"time/candidates_cpu": self._seconds}

    def passed(self) -> dict[str, Mapping[str, float | int]]:
        """Share that passed of the rows that have a verdict, each row a trial of its own; empty without any."""
        judged = self._outcomes.total() - self._outcomes["no_verdict"]
        if not judged:
            return {}
        return {"passed": {**wilson(self._outcomes["passed"], judged)._asdict(), "n": judged, "samples": 1}}

    def text(self) -> str:
        """`12 rows: 6 passed, 4 failed (wrong_answer 3, timeout 1), 1 rejected (signature-changed 1), 1 no_verdict`."""
        inside = {"failed": self._buckets, "rejected": self._rules}
        parts = []
        for name in OUTCOMES:
            if self._outcomes[name]:
                reasons = ", ".join(f"{key} {count}" for key, count in inside.get(name, Counter()).most_common())
                parts.append(f"{self._outcomes[name]} {name}" + (f" ({reasons})" if reasons else ""))
        return f"{self._outcomes.total()} rows: {', '.join(parts) or 'none'}"


FOLDER = "journal"
"""Folder of a run directory with the journals of its measurements."""


class CompletionJournal:
    """
    Args:
        path: nothing is read or written before the first use.
        identity: determines the completions together with their keys, such as a hash of the weights. A journal with another
            identity starts over.
    """

    def __init__(self, path: Path, identity: str):
        self.path, self._identity = path, identity
        self._file: int | None = None

    @cached_property
    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows of earlier processes by key. A user of a row removes it."""
        lines = _complete_lines(self.path)
        if _parsed(next(lines, b"")) != self._head:
            return {}
        rows = (_parsed(line) for line in lines)
        return {row["key"]: row for row in rows if row is not None and "key" in row}

    def write(self, row: Mapping[str, Any]) -> None:
        """Add a row with its key. Raises GuardStop if the disk is full."""
        with writing(self.path):
            if self._file is None:
                self._file = self._opened()
            _write(self._file, row)

    def clear(self) -> None:
        """Drop the rows that were used: their batch is in its own file."""
        left = list(self.rows.values())
        self.remove()
        for row in left:
            self.write(row)

    def remove(self) -> None:
        """Remove the file, and the folder of journals if it was the last one."""
        self.close()
        self.path.unlink(missing_ok=True)
        if self.path.parent.name == FOLDER:
            with suppress(OSError):  # Others are in it, or it never existed.
                self.path.parent.rmdir()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    @property
    def _head(self) -> dict[str, Any]:
        return {"identity": self._identity}

    def _opened(self) -> int:
        """The file, open for writing behind its last complete line; new if it has none of this identity."""
        lines = list(_complete_lines(self.path))
        same = bool(lines) and _parsed(lines[0]) == self._head
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.ftruncate(file, sum(map(len, lines)) if same else 0)
        if not same:
            _write(file, self._head)
        return file


def journal_beside(output: Path, provenance: Mapping[str, Any]) -> CompletionJournal:
    """The journal of a file of rows; `provenance` is everything that determines them."""
    return CompletionJournal(output.with_name(f"{output.name}.journal"), content_hash(provenance))


def _complete_lines(path: Path) -> Iterator[bytes]:
    if path.is_file():
        with open(path, "rb") as file:
            yield from (line for line in file if line.endswith(b"\n"))


def _parsed(line: bytes) -> dict[str, Any] | None:
    """None for a line that is not a JSON object."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _write(file: int, row: Mapping[str, Any]) -> None:
    data = memoryview(json.dumps(row, allow_nan=False).encode() + b"\n")
    while data:
        data = data[os.write(file, data) :]
