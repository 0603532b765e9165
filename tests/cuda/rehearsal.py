"""Runs of the program on pretended CUDA devices."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pretend_cuda
import pretended_library
import pytest

ROOT = Path(__file__).parents[2]
QUICK = (
    "+experiment=quick",
    "algorithm.max_tokens_per_device=256",  # FlexAttention computes every pair of tokens here.
    "evaluation.tasks=2",
    "evaluation.samples=2",
)
SMALL = (
    *QUICK,
    "algorithm.max_steps=2",
    "algorithm.prompts_per_step=4",
    "algorithm.group_size=4",
    "model.max_completion_tokens=6",
)
LORA = ("model=tiny_lora", "model.dtype=bfloat16", "model.gradient_checkpointing=true")
NF4 = (*LORA, "model.quantization=4bit")
NEEDS_COMPILER = pytest.mark.skipif(bool(pretended_library.missing()), reason=pretended_library.missing())


@dataclass(frozen=True)
class Rehearsal:
    """A run that has ended."""

    folder: Path
    code: int
    output: str
    reports: list[Mapping[str, Any]]
    """Of the processes that used a device; see `pretend_cuda`."""

    @property
    def summary(self) -> dict[str, Any]:
        return json.loads((self.folder / "summary.json").read_text())

    @property
    def metrics(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]


def python(folder: Path, *words: str, devices: int = 1, memory_gib: float = 32) -> Rehearsal:
    """Run Python with pretended devices, to its end."""
    pretended_library.build()
    reports = folder.with_name(f"{folder.name}-reports")
    environment = pretend_cuda.environment(devices, memory_gib, reports)
    environment["PYTHONPATH"] += f":{ROOT}"
    done = subprocess.run(
        [sys.executable, *words], cwd=folder.parent, env=environment, capture_output=True, text=True, timeout=1200
    )
    found = [json.loads(file.read_text()) for file in sorted(reports.glob("*.json"))]
    return Rehearsal(folder, done.returncode, done.stdout + done.stderr, found)


def rehearse(folder: Path, *words: str, devices: int = 1, memory_gib: float = 32) -> Rehearsal:
    """Run the program with pretended devices, in a run directory, to its end."""
    return python(folder, "-m", "rlvr_exp", *words, f"run.dir={folder}", devices=devices, memory_gib=memory_gib)


def completed(folder: Path, *words: str, devices: int = 1) -> Rehearsal:
    """Run the program and check that it completed on the devices, in as many processes as used one."""
    run = rehearse(folder, *words, devices=devices)
    assert run.code == 0, run.output[-3000:] + log(folder)
    assert run.summary["status"] == "completed", run.output
    assert run.reports and all(report["launches"] > 1000 for report in run.reports)
    return run


def log(folder: Path) -> str:
    """The end of a run's log, which holds the traceback of a fault."""
    file = folder / "log.txt"
    return file.read_text()[-3000:] if file.exists() else ""
