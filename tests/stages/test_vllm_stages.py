"""Every stage that samples, with the real vLLM in float32 on a CPU."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from program import json_rows, metrics_of, run_program
from trajectories import STAGES, forked, killed_and_resumed

from rlvr_exp.core.errors import DONE

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("vllm") is None, reason="the package vllm is not installed"),
]
VLLM = ("+experiment=quick", "engine=vllm")
TRAINS = ("grpo", "ppo", "srl", "self_play", "adversarial", "cascade")
TWO_STEPS = ("algorithm.max_steps=2", "run.probe.every_steps=1")


def run(folder: Path, *words: str) -> dict:
    """The summary of a run that ended well."""
    done = run_program(folder, *words, *VLLM, "run.dir=run", timeout=3000)
    assert done.returncode == DONE, done.stdout + done.stderr
    manifest = json.loads((folder / "run" / "manifest.json").read_text())
    assert manifest["engine"]["name"] == "vllm" and manifest["engine"]["version"].startswith("0.")
    return json.loads((folder / "run" / "summary.json").read_text())


def gaps(folder: Path) -> list[float]:
    """Differences to the trainer's log-probabilities at each step."""
    return [row["sync/probe_gap"] for row in metrics_of(folder / "run")]


@pytest.mark.parametrize("stage", ["evaluate", "infer", "collect", *TRAINS])
def test_every_stage_samples_with_vllm(tmp_path: Path, stage: str) -> None:
    words = TWO_STEPS if stage in ("grpo", "ppo") else ()
    summary = run(tmp_path, f"+stage={stage}", *words)
    assert (summary["steps"] > 0) == (stage in TRAINS)
    if words:
        assert len(gaps(tmp_path)) == 2 and max(gaps(tmp_path)) < 1e-4
    if stage == "infer":
        assert json_rows(tmp_path / "run" / "answers.jsonl")


@pytest.mark.parametrize(
    ("words", "most"),
    [
        (["model=tiny_lora"], 1e-4),
        (["engine.dtype=bfloat16"], 0.1),
        (["model=smollm2"], 1e-4),
        (["environment=retry"], 1e-4),
        (["parallel=ddp", "parallel.processes=2"], 1e-4),
    ],
)
def test_other_weights_episodes_and_processes(tmp_path: Path, words: list[str], most: float) -> None:
    assert run(tmp_path, "+stage=grpo", *TWO_STEPS, *words)["steps"] == 2
    assert len(gaps(tmp_path)) == 2 and max(gaps(tmp_path)) < most


def test_a_killed_run_resumes_with_the_same_results(tmp_path: Path) -> None:
    words = [*STAGES["grpo"], "engine=vllm"]
    assert killed_and_resumed(forked, "grpo", "generation", tmp_path, words=words) == []
