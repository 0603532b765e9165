"""Raw sets of edits in their layouts, written by tests, and what ingestion makes of them."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from makers import made

FAST = ("prepare.count_tokens=false",)


def program(word: str, lines: int = 12) -> str:
    """A program that shares few runs of tokens with that of another word."""
    body = "".join(f"    {word}_{at} = {word}{at}({word}, {at}) + {at}\n" for at in range(lines))
    return f"def {word}({word}):\n{body}    return {word}_0\n"


def commit(word: str, **other: Any) -> dict[str, Any]:
    """A row of CommitPackFT; `other` are its differing keys."""
    before = program(word)
    keys = {"old_contents": before, "new_contents": before.replace("_0\n", "_1 + 1\n"), "lang": "Python"}
    keys |= {"commit": f"{word}1", "old_file": f"{word}.py", "new_file": f"{word}.py", "license": "mit"}
    return (
        keys | {"subject": f"Return another {word}", "message": f"Return\n\nanother {word}\n", "repos": "a/b"} | other
    )


def edit(word: str, **other: Any) -> dict[str, Any]:
    """A row of a user's own."""
    before = program(word)
    return {"instruction": f"Change {word}", "before": before, "after": before.replace("+ 3", "+ 4"), **other}


def write_lines(file: Path, rows: Iterable[Mapping[str, Any] | str]) -> Path:
    """JSON lines; a text stands as it is."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return file


def ingest(tmp_path: Path, name: str, path: Path, *words: str, output: str = "out") -> Path:
    """The output of a run."""
    words = (f"prepare.set={name}", f"prepare.path={path}", f"prepare.output={tmp_path / output}", *FAST, *words)
    made(tmp_path / "run", "edits", *words)
    return tmp_path / output


def records(output: Path) -> dict[str, dict[str, Any]]:
    """All rows by id, each with its split."""
    found = {}
    for file in output.glob("*/*.jsonl"):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            found[row["id"]] = row | {"split": file.parent.name}
    return found


def dropped(output: Path) -> list[tuple[str, int, str]]:
    """File, line and reason of all that gave no row."""
    with open(output / "dropped.csv", newline="") as file:
        return [(row["file"], int(row["line"]), row["reason"]) for row in csv.DictReader(file)]


def reasons(output: Path) -> list[str]:
    return [reason for _, _, reason in dropped(output)]


def contents(output: Path) -> dict[str, bytes]:
    """The bytes of every file of an output."""
    files: Sequence[Path] = [file for file in output.rglob("*") if file.is_file()]
    return {str(file.relative_to(output)): file.read_bytes() for file in files}
