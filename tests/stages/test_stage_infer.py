"""Solving tasks as a person or a script starts it: JSON lines in, JSON lines out, resumed, refused, interrupted."""

import json
import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest
from program import ENVIRONMENT, PROGRAM, json_rows

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError, Interrupted
from rlvr_exp.inference.solution import KEYS
from rlvr_exp.main import main
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext
from rlvr_exp.stages import infer
from rlvr_exp.verifiers.base import OUTCOMES

GRIDS = ([[1, 2], [3, 4]], [[5, 0], [0, 5]], [[7, 7], [1, 2]], [[0, 3], [3, 0]])
SHORT = "model.max_completion_tokens=16"


def puzzle(name, number=0):
    pairs = [{"input": grid, "output": [row[::-1] for row in grid]} for grid in GRIDS[number:] + GRIDS[:number]]
    return {"id": name, "train": pairs[:3], "test": pairs[3:]}


ROWS = [puzzle(name, number) for number, name in enumerate(("one", "two", 3, "four"))]


def lines(path: Path, rows=ROWS) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def starter(folder):
    """Runs the stage in this process; its `events` are what a person would see."""

    def go(*words, tune=None):
        go.count += 1
        context = go.context = RunContext(folder / f"run{go.count}", go.events.append)
        context.directory.mkdir()
        manifest.begin(context.directory, "infer", 0, [], "")
        if tune:
            tune(context)
        return infer.run(compose(["+stage=infer", SHORT, *words]).config, context)

    go.count, go.events = 0, []
    return go


@pytest.fixture
def start(tmp_path):
    return starter(tmp_path)


def run(folder: Path, *words: str, given: str = "", **options) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, "+stage=infer", SHORT, *words]
    return subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, input=given, capture_output=True, text=True, timeout=300, **options
    )


def test_a_pipe_carries_rows_and_nothing_else(tmp_path):
    done = run(tmp_path, "infer.input=-", "run.dir=run", given=lines(tmp_path / "in.jsonl").read_text())
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["id"] for row in rows] == ["one", "two", 3, "four"]
    assert all(tuple(row) == KEYS and row["outcome"] in OUTCOMES for row in rows)
    assert rows == json_rows(tmp_path / "run" / "answers.jsonl")
    assert "run directory: run" in done.stderr and "infer 4/4" in done.stderr and "pass_at_attempt_1" in done.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["status"] == "completed" and summary["after"]["pass_at_attempt_1"]["n"] == 4
    page = (tmp_path / "run" / "report.html").read_text()
    assert "<h2>Answers</h2>" in page and all(f"<b>{row['id']}</b>" in page for row in rows)


def test_a_terminal_shows_text(tmp_path):
    lines(tmp_path / "in.jsonl", ROWS[:2])
    ours, theirs = pty.openpty()
    words = ["+stage=infer", SHORT, "infer.input=in.jsonl", "infer.verify=false", "run.dir=run"]
    command = subprocess.Popen([*PROGRAM, *words], cwd=tmp_path, env=ENVIRONMENT, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    said = b""
    try:
        while chunk := os.read(ours, 4096):
            said += chunk
    except OSError:  # Linux: the other side is closed.
        pass
    assert command.wait(300) == 0, command.stderr.read()
    text = said.decode()
    assert "one: not judged" in text and "run directory: run" in text and '"id"' not in text


def test_a_reader_that_has_enough_ends_the_run(tmp_path):
    lines(tmp_path / "in.jsonl", [puzzle(number) for number in range(60)])
    words = ["infer.input=in.jsonl", "infer.verify=false", "infer.batch_size=1", "run.dir=run"]
    command = subprocess.Popen(
        [*PROGRAM, "+stage=infer", SHORT, *words],
        cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    first = command.stdout.readline()
    command.stdout.close()
    said = command.stderr.read()
    assert command.wait(300) == 130, said
    kept = json_rows(tmp_path / "run" / "answers.jsonl")
    assert json.loads(first) == kept[0] and len(kept) < 60


def test_the_plan_says_what_would_be_read_and_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["+stage=infer", SHORT, "infer.input=-", "infer.decoding=sample", "infer.samples=4", "run.dry=true"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "reads:       rlvr_exp/assets/models/tiny, standard input" in said
    assert "answers.jsonl" in said and "best of 4" in said
    assert list(tmp_path.iterdir()) == []


def test_bad_input_is_exit_2_and_nothing_on_standard_output(tmp_path):
    done = run(tmp_path, "infer.input=-", "run.dir=run", given='{"id": 1}\n{"id": 1, "cases": 7}\n')
    assert done.returncode == 2 and done.stdout == ""
    assert "standard input, line 1: of no known format" in done.stderr and "line 2: cases: got 7" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["infer.input={0}/empty.jsonl"], "infer.input: holds no task"),
        (["infer.split=tset"], "no tasks in split 'tset'"),
        (["infer.ids=[nobody]"], "infer.ids: no task has this id"),
    ],
)
def test_what_cannot_be_asked_is_refused(start, words, told, tmp_path):
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(InputError) as fault:
        start(*(word.format(tmp_path) for word in words))
    assert told in str(fault.value)


