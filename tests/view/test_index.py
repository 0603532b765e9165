"""The index of runs: facts, metrics and samples, read incrementally, whatever state the files are in."""

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_pages import rollouts
from viewed import indexed, runs

from rlvr_exp.records.directory import claimed
from rlvr_exp.records.tracking import Files, Tracker
from rlvr_exp.view import index as module
from rlvr_exp.view.facts import read_facts
from rlvr_exp.view.index import AFTER, BEFORE, Index
from rlvr_exp.view.queries import Filter, all_runs, count, curves, metric_names, samples


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return runs(tmp_path / "runs")


def read_files(index: Index) -> list[str]:
    """The files of samples that a refresh reads."""
    read = []
    reader = module.read_rows
    module.read_rows = lambda path: read.append(path.name) or reader(path)
    try:
        index.refresh()
    finally:
        module.read_rows = reader
    return read


def test_facts_of_every_run(root: Path, tmp_path: Path) -> None:
    with indexed(root, tmp_path).reading() as db:
        begun, first = all_runs(db)
    assert (begun["path"], begun["status"], begun["planned"], begun["samples"]) == (
        "below/begun",
        "not finished",
        9,
        13,
    )
    assert (first["path"], first["status"], first["steps"], first["model"], first["data"]) == (
        "first", "completed", 40, "tiny", "Arc",
    )  # fmt: skip
    before, after = first["rates"]["pass_at_1"]
    assert before["value"] == pytest.approx(5 / 12) and after["low"] < 7 / 12 < after["high"]
    assert first["samples"] == 40 * 8 + 2 * 12 * 9 and first["problems"] == []


def test_runs_that_differ_by_their_seed_are_an_arm(tmp_path: Path) -> None:
    arms = []
    for name, seed, rate in (("a", 0, 0.1), ("b", 1, 0.1), ("c", 1, 0.2)):
        run = tmp_path / name
        run.mkdir()
        (run / "config.yaml").write_text(f"stage: sft\nseed: {seed}\noptimizer: {{lr: {rate}}}\nrun: {{dir: {name}}}\n")
        arms.append(read_facts(tmp_path, run)["arm"])
    assert arms[0] == arms[1] != arms[2]


