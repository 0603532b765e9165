"""A run that was cut off is continued and ends with the bytes of an unbroken one; another's folder stays as it is."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from makers import made
from program import ENVIRONMENT, INTERPRETED
from raw_edits import FAST, contents, ingest, records, write_lines
from synthetic_commits import LANGUAGES, write

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError, Interrupted
from rlvr_exp.domains.edits import ingest as build
from rlvr_exp.domains.edits.ingest import FOLDER, Index, make
from rlvr_exp.domains.edits.normalize import LONGEST, Line, read_lines
from rlvr_exp.records.context import RunContext


class Killed(BaseException):
    """Stands for the end of the process."""


def break_off(monkeypatch: pytest.MonkeyPatch, lines: int) -> None:
    """Let a run end before it commits, after so many lines; every chunk is committed until then."""
    left = iter(range(lines))

    def some(*args: object) -> Iterator[Line]:
        for line in read_lines(*args):  # type: ignore[arg-type]
            if next(left, None) is None:
                raise Killed
            yield line

    monkeypatch.setattr(build, "read_lines", some)
    monkeypatch.setattr(build, "COMMIT_S", 0.0)
    monkeypatch.setattr(build, "CHUNK_ROWS", 7)


@pytest.mark.parametrize("packed", [False, True])
def test_broken_off_twice_it_ends_with_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    write(tmp_path / "set", 0.4)
    for language in LANGUAGES if packed else ():
        subprocess.run(["gzip", tmp_path / f"set/data/{language}/data.jsonl"], check=True)
    whole = ingest(tmp_path, "commitpackft", tmp_path / "set", output="whole")
    for lines in (33, 90):
        with monkeypatch.context() as patch, pytest.raises(Killed):
            break_off(patch, lines)
            ingest(tmp_path, "commitpackft", tmp_path / "set", output="broken")
        with open(tmp_path / "broken" / FOLDER / "rows.jsonl", "ab") as spool:
            spool.write(b'{"id": "half a line')
        assert not (tmp_path / "broken/metadata.json").exists()
    reads: list[str] = []
    monkeypatch.setattr(build, "normalize", lambda *args: reads.append("") or reading_normalize(*args))
    broken = ingest(tmp_path, "commitpackft", tmp_path / "set", output="broken")
    assert contents(whole) == contents(broken) and len(records(whole)) > 100
    assert 0 < len(reads) < len(records(whole)) - 60  # What is indexed is not read a second time.


reading_normalize = build.normalize


@pytest.mark.slow
def test_killed_twice_it_ends_with_the_same_bytes(tmp_path: Path) -> None:
    write(tmp_path / "set", 8)
    whole = ingest(tmp_path, "commitpackft", tmp_path / "set", output="whole")
    words = ["+stage=prepare", "prepare=edits", "prepare.set=commitpackft", f"prepare.path={tmp_path}/set", *FAST]
    for number in range(3):
        options = [f"prepare.output={tmp_path}/killed", f"run.dir={tmp_path}/run_{number}"]
        process = subprocess.Popen([*INTERPRETED, *words, *options], env=ENVIRONMENT, start_new_session=True)
        if number < 2:
            spool = tmp_path / "killed" / FOLDER / "rows.jsonl"
            least = spool.stat().st_size if number else 0
            while not (spool.is_file() and spool.stat().st_size > least + 200_000):
                assert process.poll() is None
                time.sleep(0.02)
            os.killpg(process.pid, signal.SIGKILL)
            time.sleep(6)  # The run's own process ends with its parent.
        assert process.wait() == (-9 if number < 2 else 0)
    assert contents(whole) == contents(tmp_path / "killed")


def test_a_complete_output_is_reported_and_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "set", 0.1)
    words = ("prepare.set=commitpackft", f"prepare.path={tmp_path}/set", f"prepare.output={tmp_path}/out", *FAST)
    first = made(tmp_path / "run", "edits", *words)
    monkeypatch.setattr(build, "normalize", None)
    assert made(tmp_path / "run", "edits", *words) == first


def test_the_folder_of_other_rows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "set", 0.1)
    ingest(tmp_path, "commitpackft", tmp_path / "set")
    before = contents(tmp_path / "out")
    with pytest.raises(InputError, match="rows made otherwise: options.similarity"):
        ingest(tmp_path, "commitpackft", tmp_path / "set", "prepare.similarity=0.9")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        break_off(patch, 20)
        ingest(tmp_path, "commitpackft", tmp_path / "set", output="begun")
    with open(tmp_path / "set/data/go/data.jsonl", "a") as file:
        file.write("\n")
    for output in ("out", "begun"):
        with pytest.raises(InputError, match=r"rows made otherwise: sources.commitpackft.data/go/data.jsonl"):
            ingest(tmp_path, "commitpackft", tmp_path / "set", output=output)
    assert contents(tmp_path / "out") == before


def test_an_interrupted_run_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "set", 0.2)
    whole = ingest(tmp_path, "commitpackft", tmp_path / "set", output="whole")
    words = ["prepare.set=commitpackft", f"prepare.path={tmp_path}/set", f"prepare.output={tmp_path}/out", *FAST]
    config = compose(["+stage=prepare", "prepare=edits", *words]).config
    context = RunContext(tmp_path / "run", lambda event: setattr(context, "interrupted", event.get("done", 0) > 100))
    with pytest.raises(Interrupted):
        make(config, context)
    assert (tmp_path / "out" / FOLDER).is_dir()
    monkeypatch.setattr(build, "_code", lambda: "other code")
    with pytest.raises(InputError, match="rows made otherwise: code"):
        make(config, RunContext(tmp_path / "run", lambda event: None))
    monkeypatch.undo()
    make(config, RunContext(tmp_path / "run", lambda event: None))
    assert contents(whole) == contents(tmp_path / "out")


def test_an_output_inside_a_set_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "set", 0.1)
    with pytest.raises(InputError, match="inside a set that is read"):
        ingest(tmp_path, "commitpackft", tmp_path / "set", output="set/out")
    assert not (tmp_path / "set/out").exists()


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "set", 0.1)
    write_lines(tmp_path / "out/train/others.jsonl", [{}])
    with pytest.raises(InputError, match="holds other files"):
        ingest(tmp_path, "commitpackft", tmp_path / "set")
    assert list(contents(tmp_path / "out")) == ["train/others.jsonl"]


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "set", 0.1)
    with Index(tmp_path / "out", {}), pytest.raises(InputError, match="another run writes there"):
        ingest(tmp_path, "commitpackft", tmp_path / "set")


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".jsonl.xz"])
def test_reading_is_continued_at_any_line(tmp_path: Path, ending: str) -> None:
    import gzip
    import lzma

    text = b'{"a": "\xc3\xa9"}\n\n{"a"\n[]\n\xff\n' + b'{"b": 1}\n' * 3 + b'{"last": 2}'
    pack = {".gz": gzip.compress, ".xz": lzma.compress}.get(Path(ending).suffix, bytes)
    (file := tmp_path / f"rows{ending}").write_bytes(pack(text))
    whole = list(read_lines(file))
    assert [line.number for line in whole] == [1, 3, 4, 5, 6, 7, 8, 9]
    assert [bool(line.fault) for line in whole] == [False, True, True, True, False, False, False, False]
    for at, line in enumerate(whole):
        assert list(read_lines(file, line.position, line.number)) == whole[at + 1 :]


def test_a_line_without_an_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    with open(tmp_path / "rows.jsonl", "wb") as file:
        file.seek(LONGEST + LONGEST // 2)
        file.write(b'\n{"a": 1}\n')
    first, second = read_lines(tmp_path / "rows.jsonl")
    assert "longer than" in first.fault and second == Line(2, second.position, {"a": 1})


def test_tables_are_continued_by_row(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist([{"a": at} for at in range(5)]), tmp_path / "t.parquet")
    whole = list(read_lines(tmp_path / "t.parquet"))
    assert [line.values["a"] for line in whole] == list(range(5))
    assert list(read_lines(tmp_path / "t.parquet", whole[2].position, whole[2].number)) == whole[3:]
    write_lines(tmp_path / "bad.parquet", ["no table"])
    assert [line.fault != "" for line in read_lines(tmp_path / "bad.parquet")] == [True]
