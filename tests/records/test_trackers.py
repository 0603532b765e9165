"""Trackio and MLflow with their real packages: what Tracker sends is read back by each package's own reader."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
from completions import completion

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError
from rlvr_exp.evaluation.metrics import Rate
from rlvr_exp.launch.preflight import preflight_problems
from rlvr_exp.records.mlflow import MLflow
from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.records.tracking import Tracker
from rlvr_exp.records.trackio import Trackio

RATES = {"pass_at_1": Rate(0.25, 0.125, 0.5, n=16, samples=8)}
ROW = RolloutRow(completion("rotate-1", "failed", "wrong_answer"), step=1, group=0, prompt="a\ud800", reward=0.4)


def tracked(directory, sink, resume_step=None):
    with Tracker(directory, sink, resume_step) as tracker:
        tracker.rates("before", 0, RATES)
        tracker.log(1 + (resume_step or 0), {"reward/mean": 0.25, "family/a+b": 1, "time/generate": float("nan")})
        tracker.samples([ROW], seed=0)
        tracker.rates("after", 1 + (resume_step or 0), {"pass_at_1": Rate(0.5, 0.25, 0.75, n=16, samples=8)})


@pytest.fixture
def run(tmp_path):
    directory = tmp_path / "run"
    directory.mkdir()
    (directory / "config.yaml").write_text("seed: 7\noptimizer: {lr: 0.001}\n")
    return directory


@pytest.mark.parametrize(("name", "install"), [("trackio", "trackio"), ("mlflow", "'rlvr_exp[mlflow]'")])
def test_a_missing_package_is_refused_before_the_start(monkeypatch, name, install):
    monkeypatch.setitem(sys.modules, name, None)
    (problem,) = preflight_problems(compose(["+stage=grpo", f"tracking={name}"]).config, fetchable=True)
    assert problem.what == f"needs the package {name}" and f"pip install {install}, or" in problem.remedy
    with pytest.raises(InputError, match="tracking=files"):
        Trackio() if name == "trackio" else MLflow()


@pytest.mark.slow
def test_mlflow_has_metrics_rates_samples_and_options(run, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="NO MLFLOW: pip install 'rlvr_exp[mlflow]'")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    tracked(run, MLflow(project="mine", samples=2))
    tracked(run, MLflow(project="mine", samples=2), resume_step=1)
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{run}/mlflow/runs.db")
    again, first = client.search_runs([client.get_experiment_by_name("mine").experiment_id])
    assert first.info.status == "FINISHED" and first.data.params == {"seed": "7", "optimizer.lr": "0.001"}
    assert first.data.tags["group"] == again.data.tags["group"] == "run"
    assert first.data.metrics == {
        "before/pass_at_1": 0.25,
        "before/pass_at_1/low": 0.125,
        "before/pass_at_1/high": 0.5,
        "reward/mean": 0.25,
        "after/pass_at_1": 0.5,
        "after/pass_at_1/low": 0.25,
        "after/pass_at_1/high": 0.75,
        "family/a_b": 1.0,
    }
    assert [one.step for one in client.get_metric_history(again.info.run_id, "reward/mean")] == [2]
    artifacts = run / "mlflow" / first.info.run_id / "artifacts"
    table = json.loads((artifacts / "samples" / "step_000001.json").read_text())
    (shown,) = [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]
    assert (shown["bucket"], shown["prompt"], shown["reward"]) == ("wrong_answer", "a?", "0.4")
    assert (artifacts / "config.yaml").read_text().startswith("seed: 7")


READ = """
import json, sys
from trackio.sqlite_storage import SQLiteStorage as storage
print(json.dumps([[one["step"], one] for name in storage.get_runs("mine") for one in storage.get_logs("mine", name)]))
"""


@pytest.mark.slow
def test_trackio_has_metrics_rates_and_samples(run, monkeypatch):
    if find_spec("trackio") is None:  # Its import reads TRACKIO_DIR, which the run sets before.
        pytest.skip("NO TRACKIO: pip install 'rlvr_exp[trackio]'")
    monkeypatch.delenv("TRACKIO_DIR", raising=False)
    tracked(run, Trackio(project="mine", samples=2))
    env = {**os.environ, "TRACKIO_DIR": str(run / "trackio")}
    done = subprocess.run([sys.executable, "-c", READ], env=env, capture_output=True, text=True, check=True)
    rows = json.loads(done.stdout.splitlines()[-1])
    found = {name: (step, value) for step, row in rows for name, value in row.items()}
    assert found["before/pass_at_1/low"] == (0, 0.125) and found["after/pass_at_1"] == (1, 0.5)
    assert found["reward/mean"] == (1, 0.25) and "time/generate" not in found
    (shown,) = found["samples"][1]["_value"]
    assert (shown["bucket"], shown["prompt"], shown["reward"]) == ("wrong_answer", "a?", "0.4")
