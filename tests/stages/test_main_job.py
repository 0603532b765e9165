"""The main job through its command, end to end: command, config, tasks, rollouts, verdicts, updates, summary, report."""

import csv
import json
import math
import re
import subprocess
import textwrap
from pathlib import Path

import pytest
from page_commands import PACKAGE
from program import ENVIRONMENT, PROGRAM, metrics_of, run_program

from rlvr_exp.records.rollout_files import read_evaluation, read_rollouts, rollout_steps

PAGES = PACKAGE / "docs"
WORDS = ["+stage=grpo", "+experiment=quick", "algorithm.kl_coef=0.01", "optimizer.gradient_cosine=true", "seed=1"]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A quick run with a KL term, so that a reference is loaded and used as well."""
    place = tmp_path_factory.mktemp("main_job")
    done = run_program(place, *WORDS, "run.dir=run")
    log = place / "run" / "log.txt"
    assert done.returncode == 0, done.stdout + done.stderr + (log.read_text() if log.exists() else "")
    return place / "run"


def summary_of(run: Path) -> dict:
    return json.loads((run / "summary.json").read_text())


def test_the_summary_tells_what_was_done_and_measured(run):
    summary = summary_of(run)
    assert (summary["stage"], summary["status"], summary["steps"]) == ("grpo", "completed", 3)
    for side in ("before", "after"):
        assert set(summary[side]) >= {"pass_at_1", "pass_at_1_greedy", "pass_at_8"}
        for rate in summary[side].values():
            assert 0 <= rate["low"] <= rate["value"] <= rate["high"] <= 1 and rate["n"] == 16


def test_one_row_of_metrics_a_step_and_the_same_as_csv(run):
    rows = metrics_of(run)
    assert [row["step"] for row in rows] == [1, 2, 3]
    wanted = {"loss", "grad_norm", "learning_rate", "entropy", "kl", "reward/mean", "success/mean"}
    wanted |= {"clip/low", "clip/high", "kl/old", "grad_norm/after", "grad_norm/clipped"}
    wanted |= {"time/generate", "time/verify", "time/update", "time/step"}
    for row in rows:
        assert wanted <= set(row) and all(math.isfinite(row[name]) for name in wanted)
        parts = row["samples/trained"] + row["samples/filtered"] + row["samples/no_verdict"]
        assert parts == row["samples/sampled"] == 8 * 4 and row["samples/pending"] == row["collected/waiting"] == 0
        assert row["collected/asked"] == 8 * row["step"]
    assert "grad_cosine" not in rows[0] and all(-1 < row["grad_cosine"] < 1 for row in rows[1:])
    with open(run / "metrics.csv") as file:
        assert [int(row["step"]) for row in csv.DictReader(file)] == [1, 2, 3]


def test_the_reference_is_the_policy_as_it_started(run):
    divergence = [row["kl"] for row in metrics_of(run)]
    assert abs(divergence[0]) < 1e-6 < divergence[-1]


def test_rollouts_hold_every_sample_with_its_verdict(run):
    files = rollout_steps(run)
    assert list(files) == [1, 2, 3]
    for step, row in zip(files, metrics_of(run), strict=True):
        samples = read_rollouts(files[step])
        assert len(samples) == 32 and {sample.step for sample in samples} == {step}
        passed = sum(sample.completion.correct for sample in samples)
        assert row["success/mean"] == pytest.approx(passed / (32 - row["samples/no_verdict"]))
        assert sum(sample.advantage is not None for sample in samples) == row["samples/trained"]
        assert {(s.group, s.completion.sample) for s in samples} == {(g, s) for g in range(8) for s in range(4)}


def test_training_changed_the_weights_and_they_load_plainly(run):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from rlvr_exp.config.model import EMBEDDED_MODELS

    latest = run / "checkpoints" / "latest"
    assert latest.resolve().name == "step_000003"
    trained = AutoModelForCausalLM.from_pretrained(latest, dtype=torch.float32).state_dict()
    base = AutoModelForCausalLM.from_pretrained(EMBEDDED_MODELS / "tiny", dtype=torch.float32).state_dict()
    assert any(not torch.equal(trained[name], base[name]) for name in base)
    assert (
        AutoTokenizer.from_pretrained(latest)("I\n1\n").input_ids
        == AutoTokenizer.from_pretrained(EMBEDDED_MODELS / "tiny")("I\n1\n").input_ids
    )


def test_the_manifest_names_data_versions_and_isolation(run):
    manifest = json.loads((run / "manifest.json").read_text())
    text = json.dumps(manifest)
    assert manifest["data"]["train"]["tasks"] == 12000 and len(manifest["data"]["train"]["fingerprint"]) == 32
    assert manifest["verifier"]["name"] == "python_io" and "level" in manifest["verifier"]["isolation"]
    assert '"trl": "1.16.0"' in text and "+experiment=quick" in text


def test_the_report_stands_alone(run):
    page = (run / "report.html").read_text()
    assert "def solve" in page and "http://" not in page.replace("http://www.w3.org", "") and "https://" not in page


def test_the_page_of_the_run_directory_reads_one(run):
    page = (PAGES / "checkpoints.md").read_text().partition("## Reading a run\n\n")[2].partition("\n## ")[0]
    found: dict = {}
    exec(textwrap.dedent(page).replace("outputs/2026-11-02/10-00-00_grpo", str(run)), found)
    assert found["success"] == summary_of(run)["after"]["pass_at_1"] and len(found["losses"]) == 3
    assert 0 < len(found["passed"]) < 8 * 4 and len(found["answers"]) == len(read_evaluation(run, "after")) > 0


def test_the_same_seed_gives_the_same_run(run, tmp_path):
    assert run_program(tmp_path, *WORDS, "run.dir=again").returncode == 0
    plain = [{k: v for k, v in row.items() if not k.startswith(("time/", "system/"))} for row in metrics_of(run)]
    again = [
        {k: v for k, v in row.items() if not k.startswith(("time/", "system/"))}
        for row in metrics_of(tmp_path / "again")
    ]
    assert again == plain
    assert read_evaluation(tmp_path / "again", "after") == read_evaluation(run, "after")


def test_evaluate_measures_a_checkpoint_against_a_run(run, tmp_path):
    words = ["+stage=evaluate", "+experiment=quick", f"model.path={run}/checkpoints/latest", f"evaluate.baseline={run}"]
    done = run_program(tmp_path, *words, "seed=1", "run.dir=measured")
    assert done.returncode == 0, done.stdout + done.stderr
    summary = summary_of(tmp_path / "measured")
    assert summary["before"] == {} and summary["after"] == summary_of(run)["after"]
    same = summary["metrics"]["difference/pass_at_1"]
    assert (same["value"], same["won"], same["lost"], same["n"]) == (0.0, 0, 0, 16)
    assert f"change against {run}, paired by task:" in done.stdout and "pass_at_1: +0.0 points" in done.stdout
    assert (
        re.search(r"held out (\d+)/\1 completions  [\d,]+ tokens/s  success", done.stdout)
        and "evaluate after" not in done.stdout
    )
    tables = [(folder / "evaluation" / "tasks.csv").read_text().splitlines() for folder in (run, tmp_path / "measured")]
    for table in tables:
        assert len(table) == 17 and [float(line.split(",")[2]) for line in table[1:]] == sorted(
            float(line.split(",")[2]) for line in table[1:]
        )


@pytest.mark.slow
def test_compare_lays_two_runs_side_by_side(run, tmp_path):
    other = run_program(tmp_path, "+stage=grpo", "+experiment=quick", "algorithm.kl_coef=0.02", "run.dir=other")
    assert other.returncode == 0
    done = run_program(tmp_path, "+stage=compare", f"compare.runs=[{run},{tmp_path / 'other'}]", "run.dir=compared")
    assert done.returncode == 0, done.stdout + done.stderr
    text = (tmp_path / "compared" / "compare.json").read_text()
    assert "algorithm.kl_coef" in text and "pass_at_1" in text and "optimizer.lr" not in text


SMALL = ["+stage=grpo", "+experiment=quick", "algorithm.max_steps=1", "evaluation.tasks=2", "evaluation.samples=2"]
MACHINE = ("time/", "system/")


def train(place: Path, name: str) -> Path:
    words = [*PROGRAM, *SMALL, f"cache.path={place / 'cache'}", f"run.dir={name}"]
    done = subprocess.run(words, cwd=place, env=ENVIRONMENT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return place / name


def measured(run: Path) -> list[dict]:
    return [{name: value for name, value in row.items() if not name.startswith(MACHINE)} for row in metrics_of(run)]


@pytest.mark.slow
def test_training_is_the_same_with_a_cold_and_a_warm_cache(tmp_path):
    cold, warm = train(tmp_path, "cold"), train(tmp_path, "warm")
    assert measured(cold) == measured(warm) and measured(cold)[0]["reward/mean"] is not None
    hits = [metrics_of(run)[-1]["system/verifier_cache_hits_disk"] for run in (cold, warm)]
    assert (
        hits[0] == 0 < hits[1]
        and metrics_of(warm)[-1]["system/verifier_judged"] < metrics_of(cold)[-1]["system/verifier_judged"]
    )
    for step, path in rollout_steps(cold).items():
        assert read_rollouts(path) == read_rollouts(rollout_steps(warm)[step])
    before, after = (json.loads((run / "summary.json").read_text())["after"] for run in (cold, warm))
    assert before == after