def test_a_verifier_of_other_problems_is_refused(start, tmp_path):
    path = lines(tmp_path / "in.jsonl", [{"id": 1, "tests": "def test_a(): pass"}])
    with pytest.raises(InputError, match="does not judge the problems"):
        start(f"infer.input={path}")


def test_a_split_of_the_data_is_solved(start):
    found = start("infer.tasks=3", "infer.decoding=sample", "infer.samples=2", "infer.max_attempts=2")
    rows = json_rows(start.context.directory / "answers.jsonl")
    assert len(rows) == 3 == found.metrics["tasks"] and set(found.after) == {"pass_at_attempt_1", "pass_at_attempt_2"}
    assert [event["row"] for event in start.events if event["kind"] == "row"] == rows
    assert start.events[-2]["done"] == start.events[-2]["total"] >= 6, "and the second attempts"


def words_in(folder):
    files = [f"infer.input={folder / 'in.jsonl'}", f"infer.output={folder / 'out.jsonl'}"]
    return [*files, "infer.verify=false", "infer.batch_size=1"]


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """A folder with tasks, and with answers to all of them."""
    folder = tmp_path_factory.mktemp("answered")
    lines(folder / "in.jsonl")
    starter(folder)(*words_in(folder))
    return folder


@pytest.fixture
def words(answered, tmp_path):
    """Of a run that finds everything answered."""
    for path in answered.glob("*.json*"):
        shutil.copy(path, tmp_path)
    return words_in(tmp_path)


def stopping(after):
    """Requests a stop once so many tasks are answered."""

    def tune(context):
        send = context._send

        def listen(event):
            send(event)
            context.interrupted = context.interrupted or event.get("done") == after

        context._send = listen

    return tune


def test_a_run_that_was_stopped_goes_on_by_id(start, words, tmp_path):
    whole = (tmp_path / "out.jsonl").read_text()
    (tmp_path / "out.jsonl").unlink()
    with pytest.raises(Interrupted, match="stopped after 2 of 4 tasks"):
        start(*words, tune=stopping(2))
    assert (tmp_path / "out.jsonl").read_text() == "".join(whole.splitlines(keepends=True)[:2])
    found = start(*words, "infer.batch_size=3")
    assert (tmp_path / "out.jsonl").read_text() == whole
    assert found.metrics["system/answers_from_before"] == 2 and found.metrics["tasks"] == 4
    assert not [event for event in start.events if event["kind"] == "row"], "answers go to their file alone"


def test_a_line_that_a_kill_cut_is_answered_again(start, words, tmp_path):
    whole = (tmp_path / "out.jsonl").read_text()
    (tmp_path / "out.jsonl").write_text(whole[:-30])
    start(*words)
    assert (tmp_path / "out.jsonl").read_text() == whole


def test_programs_are_laid_out_beside_what_is_judged(start, words, tmp_path):
    found = json_rows(tmp_path / "out.jsonl")
    start(words[0], "infer.verify=false", "infer.format=true", "infer.tasks=2", "model.max_completion_tokens=40")
    shown = json_rows(start.context.directory / "answers.jsonl")
    assert all(row["formatted"] is None for row in found)
    assert all((row["formatted"] is None) == bool(row["fault"]) for row in shown)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["seed=1"], "another seed"),
        (["infer.decoding=beam"], "another decoding"),
        (["infer.tasks=2"], "another input"),
        (["data.prompt.style=instruct"], "another prompts"),
        (["model.max_completion_tokens=15"], "another model"),
    ],
)
def test_answers_of_another_kind_are_refused(start, words, more, told, tmp_path):
    before = (tmp_path / "out.jsonl").read_text()
    with pytest.raises(InputError, match=told):
        start(*words, *more)
    assert (tmp_path / "out.jsonl").read_text() == before


def test_answers_to_another_input_are_refused(start, words, tmp_path):
    lines(tmp_path / "in.jsonl", [*ROWS[:3], puzzle("five", 2)])
    with pytest.raises(InputError, match="was written with another input"):
        start(*words)


def test_packing_and_order_of_keys_are_the_same_input(start, words, tmp_path):
    lines(tmp_path / "in.jsonl", [dict(reversed(row.items())) for row in ROWS])
    assert start(*words).metrics["system/answers_from_before"] == 4
