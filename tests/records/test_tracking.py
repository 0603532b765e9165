"""The metrics of a run, their copies for viewers, and the samples that viewers show."""

import csv
import json
import math
import subprocess
import sys
from dataclasses import replace

import pytest
from completions import completion
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError
from rlvr_exp.evaluation.metrics import Rate
from rlvr_exp.launch.preflight import preflight_problems
from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.records.tracking import COLUMNS, MOST_TEXT, Files, Tracker, WandB, chosen, read_metrics, table

NAMES = st.sampled_from(["reward/mean", "loss", "kl", "verdict/passed", "time/generate", 'odd,"name"'])
RUNS = st.lists(st.dictionaries(NAMES, st.floats(width=32) | st.integers(-5, 5), max_size=5), max_size=8)


def strict_rows(directory):
    def refuse(constant):
        raise ValueError(constant)

    text = (directory / "metrics.jsonl").read_text()
    return [json.loads(line, parse_constant=refuse) for line in text.splitlines()]


def csv_rows(directory):
    with open(directory / "metrics.csv", newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.property(25)
@settings(deadline=None, max_examples=tries(40))
@given(RUNS)
def test_every_logged_number_is_in_both_files(tmp_path_factory, run):
    directory = tmp_path_factory.mktemp("run")
    tracker = Tracker(directory, Files())
    for step, metrics in enumerate(run):
        tracker.log(step, metrics)
        assert_complete(directory, run[: step + 1])
    tracker.close()
    assert_complete(directory, run)


def assert_complete(directory, run):
    rows, table = strict_rows(directory), csv_rows(directory)
    assert len(rows) == len(table) == len(run)
    for step, (metrics, row, cells) in enumerate(zip(run, rows, table, strict=True)):
        expected = {name: value if math.isfinite(value) else None for name, value in metrics.items()}
        assert row == {"step": step, **expected}
        named = {name: None if value == "" else float(value) for name, value in cells.items()}
        assert named == {**dict.fromkeys(cells), "step": step, **expected}


def test_rows_are_readable_before_close_and_columns_may_grow(tmp_path):
    tracker = Tracker(tmp_path, Files())
    tracker.log(1, {"loss": 2.0})
    tracker.log(2, {"reward/mean": 0.5})
    assert tracker.last == {"reward/mean": 0.5}
    assert (tmp_path / "metrics.csv").read_text() == "step,loss,reward/mean\n1,2.0,\n2,,0.5\n"
    tracker.log(3, {"loss": 1.0})
    assert (tmp_path / "metrics.csv").read_text().endswith("3,1.0,\n")


@settings(deadline=None, max_examples=tries(20))
@given(RUNS, st.integers(0, 3))
def test_what_is_logged_for_a_step_at_several_times_shares_its_row(tmp_path_factory, run, resume_step):
    directory = tmp_path_factory.mktemp("run")
    for start, resume in ((0, None), (resume_step + 1, resume_step)):
        with Tracker(directory, Files(), resume) as tracker:
            for step, metrics in list(enumerate(run))[start:]:
                tracker.log(step, {})
                for name, value in metrics.items():
                    tracker.log(step, {name: value})
        assert_complete(directory, run)
    if run:
        with Tracker(directory, Files(), len(run) - 1) as tracker:
            tracker.log(len(run) - 1, {"held_out/loss": 0.5})
        assert_complete(directory, [*run[:-1], run[-1] | {"held_out/loss": 0.5}])


def test_resuming_gives_the_files_of_an_uninterrupted_run(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    metrics = [{"loss": 1 / (step + 1)} | ({"eval": 0.5} if step == 4 else {}) for step in range(8)]
    for directory, steps in ((whole, range(8)), (cut, range(6))):
        directory.mkdir()
        with Tracker(directory, Files()) as tracker:
            for step in steps:
                tracker.log(step, metrics[step])
    with open(cut / "metrics.jsonl", "a") as torn:
        torn.write('{"step": 6, "lo')
    with Tracker(cut, Files(), resume_step=3) as tracker:
        for step in range(4, 8):
            tracker.log(step, metrics[step])
    for name in ("metrics.jsonl", "metrics.csv"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes()


def test_a_second_run_in_one_directory_is_refused_not_mixed(tmp_path):
    with Tracker(tmp_path, Files()) as tracker:
        tracker.log(1, {"loss": 1.0})
    with pytest.raises(ValueError, match="holds rows already"):
        Tracker(tmp_path, Files())
    assert read_metrics(tmp_path) == [{"step": 1, "loss": 1.0}]


@pytest.mark.parametrize(
    "step, metrics, message",
    [
        (4, {"kl": 0.0}, "step 4 after step 5"),
        (5, {"loss": 1.0}, "loss logged twice for step 5"),
        (6, {"step": 1}, "'step'"),
    ],
)
def test_a_row_that_would_confuse_readers_is_refused(tmp_path, step, metrics, message):
    tracker = Tracker(tmp_path, Files())
    tracker.log(5, {"loss": 1.0})
    with pytest.raises(ValueError, match=message):
        tracker.log(step, metrics)
    assert len(strict_rows(tmp_path)) == 1


def test_a_missing_package_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(InputError, match="pip install wandb, or choose tracking=files"):
        WandB()


@pytest.mark.heavy
def test_building_it_imports_no_package():
    code = "import sys; from rlvr_exp.records.tracking import WandB; WandB();"
    code += "sys.exit(bool({'wandb', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_logging_after_close_is_refused(tmp_path):
    tracker = Tracker(tmp_path, Files())
    assert tracker.last == {}
    tracker.close()
    tracker.close()
    with pytest.raises(ValueError, match="closed already"):
        tracker.log(1, {})


@pytest.mark.heavy
def test_wandb_runs_offline_under_the_run_directory(tmp_path, monkeypatch):
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    directory = tmp_path / "run"
    with Tracker(directory, WandB()) as tracker:
        tracker.rates("before", 0, {"pass_at_1": Rate(0.25, 0.125, 0.5, n=16, samples=8)})
        tracker.log(1, {"reward/mean": 0.25})
    (written,) = (directory / "wandb").glob("offline-run-*/run-*.wandb")
    assert all(name in written.read_bytes() for name in (b"reward/mean", b"before/pass_at_1"))
    assert strict_rows(directory) == [{"step": 1, "reward/mean": 0.25}]


def test_wandb_online_without_a_key_is_refused_before_the_start(tmp_path, monkeypatch):
    for name in ("WANDB_API_KEY", "WANDB_IDENTITY_TOKEN_FILE", "WANDB_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "keys"))
    config = compose(["+stage=grpo", "tracking=wandb", "tracking.mode=online"]).config
    (problem,) = preflight_problems(config, fetchable=True)
    assert problem.where == "tracking.mode" and "no key" in problem.what
    (tmp_path / "keys").write_text("machine api.wandb.ai login user password secret\n")
    assert list(preflight_problems(config, fetchable=True)) == []
    (tmp_path / "keys").write_text("machine elsewhere.org login user password secret\n")
    assert list(preflight_problems(config, fetchable=True)) == [problem]
    monkeypatch.setenv("WANDB_API_KEY", "secret")
    assert list(preflight_problems(config, fetchable=True)) == []


COMPLETION = completion("rotate-1", "failed", "wrong_answer", log="case 2 | expected\n<b>1</b>")
ROW = RolloutRow(COMPLETION, step=1, group=0, prompt="1 2", reward=0.4, advantage=-0.5)
REWARDS = st.lists(st.none() | st.floats(-1, 1), min_size=1, max_size=12)


def rows(rewards):
    return [
        replace(ROW, completion=replace(COMPLETION, sample=place), reward=reward)
        for place, reward in enumerate(rewards)
    ]


@settings(deadline=None)
@given(REWARDS, st.integers(1, 8), st.integers(0, 9))
def test_the_best_and_the_worst_come_first_and_none_comes_twice(rewards, count, seed):
    found = chosen(rows(rewards), count, seed)
    assert found == chosen(rows(rewards)[::-1], count, seed), "whatever their order"
    assert len(found) == len({row.completion.sample for row in found}) == min(count, len(rewards))
    paid = [reward for reward in rewards if reward is not None]
    if paid and count >= 2:
        shown = {row.reward for row in found[:2]}
        assert {max(paid), min(paid)} <= shown


def test_long_texts_are_cut_with_their_rest_counted():
    (cells,) = table([replace(ROW, completion=replace(COMPLETION, text="x" * (MOST_TEXT + 5)))], 1, 0)
    shown = dict(zip(COLUMNS, cells, strict=True))
    assert shown["completion"].endswith("x [... 5 characters more]") and shown["bucket"] == "wrong_answer"


def test_samples_of_a_step_that_was_not_logged_are_not_shown(tmp_path):
    class Taken(Files):
        samples, tables = 2, []

        def table(self, step, rows):
            self.tables.append((step, len(rows)))

    with Tracker(tmp_path, Taken()) as tracker:
        tracker.log(1, {"loss": 1.0})
        tracker.samples(rows([0.1, 0.2, 0.3]), 0)
        tracker.samples([replace(ROW, step=2)], 0)
        tracker.samples([], 0)
    assert Taken.tables == [(1, 2)]
