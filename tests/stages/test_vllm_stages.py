"""Every stage that samples, with the real vLLM in float32 on a CPU."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from program import json_rows, metrics_of, run_program

from rlvr_exp.core.errors import DONE, GUARD

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("vllm") is None, reason="the package vllm is not installed"),
]
VLLM = ("+experiment=quick", "engine=vllm", "engine.memory_share=0.03", "run.dir=run")
TRAINS = ("grpo", "ppo", "self_play", "adversarial", "cascade")


def run(folder: Path, *words: str) -> dict:
    """The summary of a run that ended well, or that learned nothing."""
    done = run_program(folder, *words, *VLLM, timeout=3000)
    assert done.returncode in (DONE, GUARD if "+stage=grpo" not in words else DONE), done.stdout + done.stderr
    assert "not the policy that is trained" not in done.stderr
    manifest = json.loads((folder / "run" / "manifest.json").read_text())
    assert manifest["engine"]["name"] == "vllm" and manifest["engine"]["version"].startswith("0.")
    return json.loads((folder / "run" / "summary.json").read_text())


@pytest.mark.parametrize("stage", ["evaluate", "infer", "collect", *TRAINS])
def test_every_stage_samples_with_vllm(tmp_path: Path, stage: str) -> None:
    words = ["algorithm.max_steps=2", "run.probe.every_steps=1"] if stage in TRAINS[:2] else []
    run(tmp_path, f"+stage={stage}", *words)
    if words:
        gaps = [row["sync/probe_gap"] for row in metrics_of(tmp_path / "run")]
        assert len(gaps) == 2 and max(gaps) < 1e-4
    if stage == "infer":
        assert json_rows(tmp_path / "run" / "answers.jsonl")


@pytest.mark.parametrize("words", [["model=tiny_lora"], ["engine.dtype=bfloat16"], ["model=smollm2"]])
def test_other_weights(tmp_path: Path, words: list[str]) -> None:
    run(tmp_path, "+stage=grpo", "algorithm.max_steps=2", "run.probe.every_steps=1", *words)
    gaps = [row["sync/probe_gap"] for row in metrics_of(tmp_path / "run")]
    assert len(gaps) == 2 and max(gaps) < (0.1 if "bfloat16" in words[0] else 1e-4)
