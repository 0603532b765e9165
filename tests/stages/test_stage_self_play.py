"""+stage=self_play through its command: two quick rounds with every kind of row, and what they leave."""

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from program import metrics_of, run_program

from rlvr_exp.domains.arc.tasks import Arc, row_of
from rlvr_exp.records.rollout_files import read_rollouts, rollout_steps
from rlvr_exp.self_play.found import read_rows
from rlvr_exp.solutions.store import Query, SolutionStore, faults

SMALL = ["data.limit=400", "evaluation.tasks=2", "evaluation.samples=2", "run.select.tasks=2"]
EVERY_KIND = ["self_play.refine=1", "self_play.refined=0.2", "self_play.correct=0.2"]
COMMAND = ["+stage=self_play", "+experiment=quick", *SMALL]


def program(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_program(place, *COMMAND, *words)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("self_play")
    done = program(place, *EVERY_KIND, "run.dir=run")
    log = place / "run" / "log.txt"
    assert done.returncode == 0, done.stdout + done.stderr + (log.read_text() if log.exists() else "")
    assert "round 1 of 2 24/24" in done.stdout and "round 2 of 2 24/24" in done.stdout
    assert "Dead groups" not in done.stdout + done.stderr, "nothing is compared in groups"
    return place / "run"


@pytest.fixture(scope="module")
def tasks() -> dict:
    return {task.id: task for task in Arc(limit=400).splits()["train"]}


@pytest.mark.slow
def test_each_round_tells_what_it_made_and_the_updates_learn(run) -> None:
    rows = metrics_of(run)
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5, 6]
    begun = [row for row in rows if "self_play/answers" in row]
    assert [row["step"] for row in begun] == [1, 4]
    for row in begun:
        assert 48 < row["self_play/answers"] <= 48 + 24 * 4 and 0 <= row["self_play/success"] <= 1
        assert row["self_play/rows_relabelled"] > 0 and "curriculum/mixed_groups" in row
    assert all(row["loss"] > 0 for row in rows) and any("held_out/loss" in row for row in rows)


@pytest.mark.slow
def test_the_rollouts_are_those_of_the_rounds(run) -> None:
    files = rollout_steps(run)
    assert list(files) == [1, 4]
    first = read_rollouts(files[1])
    assert Counter(row.group for row in first)[0] == 2 and {row.fate for row in first} <= {"trained", "filtered"}
    assert any("# wrong_answer" in row.prompt for row in first), "refinements show the verifier's words"


@pytest.mark.slow
def test_every_row_is_a_program_that_solves_its_task(run, tasks) -> None:
    space: dict = {}
    kinds: Counter[str] = Counter()
    for number in (0, 1):
        for kind, rows in read_rows(run, number, tasks, Arc()).items():
            kinds[kind] += len(rows)
            for row in rows:
                task = row.solved
                exec(task.gold, space)
                assert all(space["solve"](*case.args) == case.expected for case in task.problem.cases), kind
    assert kinds["relabelled"] and kinds["refined"] and kinds["correct"]


@pytest.mark.slow
def test_the_store_holds_what_was_found_and_is_sound(run, tasks) -> None:
    with SolutionStore(run / "solutions.sqlite", read_only=True) as store:
        assert faults(store) == []
        assert {one.operator for one in store.find()} >= {"sampled", "relabelled", "refined"}
        made = store.find(Query(operator="relabelled"))
        assert all(one.correct and one.task.partition("~")[0] in tasks for one in made)
        assert {one.run for one in store.find(Query(operator="sampled"))} == {"run"}
        parents = {one.parent for one in store.find(Query(operator="refined"))}
        assert parents and all(store.get(parent) is not None for parent in parents)


@pytest.mark.slow
def test_the_summary_compares_before_and_after(run) -> None:
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["stage"], summary["status"], summary["steps"]) == ("self_play", "completed", 6)
    assert {"pass_at_1", "pass_at_1_greedy"} <= set(summary["before"]) & set(summary["after"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["self_play.relabelled=0.95"], "self_play.relabelled: shares of rows add up to more than 1"),
        (["self_play.choose=best", "self_play.per_task=0"], "self_play.choose: has no effect here"),
        (["self_play.rounds=9"], "self_play.rounds: a round would have no update"),
        (["self_play.weights=base", "parallel=zero2"], "self_play.weights: DeepSpeed holds weights of its own"),
        (["self_play.weights=new"], "self_play.weights"),
        (["data=code", "data.path=nowhere"], "data.path"),
    ],
)
def test_what_cannot_work_is_told_before_anything_starts(words, said, tmp_path: Path) -> None:
    done = program(tmp_path, *words, "run.dir=run")
    assert done.returncode == 2 and said in done.stdout + done.stderr
    assert not (tmp_path / "run" / "metrics.jsonl").exists()


def test_a_store_that_cannot_be_used_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("no store")
    done = program(tmp_path, "self_play.solutions=store", "run.dir=run")
    assert done.returncode == 2 and "self_play.solutions: is no store of solutions" in done.stdout + done.stderr
    assert not (tmp_path / "run" / "evaluation").exists()


def test_data_that_cannot_be_relabelled_are_told(tmp_path: Path) -> None:
    case = {"args": [1], "expected": 2}
    row = {"prompt": "Add one.", "entry_point": "f", "solution": "def f(x): return x + 1", "cases": [case]}
    for split in ("train", "dev", "test"):
        lines = [json.dumps({"id": f"{split}{n}", **row, "prompt": f"Add one to {split} {n}."}) for n in range(4)]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    done = program(tmp_path, "data=code", f"data.path={tmp_path}", "run.dir=run")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "the domain does not say how a task is relabelled" in done.stdout + done.stderr


@pytest.mark.slow
def test_data_without_golds_are_learned_from_by_what_is_found(tmp_path: Path) -> None:
    tasks = Arc(limit=400).splits()["train"][:120]
    rows = [json.dumps(row_of(task, task.id, None)) for task in tasks]
    (tmp_path / "data").mkdir()
    for split, own in (("train", rows[:80]), ("dev", rows[80:100]), ("test", rows[100:])):
        (tmp_path / "data" / f"{split}.jsonl").write_text("\n".join(own) + "\n")
    words = [
        f"data.path={tmp_path}/data",
        "data.limit=0",
        "self_play.transferred=0",
        "run.dir=run",
    ]
    done = program(tmp_path, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    metrics = metrics_of(tmp_path / "run")
    assert metrics[0]["self_play/rows_relabelled"] > 0 and all(row["loss"] > 0 for row in metrics)
    assert not any("held_out/loss" in row for row in metrics), "dev has no golds either"
