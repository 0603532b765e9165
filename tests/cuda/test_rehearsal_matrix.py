"""Stages that use a policy, on one pretended CUDA device, and training processes on one and on two. test_rehearsal.py holds the
others."""

import math
import shutil
from pathlib import Path

import pytest
from rehearsal import LORA, NEEDS_COMPILER, NF4, QUICK, SMALL, Rehearsal, completed

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny.tool import find

pytestmark = [NEEDS_COMPILER, pytest.mark.slow]
FEW = ("algorithm.max_steps=2", "model.max_completion_tokens=6")
STAGES = {
    "ppo": ("+stage=ppo", *SMALL),
    "sft": ("+stage=sft", *QUICK, *FEW, "data.limit=40"),
    "srl": ("+stage=srl", *QUICK),
    "adversarial": ("+stage=adversarial", *QUICK, "schedule.start_stage=5", "algorithm.max_steps=3"),
    "self_play": ("+stage=self_play", *QUICK, *FEW, "data.limit=400", "run.select.tasks=2"),
    "grpo_filters": ("+stage=grpo", *SMALL, "algorithm.top_k=20", "algorithm.top_p=0.9", "algorithm.min_p=0.01"),
    "grpo_lora": ("+stage=grpo", *SMALL, *LORA),
    "grpo_nf4": ("+stage=grpo", *SMALL, *NF4),
    "sdpo_lora": ("+stage=grpo", *SMALL, "algorithm=sdpo", *LORA),
    "distill": ("+stage=distill", *SMALL, "model.from_scratch=true", "roles.teacher.model.embedded=tiny"),
}
LOSSES = ("loss", "writer/loss", "annotator/loss", "solver/loss", "tester/loss")
SHARED = "parallel.share_device=true"
PROCESSES = {
    "ddp_one_device": (1, "parallel=ddp", SHARED),
    "zero2_nf4": (2, "parallel=zero2", *NF4),
    "zero2_nf4_one_device": (1, "parallel=zero2", SHARED, *NF4),
    "zero3": (2, "parallel=zero3"),
    "zero3_one_device": (1, "parallel=zero3", SHARED),
    "zero3_srpo": (2, "parallel=zero3", "algorithm=srpo", "algorithm.teacher_update_rate=1"),
    "zero3_offload": (2, "parallel=zero3_offload"),
    "zero3_offload_one_device": (1, "parallel=zero3_offload", SHARED),
}


def losses(run: Rehearsal) -> list[float]:
    """Of every step, or of every role in every step."""
    found = [value for row in run.metrics for name, value in row.items() if name in LOSSES]
    assert found and all(map(math.isfinite, found))
    return found


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_trains_on_one_device(stage: str, tmp_path: Path) -> None:
    run = completed(tmp_path / "run", *STAGES[stage])
    assert run.reports[0]["updates"] and losses(run)


def test_the_roles_of_a_cascade_train_on_one_device(tmp_path: Path) -> None:
    try:
        find()
    except InputError as fault:
        pytest.skip(str(fault))
    run = completed(tmp_path / "run", "+stage=cascade", *QUICK, "verifier.validate=1")
    assert run.reports[0]["updates"] and losses(run)


@pytest.mark.parametrize("plan", PROCESSES)
def test_two_processes_train(plan: str, tmp_path: Path) -> None:
    devices, *words = PROCESSES[plan]
    run = completed(tmp_path / "run", "+stage=grpo", *SMALL, *words, devices=devices)
    assert len(run.reports) == 2 and all(len(report["updates"]) >= 2 for report in run.reports) and losses(run)


def test_trajectories_are_collected_on_one_device(tmp_path: Path) -> None:
    output = tmp_path / "trajectories.jsonl"
    words = ("collect.tasks=3", "collect.samples=2", f"collect.output={output}")
    completed(tmp_path / "run", "+stage=collect", "+experiment=quick", *words)
    assert len(output.read_text().splitlines()) == 6


def test_a_resumed_run_repeats_the_steps_of_an_uninterrupted_run(tmp_path: Path) -> None:
    words = ("+stage=grpo", *SMALL, "run.checkpoint.every_steps=1", "algorithm.max_steps=3")
    whole = losses(completed(tmp_path / "whole", *words))
    resumed = shutil.copytree(tmp_path / "whole", tmp_path / "resumed", symlinks=True)
    for step in (2, 3):
        shutil.rmtree(resumed / "checkpoints" / f"step_{step:06d}")
    (resumed / "summary.json").unlink()
    run = completed(resumed, *words, "run.resume=auto")
    assert losses(run) == whole and len(run.reports[0]["updates"]) == 2
