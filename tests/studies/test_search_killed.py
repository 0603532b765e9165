"""Searches of real runs: the quick form from the command line, and one that is killed goes on as if it had not been."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from killed import kill_once
from program import ENVIRONMENT, INTERPRETED

QUICK = ["+stage=study", "study=search", "+experiment=quick"]
RATES = "study.space.optimizer.lr.log_uniform=[1e-3,1e-2]"
"""Without that of the unchanged command, which then cannot be the best."""
KILLED = [*QUICK, RATES, "study.trials=2", "study.confirm=[7]", "study.pruner=none", "executor.jobs=1"]
TABLES = ("trials.csv", "arms.csv", "difference.csv")


def study(place: Path, *words: str) -> str:
    command = [*INTERPRETED, *words, f"run.dir={place}"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_quick_form_tries_four_rates_in_eighty_seconds_of_two_cores(tmp_path: Path) -> None:
    before = os.times()
    study(tmp_path / "s", *QUICK)
    after = os.times()
    plain = json.loads((tmp_path / "s" / "study.json").read_text())
    trials = plain["tables"]["trials"]
    assert trials[0]["trial"] == "trial_000_default" and len(trials) == 4
    assert {row["state"] for row in trials} <= {"completed", "pruned"}
    assert len({row["optimizer.lr"] for row in trials}) == 4 and "too good a figure" in plain["answer"][0]
    assert (tmp_path / "s" / "search.db").exists() and (tmp_path / "s" / "by_optimizer.lr.png").exists()
    used = sum(getattr(after, name) - getattr(before, name) for name in ("children_user", "children_system"))
    assert used < 2 * 80, "of a machine that may be busy: its own time, not that of the clock"


@pytest.mark.slow
def test_a_killed_search_goes_on_and_gives_the_tables_of_an_unbroken_one(tmp_path: Path) -> None:
    broken, unbroken = tmp_path / "broken", tmp_path / "unbroken"
    command = [*INTERPRETED, *KILLED, f"run.dir={broken}"]
    kill_once(command, broken, lambda: [*broken.glob("trial_001_seed0/metrics.jsonl")])
    assert not (broken / "study.json").exists()
    told = study(broken, *KILLED, "run.resume=auto")
    assert "1 run, 1 of them there already" in told and "trial_000_seed0: python" not in told
    study(unbroken, *KILLED)
    assert [(broken / name).read_text() for name in TABLES] == [(unbroken / name).read_text() for name in TABLES]
    answers = [json.loads((place / "study.json").read_text())["answer"] for place in (broken, unbroken)]
    assert answers[0] == answers[1]