def test_files_of_other_programs(tmp_path: Path) -> None:
    for name, text in {
        "a": "a: 1\n",
        "b": "[1, 2]",
        "c": "stage: x\nmodel: m\ndata: [d]\nroles: 3\n",
        "d": "\t{",
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text(text)
        (tmp_path / name / "summary.json").write_text('{"before": [1], "after": "x"}')
        (tmp_path / name / "metrics.jsonl").write_text('{"step": "one"}\n')
    with indexed(tmp_path, tmp_path).reading() as db:
        found = {run["path"]: run for run in all_runs(db)}
    assert set(found) == {"c", "d"} and (found["c"]["stage"], found["c"]["model"]) == ("x", "")
    assert "config.yaml" in found["d"]["problems"][0]


def test_only_new_files_and_new_lines_are_read(root: Path, tmp_path: Path) -> None:
    index = indexed(root, tmp_path)
    assert not index.refresh() and read_files(index) == []
    rollouts(root / "first", 41)
    assert read_files(index) == ["step_000041.jsonl.gz"]
    rollouts(root / "first", 40, text="another text")
    assert read_files(index) == ["step_000040.jsonl.gz"]
    with index.reading() as db:
        assert count(db, Filter((1, 2), 40, 41)) == 16
        assert {row["place"] for row in samples(db, Filter((1, 2), text="another"))} == {40}


def test_a_run_in_progress(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "live"
    with claimed(run):
        (run / "config.yaml").write_text("stage: sft\nseed: 0\nalgorithm: {max_steps: 5}\n")
        index = indexed(tmp_path / "runs", tmp_path)
        with index.reading() as db:
            assert [(one["status"], one["steps"]) for one in all_runs(db)] == [("running", 0)]
        with Tracker(run, Files()) as tracker:
            tracker.log(1, {"loss": 2.0})
            assert index.refresh() and not index.refresh()
            tracker.log(1, {"later": 7.0})  # The same row grows.
            tracker.log(2, {"loss": 1.0, "time/step": 3.0})
            with open(run / "metrics.jsonl", "a") as out:
                out.write('{"step": 3, "lo')
            assert index.refresh()
        with index.reading() as db:
            assert curves(db, 1, ["loss", "later"]) == {
                "step": [1, 2], "seconds": [0.0, 3.0], "loss": [2.0, 1.0], "later": [7.0, None],
            }  # fmt: skip
            assert metric_names(db, 1) == ["loss", "later", "time/step"]
            assert [one["steps"] for one in all_runs(db)] == [2]
    index.refresh()
    with index.reading() as db:
        assert [one["status"] for one in all_runs(db)] == ["not finished"]
    Tracker(run, Files(), resume_step=1).close()  # The resumed run starts again after its checkpoint.
    index.refresh()
    with index.reading() as db:
        assert curves(db, 1, ["loss"])["step"] == [1]


def test_damaged_files_are_named_and_the_rest_is_shown(root: Path, tmp_path: Path) -> None:
    run = root / "first"
    torn = run / "rollouts" / "step_000007.jsonl.gz"
    torn.write_bytes(torn.read_bytes()[:-30])
    (run / "rollouts" / "step_000008.jsonl.gz").write_bytes(gzip.compress(b'{"step": 8, "task": "t"}\n[1]\n'))
    (run / "rollouts" / "step_000009.jsonl.gz").write_bytes(b"no gzip")
    (run / "summary.json").write_text("{[")
    with indexed(root, tmp_path).reading() as db:
        first = all_runs(db)[1]
        assert [count(db, Filter((first["id"],), step, step)) for step in range(6, 11)] == [8, 4, 1, 0, 8]
    told = "\n".join(first["problems"])
    assert first["status"] == "not finished"
    for name in ("summary.json", "step_000007", "step_000008.jsonl.gz: row 2", "step_000009"):
        assert name in told


def test_what_is_gone_leaves_the_index(root: Path, tmp_path: Path) -> None:
    index = indexed(root, tmp_path)
    for path in sorted((root / "first").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    assert index.refresh()
    with index.reading() as db:
        assert [run["path"] for run in all_runs(db)] == ["below/begun"]
        assert db.execute("SELECT count(*) FROM samples").fetchone() == (13,)
        assert db.execute("SELECT count(*) FROM metrics").fetchone() == (0,)


def test_links_that_leave_the_folder_are_not_followed(root: Path, tmp_path: Path) -> None:
    outside = runs(tmp_path / "outside") / "first"
    (root / "linked").symlink_to(outside)
    stolen = root / "stolen"
    (stolen / "evaluation").mkdir(parents=True)
    (stolen / "config.yaml").write_text("stage: grpo\n")
    (stolen / "rollouts").symlink_to(outside / "rollouts")
    for name in ("metrics.jsonl", "summary.json", "manifest.json", "report.html", ".lock", "evaluation/after.jsonl.gz"):
        (outside / name).touch()
        (stolen / name).symlink_to(outside / name)
    (stolen / "answers.jsonl").symlink_to("/etc/passwd")
    os.mkfifo(stolen / "evaluation" / "before.jsonl.gz")
    with indexed(root, tmp_path).reading() as db:
        found = {run["path"]: run for run in all_runs(db)}
        assert set(found) == {"below/begun", "first", "stolen"}
        facts = {name: found["stolen"][name] for name in ("status", "steps", "samples", "rates", "pages", "created")}
        assert facts == {"status": "not finished", "steps": 0, "samples": 0, "rates": {}, "pages": [], "created": ""}


def test_a_damaged_or_old_index_is_built_again(root: Path, tmp_path: Path) -> None:
    index = indexed(root, tmp_path)
    index.path.write_bytes(b"no database" * 1000)
    assert indexed(root, tmp_path).path.stat().st_size > 20_000
    with index.reading() as db:
        assert len(all_runs(db)) == 2
        db.execute("PRAGMA query_only = OFF")
        db.execute("PRAGMA user_version = 99")
    with indexed(root, tmp_path).reading() as db:
        assert len(all_runs(db)) == 2 and db.execute("PRAGMA user_version").fetchone() == (module.VERSION,)


def test_nothing_is_written_into_the_folder(root: Path, tmp_path: Path) -> None:
    def state() -> dict[Path, tuple[float, bytes]]:
        return {path: (path.stat().st_mtime, path.read_bytes()) for path in root.rglob("*") if path.is_file()}

    before = state()
    indexed(root, tmp_path).refresh()
    assert state() == before


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "outcome": st.sampled_from(["passed", "failed"]),
            "reward": st.none() | st.floats(-1, 1),
            "word": st.sampled_from("abc"),
        }
    ),
    max_size=8,
)


@given(st.dictionaries(st.sampled_from([BEFORE, 1, 2, 3, AFTER]), ROWS), st.sampled_from("abc"), st.floats(-1, 1))
def test_filters_agree_with_the_rows(tmp_path_factory: pytest.TempPathFactory, files, word: str, low: float) -> None:
    """Files written by hand: the index answers what a loop over their rows answers."""
    root = tmp_path_factory.mktemp("runs")
    (root / "config.yaml").write_text("stage: grpo\n")
    names = {BEFORE: "evaluation/before.jsonl.gz", AFTER: "evaluation/after.jsonl.gz"}
    for place, rows in files.items():
        path = root / names.get(place, f"rollouts/step_{place:06d}.jsonl.gz")
        path.parent.mkdir(exist_ok=True)
        lines = [
            {**row, "task": f"t{k % 3}", "group": k % 3, "prompt": "p", "completion": f"x {row['word']}"}
            for k, row in enumerate(rows)
        ]
        path.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    index = indexed(root, root)
    every = [(place, k, row) for place, rows in sorted(files.items()) for k, row in enumerate(rows)]
    with index.reading() as db:
        for chosen, kept in {
            Filter((1,)): lambda place, row: True,
            Filter((1,), 1, 2): lambda place, row: 1 <= place <= 2,
            Filter((1,), outcome="failed"): lambda place, row: row["outcome"] == "failed",
            Filter((1,), text=word): lambda place, row: row["word"] == word,
            Filter((1,), low=low, outcome="passed"): lambda place, row: (
                row["outcome"] == "passed" and row["reward"] is not None and row["reward"] >= low
            ),
        }.items():
            wanted = [(place, k) for place, k, row in every if kept(place, row)]
            assert count(db, chosen) == len(wanted)
            assert [(row["place"], row["row"]) for row in samples(db, chosen)] == wanted
        ranked = [row["reward"] for row in samples(db, Filter((1,)), "reward", True)]
        known = [reward for reward in ranked if reward is not None]
        assert known == sorted(known, reverse=True) and ranked[: len(known)] == known
