"""A real run whose reward is broken and slow: its updates are skipped and counted, the watchdog logs its stacks, and it
ends with 3 and a complete directory."""

import json
from pathlib import Path

from program import metrics_of, run_program

from rlvr_exp.records.rollout_files import read_rollouts, rollout_steps

TERM = """
import math, time
from rlvr_exp.rewards.base import ValueRange, Term

class Broken(Term):
    when_correct = when_wrong = ValueRange(0, 0)
    _slept = False

    def __call__(self, judged):
        if not self._slept:
            self.standing_still()
        return math.nan

    def standing_still(self):
        self._slept = True
        time.sleep(8)
"""


def test_skipped_updates_are_counted_told_and_end_the_run(tmp_path: Path) -> None:
    (tmp_path / "breakage.py").write_text(TERM)
    words = ["+stage=grpo", "+experiment=quick", f"hydra.searchpath=[{tmp_path}]", "evaluation.tasks=2", "run.dir=run"]
    words += ["data.limit=40", "evaluation.samples=1", "sandbox.workers=1"]
    words += ["+reward.terms.broken={_target_: breakage.Broken}", "algorithm.max_steps=9"]
    words += ["run.guards.max_skipped=1", "run.guards.step_deadline_s=3", "run.checkpoint.every_steps=1"]
    done = run_program(tmp_path, *words)
    run = tmp_path / "run"
    summary, log = json.loads((run / "summary.json").read_text()), (run / "log.txt").read_text()
    assert done.returncode == 3, done.stderr + log
    assert summary["status"] == "stopped" and "the last 2 updates were skipped, from step 1 on" in summary["reason"]
    assert "broken=nan" in summary["reason"] and "run.guards.max_skipped=1" in summary["reason"]
    assert done.stderr.count(summary["reason"]) == 1 and "Traceback" not in done.stderr
    rows = metrics_of(run)
    assert [(row["step"], row["guard/skipped"], row["guard/reward"], row["loss"]) for row in rows] == [
        (1, 1.0, 1.0, None), (2, 1.0, 1.0, None)
    ]  # fmt: skip
    for text in (log, done.stderr):
        assert "watchdog: no sign of progress" in text and "standing_still" in text and "last phase: " in text
    weights = [(run / "checkpoints" / f"step_{step:06d}" / "model.safetensors").read_bytes() for step in (1, 2)]
    assert weights[0] == weights[1], "as it was before the first update"
    assert all(row.reward is None for row in read_rollouts(rollout_steps(run)[1]))
