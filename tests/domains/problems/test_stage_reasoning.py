"""Problems in stages through the command: imitation, evaluation and GRPO of a small policy, and a tester's tests."""

import gzip
import json
import subprocess
from pathlib import Path

import pytest
from program import ENVIRONMENT, PROGRAM

SMALL = ["data=problems", "data.limit=24", "evaluation.tasks=3", "evaluation.samples=2", "sandbox.workers=1"]
LEAST = ["data.limit=24", "evaluation.tasks=1", "evaluation.samples=1", "sandbox.workers=1", "environment.mask=none"]
SCRATCH = ["model=tiny_solver", "model.from_scratch=true", "optimizer=muon", "model.max_completion_tokens=24"]


def program(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *words], cwd=place, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def imitated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("imitated")
    words = [
        "+stage=sft",
        *SMALL,
        *SCRATCH,
        "environment=reasoning",
        "algorithm.max_steps=2",
        "algorithm.batch_size=16",
    ]
    done = program(place, *words, "algorithm.max_sequence_tokens=320", "run.dir=run")
    assert done.returncode == 0, done.stdout + done.stderr
    return place


@pytest.mark.slow
def test_imitation_sees_the_golds_of_all_stages_and_the_chain_is_kept_with_each_answer(imitated: Path) -> None:
    found = json.loads((imitated / "run" / "manifest.json").read_text())["imitation"]
    assert found["examples"] == 24 * 5 and found["held_out"] == 24 * 5
    lines = gzip.open(imitated / "run" / "evaluation" / "after.jsonl.gz", "rt").read().splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 3 * 3 and all("stages" in row["about"] for row in rows)
    assert {row["bucket"] for row in rows} <= {"parse", "truncated", "resolve", "runtime_error", "wrong_answer", None}


@pytest.mark.slow
def test_grpo_compares_outputs_stage_by_stage(imitated: Path) -> None:
    words = ["+stage=grpo", *SMALL, "environment=reasoning", "algorithm.max_steps=1", "algorithm.prompts_per_step=2"]
    words += ["algorithm.group_size=4", "run.select.times=0", "model.path=run/checkpoints/latest"]
    done = program(imitated, *words, "run.dir=grpo")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    if done.returncode == 3:
        assert "none had anything to learn from" in done.stdout + done.stderr
    (step,) = (imitated / "grpo" / "rollouts").glob("*.jsonl.gz")
    rows = [json.loads(line) for line in gzip.open(step, "rt")]
    stages = {row["about"]["stage"] if "about" in row else row["stage"] for row in rows}
    assert "reasoning" in stages and stages <= {"reasoning", "plan", "pseudocode", "constraints", "code"}


@pytest.mark.slow
def test_a_solver_and_a_tester_are_two_policies_of_one_run(tmp_path: Path) -> None:
    words = ["+stage=adversarial", "schedule.mode=joint", "environment.tests=3", "algorithm.max_steps=1", *LEAST]
    done = program(tmp_path, *words, "algorithm.prompts_per_step=2", "algorithm.group_size=4", "run.dir=run")
    assert done.returncode == 0, done.stdout + done.stderr
    latest = tmp_path / "run" / "checkpoints" / "latest"
    assert {"solver", "tester"} <= {path.name for path in latest.iterdir()}
    (row,) = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert row["episode/whole"] > 0 and {"solver/loss", "tester/loss"} <= row.keys()


@pytest.mark.slow
def test_a_testers_answers_are_measured_by_validity_and_what_they_catch(imitated: Path) -> None:
    words = ["+stage=validate", "data=problems", "role=tester", "data.limit=6", "sandbox.workers=1"]
    done = program(imitated, *words, "run.dir=validated")
    assert done.returncode == 0, done.stdout + done.stderr
    rates = json.loads((imitated / "validated" / "summary.json").read_text())
    assert "100.0%" in done.stdout + done.stderr and rates["status"] == "completed"
