"""Every stage that uses a policy, on one pretended CUDA device, and training processes on one and two devices."""

import json
import math
import shutil
from pathlib import Path

import pytest
from rehearsal import NEEDS_COMPILER, SMALL, completed

pytestmark = [NEEDS_COMPILER, pytest.mark.slow]
LORA = ("model=tiny_lora", "model.dtype=bfloat16", "model.gradient_checkpointing=true")
NF4 = (*LORA, "model.quantization=4bit")
FEW_PROMPTS = ("algorithm.prompts_per_step=2", "algorithm.group_size=4")
STAGES = {
    "ppo": ("+stage=ppo",),
    "sft": ("+stage=sft", "data.limit=40"),
    "srl": ("+stage=srl", "data.limit=100", *FEW_PROMPTS),
    "adversarial": ("+stage=adversarial", *FEW_PROMPTS),
    "self_play": ("+stage=self_play", "data.limit=400", "run.select.tasks=2"),
    "lora": ("+stage=grpo", *LORA),
    "nf4": ("+stage=grpo", *NF4),
    "filters": ("+stage=grpo", "algorithm.top_k=20", "algorithm.top_p=0.9", "algorithm.min_p=0.01"),
}
SHARED = "parallel.share_device=true"
PROCESSES = {
    "ddp_one_device": (1, "parallel=ddp", SHARED),
    "ddp": (2, "parallel=ddp"),
    "zero2_nf4": (2, "parallel=zero2", *NF4),
    "zero3": (2, "parallel=zero3"),
    "zero3_offload": (2, "parallel=zero3_offload"),
    "zero2_nf4_one_device": (1, "parallel=zero2", SHARED, *NF4),
    "zero3_one_device": (1, "parallel=zero3", SHARED),
    "zero3_offload_one_device": (1, "parallel=zero3_offload", SHARED),
}


def losses(folder: Path) -> list[float]:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    found = [row["loss"] for row in rows if "loss" in row]
    assert found and all(map(math.isfinite, found))
    return found


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_trains_on_one_device(stage: str, tmp_path: Path) -> None:
    first, *words = STAGES[stage]
    run = completed(tmp_path / "run", first, *SMALL, *words)
    assert run.reports[-1]["updates"] and losses(run.folder)


def test_the_roles_of_a_cascade_train_on_one_device(dafny: object, tmp_path: Path) -> None:
    run = completed(tmp_path / "run", "+stage=cascade", *SMALL, "verifier.validate=1", *FEW_PROMPTS)
    assert run.reports[-1]["updates"] and losses(run.folder)


@pytest.mark.parametrize("plan", PROCESSES)
def test_two_processes_train(plan: str, tmp_path: Path) -> None:
    devices, *words = PROCESSES[plan]
    run = completed(tmp_path / "run", "+stage=grpo", *SMALL, *words, devices=devices)
    first, second = sorted(run.reports, key=lambda report: report["rank"])
    assert first["updates"] and second["updates"] and losses(run.folder)


def test_answers_are_inferred_on_one_device(tmp_path: Path) -> None:
    output = tmp_path / "answers.jsonl"
    words = ("infer.tasks=3", "infer.decoding=sample", "infer.samples=2", f"infer.output={output}")
    completed(tmp_path / "run", "+stage=infer", *SMALL[:1], *SMALL[-1:], *words)
    assert len(output.read_text().splitlines()) == 3


def test_trajectories_are_collected_on_one_device(tmp_path: Path) -> None:
    output = tmp_path / "trajectories.jsonl"
    words = ("collect.tasks=3", "collect.samples=2", f"collect.output={output}")
    completed(tmp_path / "run", "+stage=collect", *SMALL[:1], *SMALL[-1:], *words)
    assert len(output.read_text().splitlines()) == 6


def test_a_resumed_run_repeats_the_steps_of_the_whole_run(tmp_path: Path) -> None:
    words = ("+stage=grpo", *SMALL, "run.checkpoint.every_steps=1", "algorithm.max_steps=3")
    whole = losses(completed(tmp_path / "whole", *words).folder)
    resumed = shutil.copytree(tmp_path / "whole", tmp_path / "resumed")
    for step in (2, 3):
        shutil.rmtree(resumed / "checkpoints" / f"step_{step:06d}")
    (resumed / "summary.json").unlink()
    run = completed(resumed, *words, "run.resume=auto")
    assert losses(resumed) == whole and len(run.reports[0]["updates"]) == 2
