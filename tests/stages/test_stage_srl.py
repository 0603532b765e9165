"""+stage=srl through its command: likeness is paid, success is measured."""

import json
import subprocess
from pathlib import Path

import pytest
from program import metrics_of, run_program
from thinning import thinned

from rlvr_exp.records.rollout_files import read_rollouts, rollout_steps

pytest.importorskip("ast_grep_py")
COMMAND = ["+stage=srl", "+experiment=quick", "evaluation.tasks=4", "evaluation.samples=2"]


def program(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_program(place, *COMMAND, *words)


def test_actions_are_paid_by_their_likeness_to_the_teachers(tmp_path: Path) -> None:
    """Measured in steps, trained on a teacher's states alone: what a student's action makes has no teacher's next one."""
    small = ["algorithm.max_steps=2", "algorithm.prompts_per_step=4", "data.limit=100"]
    done = program(tmp_path, *small, "run.dir=run", "environment=edits")
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["stage"], summary["steps"]) == ("srl", 2) and {"pass_at_1"} <= set(summary["after"])
    rows = [row for file in rollout_steps(tmp_path / "run").values() for row in read_rollouts(file)]
    assert len(rows) >= 2 * 4 * 4 and all(-0.2 <= row.reward <= 1 for row in rows)
    near = [row for row in rows if 0 < row.reward < 1]
    assert near and {"field_similarity", "string_similarity"} <= set(near[0].terms)
    metrics = metrics_of(tmp_path / "run")
    assert all("reward/field_similarity" in row and "success/mean" in row for row in metrics)
    assert not any("episode/steps" in row for row in metrics)


@pytest.mark.parametrize(
    ("words", "found"),
    thinned(
        [
            (["data.target=text"], "reward: 16000 of 16000 tasks have no action of a teacher"),
            (["algorithm=ppo"], "algorithm"),
        ],
        2,
    ),
)
def test_what_cannot_be_likened_is_told_before_anything_starts(words, found, tmp_path: Path) -> None:
    done = program(tmp_path, *words, "run.dir=run")
    assert done.returncode == 2 and found in done.stdout + done.stderr, done.stdout + done.stderr
    assert not (tmp_path / "run" / "metrics.jsonl").exists()
