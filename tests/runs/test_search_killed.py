"""A search of real runs that is killed goes on as if it had not been."""

import json
from pathlib import Path

import pytest
from commands import study
from killed import kill_once
from program import INTERPRETED

QUICK = ["study=search", "+experiment=quick"]
RATES = "study.space.optimizer.lr.log_uniform=[1e-3,1e-2]"
"""Without that of the unchanged command, which then cannot be the best."""
KILLED = [*QUICK, RATES, "study.trials=2", "study.confirm=[7]", "study.pruner=none", "executor.jobs=1"]
TABLES = ("trials.csv", "arms.csv", "difference.csv")


@pytest.mark.slow
def test_a_killed_search_goes_on_and_gives_the_tables_of_an_unbroken_one(tmp_path: Path) -> None:
    broken, unbroken = tmp_path / "broken", tmp_path / "unbroken"
    command = [*INTERPRETED, "+stage=study", *KILLED, f"run.dir={broken}"]
    kill_once(command, broken, lambda: [*broken.glob("trial_001_seed0/metrics.jsonl")])
    assert not (broken / "study.json").exists()
    told = study(broken, *KILLED, "run.resume=auto")
    assert "1 run, 1 of them there already" in told and "trial_000_seed0: python" not in told
    study(unbroken, *KILLED)
    assert [(broken / name).read_text() for name in TABLES] == [(unbroken / name).read_text() for name in TABLES]
    answers = [json.loads((place / "study.json").read_text())["answer"] for place in (broken, unbroken)]
    assert answers[0] == answers[1]
