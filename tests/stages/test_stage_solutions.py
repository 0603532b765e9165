"""+stage=solutions through the command line: each action, what it refuses, and rows that imitation reads."""

import json
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from program import ENVIRONMENT, PROGRAM
from solution_samples import solution

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import GuardStop, InputError, Interrupted
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.episodes.types import Completion, TokenCount
from rlvr_exp.main import main
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.rollout_files import RolloutRow, RunReader, write_rollouts
from rlvr_exp.solutions import store as store_module
from rlvr_exp.solutions.record import Solution, output_hash, to_row
from rlvr_exp.solutions.store import Keeping, Query, SolutionStore
from rlvr_exp.stages import solutions as stage
from rlvr_exp.stages.solutions import solved
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.verifiers.base import Verdict

WRONG = Verdict("failed", "wrong_answer", passed=1, total=4)


def go(folder: Path, *words: str) -> tuple[StageResult, str]:
    """The stage in this process: its result, and its text."""
    given = [word if "=" in word and word.startswith("data.") else f"solutions.{word}" for word in words]
    context = RunContext(folder, lambda event: None)
    result = stage.run(compose(["+stage=solutions", *given]).config, context)
    return result, (folder / "solutions.md").read_text()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a correct and a wrong solution of each of two tasks."""
    with SolutionStore(tmp_path / "store") as store:
        for task, difficulty in (("a", 0.1), ("b", 0.9)):
            store.add(
                solution(task, 1, family=f"f|{task}", difficulty=difficulty, passed=1, total=2, operator="refined")
            )
            store.add(solution(task, 2, family=f"f|{task}", difficulty=difficulty))
    return tmp_path / "store"


def rollout(task: Task, sample: int, text: str, verdict: Verdict) -> RolloutRow:
    parsed = Candidate(text)
    return RolloutRow(Completion(task, sample, TokenCount(9, False), text, parsed, verdict), 1, 0, "prompt")


@pytest.fixture(scope="module")
def tasks() -> dict[str, list[Task]]:
    return {name: list(found) for name, found in Arc().splits().items()}


@pytest.fixture
def finished(tmp_path: Path, tasks: dict[str, list[Task]]) -> Path:
    """A run whose rollouts solved a train task in two ways, one of them twice, and failed once."""
    run = tmp_path / "finished"
    run.mkdir()
    (run / "config.yaml").write_text("stage: grpo\nseed: 0\n")
    task = tasks["train"][0]
    passed = Verdict("passed", passed=4, total=4)
    texts = [
        (task.gold, passed),
        (f"# again\n{task.gold}", passed),
        (f"x = 1\n{task.gold}", passed),
        ("def solve(g): return g", WRONG),
    ]
    write_rollouts(run, 1, [rollout(task, n, str(text), verdict) for n, (text, verdict) in enumerate(texts)])
    return run


def test_a_list_shows_the_best_first_and_what_filters_let_through(tmp_path: Path, path: Path) -> None:
    result, text = go(tmp_path, f"path={path}", "quality=[-pairs_right,-step]")
    assert result.metrics == {"solutions": 4, "in_store": 4}
    assert "4 solutions of 2 tasks, 2 tasks solved; at most 50 a task by correct, pairs_right, size" in text
    rows = [line.split(" | ")[1:6] for line in text.splitlines() if "f\\|" in line]
    assert [(row[0], row[3]) for row in rows] == [(t, v) for v in ("wrong_answer", "passed") for t in "ab"]
    for words, expected in [
        (["correct=yes"], 2),
        (["correct=no"], 2),
    ]:
        assert go(tmp_path, f"path={path}", *words)[0].metrics["solutions"] == expected, words
    assert go(tmp_path, f"path={path}", "limit=1")[1].count("f\\|") == 1


def test_what_is_exported_is_imported_again(tmp_path: Path, path: Path) -> None:
    go(tmp_path, "action=export", f"path={path}", f"output={tmp_path}/out.jsonl", "quality=[difficulty]")
    result, _ = go(tmp_path, "action=import", f"input={tmp_path}/out.jsonl", "per_task=9", "quality=[size]")
    assert result.metrics == {"new": 4, "duplicates": 0, "evicted": 0, "in_store": 4}
    with SolutionStore(path) as there, SolutionStore(tmp_path / "solutions.sqlite", Keeping(9, ("size",))) as here:
        assert here.find() == there.find(Query(quality=["difficulty"]))


def test_stores_are_merged(tmp_path: Path, path: Path) -> None:
    more = [solution("a", 2), solution("c", 3)]
    with SolutionStore(tmp_path / "other") as other:
        other.add_many(more)
    result, _ = go(tmp_path, "action=merge", f"path={path}", f"input={tmp_path}/other")
    assert result.metrics == {"new": 1, "duplicates": 1, "evicted": 0, "in_store": 5}


def test_what_passed_in_a_run_is_added_once(tmp_path: Path, finished: Path, tasks: dict[str, list[Task]]) -> None:
    path = tmp_path / "new"
    result, _ = go(tmp_path, "action=add", f"path={path}", f"run={finished}")
    assert result.metrics == {"new": 2, "duplicates": 1, "evicted": 0, "in_store": 2}
    task = tasks["train"][0]
    with SolutionStore(path) as store:
        first = store.find()[0]
    assert (first.task, first.operator, first.step, first.run) == (task.id, "sampled", 1, str(finished))
    assert first.outputs == tuple(output_hash(case.expected) for case in task.problem.cases)
    assert (first.family, first.difficulty) == (task.family, task.difficulty)
    assert go(tmp_path, "action=add", f"path={path}", f"run={finished}")[0].metrics["duplicates"] == 3


def gold(task: Task, program: str, **more: Any) -> Solution:
    outputs = tuple(output_hash(case.expected) for case in task.problem.cases)
    return Solution(task.id, program, Verdict("passed", passed=4, total=4), outputs, **more)


def test_rows_for_imitation_are_tasks_with_programs_and_no_held_out_one(
    tmp_path: Path, tasks: dict[str, list[Task]]
) -> None:
    one, two, held_out = *tasks["train"][:2], tasks["test"][0]
    with SolutionStore(tmp_path / "s") as store:
        store.add_many([gold(one, str(one.gold)), gold(one, f"x = 1\n{one.gold}"), gold(two, str(two.gold))])
        store.add_many([gold(held_out, str(held_out.gold)), solution(one.id, 7, passed=0, total=4)])
    result, _ = go(
        tmp_path, "action=export", "form=sft", f"path={tmp_path}/s", f"output={tmp_path}/made", "quality=[step]"
    )
    assert result.metrics == {"rows": 3, "tasks": 2, "left_out": 2}
    made = Arc(str(tmp_path / "made")).splits()
    assert [task.id for task in made["train"]] == [f"{one.id}#1", f"{one.id}#2", f"{two.id}#1"]
    for task, source in zip(made["train"], (one, one, two), strict=True):
        assert (task.problem, task.inputs, task.family) == (source.problem, source.inputs, source.family)
    assert [task.gold for task in made["train"]] == [one.gold, f"x = 1\n{one.gold}", two.gold]
    for name in ("dev", "test", "test_unseen"):
        assert [(task.id, task.inputs, task.gold) for task in made[name]] == [
            (task.id, task.inputs, task.gold) for task in tasks[name]
        ]


@pytest.mark.slow
def test_imitation_trains_on_what_was_exported(tmp_path: Path, tasks: dict[str, list[Task]]) -> None:
    with SolutionStore(tmp_path / "s") as store:
        store.add_many(gold(task, str(task.gold)) for task in tasks["train"][:40])
    go(tmp_path, "action=export", "form=sft", f"path={tmp_path}/s", f"output={tmp_path}/made")
    words = ["+stage=sft", "+experiment=quick", f"data.path={tmp_path}/made", f"run.dir={tmp_path}/sft"]
    done = subprocess.run([*PROGRAM, *words], env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "sft" / "manifest.json").read_text())["imitation"]["examples"] == 40


def test_a_stop_leaves_whole_batches_and_the_same_command_goes_on(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "BATCH", 2)
    events: list[Any] = []
    context = RunContext(tmp_path / "run", lambda event: events.append(event) or setattr(context, "interrupted", True))
    words = ["+stage=solutions", "solutions.action=merge", f"solutions.path={tmp_path}/new", f"solutions.input={path}"]
    with pytest.raises(Interrupted, match="stopped during merge"):
        stage.run(compose(words).config, context)
    assert context.metrics == {"new": 2, "duplicates": 0, "evicted": 0} and events[0]["total"] == 4
    result, _ = go(tmp_path, "action=merge", f"path={tmp_path}/new", f"input={path}")
    assert result.metrics == {"new": 2, "duplicates": 2, "evicted": 0, "in_store": 4}


def test_a_sound_store_is_sound_and_a_damaged_one_stops(tmp_path: Path, path: Path) -> None:
    assert go(tmp_path, "action=check", f"path={path}")[0].metrics == {"solutions": 4}
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE solutions SET behaviour = 'x' WHERE number = 2")
    with pytest.raises(GuardStop, match="is damaged:\ntask a: behaviour of"):
        go(tmp_path, "action=check", f"path={path}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 is no solution: "),
        ("[]", "line 2 is no solution: not a JSON object"),
        ({"task": None}, "line 2 is no solution: task: got NoneType"),
        ({"passed": True}, "line 2 is no solution: passed: got bool"),
        ({"colour": 1}, "line 2 is no solution: colour: unknown key"),
        ({"outputs": [1]}, "line 2 is no solution: outputs: a hash each"),
        ({"outcome": "no_verdict", "bucket": None}, "line 2 is no solution: Solution.verdict: no_verdict says nothing"),
        ({"outcome": "great"}, "line 2 is no solution: Verdict.outcome: got 'great'"),
    ],
)
def test_a_file_with_a_bad_line_changes_nothing(tmp_path: Path, line: Any, message: str) -> None:
    good = to_row(solution())
    bad = line if isinstance(line, str) else json.dumps({**good, **line})
    (tmp_path / "in.jsonl").write_text(f"{json.dumps(good)}\n{bad}\n")
    with pytest.raises(InputError) as stop:
        go(tmp_path, "action=import", f"path={tmp_path}/s", f"input={tmp_path}/in.jsonl")
    assert message in str(stop.value) and not (tmp_path / "s").exists()


def test_what_passed_on_a_task_with_hidden_outputs_is_not_added(
    finished: Path, tasks: dict[str, list[Task]], monkeypatch: pytest.MonkeyPatch
) -> None:
    domain, task = Arc(), tasks["train"][0]
    hidden = replace(task, inputs=replace(task.inputs, hidden=True))
    monkeypatch.setattr(domain, "splits", lambda: {"train": [hidden]})
    assert list(solved(RunReader(finished), domain)) == [None] * 4


def test_data_that_are_not_the_runs_are_refused(tmp_path: Path, finished: Path) -> None:
    with pytest.raises(InputError, match="the data lacks a task of the run"):
        go(tmp_path, "action=add", f"run={finished}", "data.limit=1")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "solutions.path: not given"),
        (["solutions.path=nowhere"], "solutions.path: not there"),
        (["solutions.path={text}"], "solutions.path: is no store of solutions"),
        (["solutions.path={newer}"], "solutions.path: is of another version of rlvr_exp"),
        (["solutions.action=merge", "solutions.input={text}"], "solutions.input: is no store of solutions"),
        (["solutions.action=merge", "solutions.input={store}", "solutions.path={store}"], "is the store itself"),
        (["solutions.action=import"], "solutions.input: not given"),
        (["solutions.action=import", "solutions.input=nowhere"], "solutions.input: not there"),
        (["solutions.action=add"], "solutions.run: not given"),
        (["solutions.action=add", "solutions.run=nowhere"], "solutions.run: no run is there"),
        (["solutions.path={store}", "solutions.run=x"], "solutions.run: has no effect with action=list"),
        (["solutions.path={store}", "solutions.per_task=3"], "solutions.per_task: has no effect with action=list"),
        (["solutions.path={store}", "solutions.quality=[beauty]"], "solutions.quality"),
        (["solutions.action=import", "solutions.input={text}", "solutions.path={store}", "solutions.per_task=3"], "to keep otherwise"),
        (["solutions.action=export", "solutions.path={store}", "solutions.output=x.gz"], "is written as plain text"),
        (["solutions.action=export", "solutions.path={store}", "solutions.form=sft", "solutions.output={folder}"], "holds something"),
        (["solutions.action=export", "solutions.path={store}", "solutions.form=sft", "solutions.correct=no"], "reference answers have to pass"),
        (["solutions.path={store}", "verifier=pytest"], "has no effect under +stage=solutions"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_told_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], path: Path, words: list[str], message: str
) -> None:
    (tmp_path / "text").write_text("words\n" * 200)
    SolutionStore(tmp_path / "newer").close()
    with sqlite3.connect(tmp_path / "newer") as connection:
        connection.execute("PRAGMA user_version = 2")
    places = {"text": tmp_path / "text", "newer": tmp_path / "newer", "store": path, "folder": tmp_path}
    given = [word.format(**places) for word in words]
    assert main(["+stage=solutions", *given, f"run.dir={tmp_path}/run"]) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "run").exists()


def test_the_node_is_refused_under_other_stages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["+stage=compare", "solutions.path=x", f"run.dir={tmp_path}/run"]) == 2
    assert "solutions" in capsys.readouterr().err


def test_a_run_of_it_has_a_summary_a_plan_and_no_torch(tmp_path: Path, path: Path) -> None:
    words = ["+stage=solutions", f"solutions.path={path}", f"run.dir={tmp_path}/run"]
    plan = subprocess.run(
        [*PROGRAM, *words, "run.dry=true"], env=ENVIRONMENT, capture_output=True, text=True, timeout=60
    )
    assert plan.returncode == 0 and str(path) in plan.stdout and "solutions.md" in plan.stdout, (
        plan.stdout + plan.stderr
    )
    assert not (tmp_path / "run").exists()
    done = subprocess.run([*PROGRAM, *words], env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "4 solutions of 2 tasks" in done.stdout, done.stdout + done.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["status"] == "completed" and summary["metrics"]["solutions"] == 4
    assert "4 solutions of 2 tasks" in (tmp_path / "run" / "report.html").read_text()
    code = "import rlvr_exp.stages.solutions, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n", done.stderr
