"""A study of real runs that is killed goes on, and gives the same tables as an unbroken one."""

import subprocess
from pathlib import Path

import pytest
from killed import kill_once
from program import ENVIRONMENT, INTERPRETED

WORDS = ["+stage=study", "study=ablation", "+experiment=quick", "study.seeds=[0]"]
TABLES = ("impact.csv", "arms.csv")


def study(place: Path, *words: str) -> str:
    command = [*INTERPRETED, *WORDS, f"run.dir={place}", *words]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_killed_study_goes_on_and_gives_the_tables_of_an_unbroken_one(tmp_path: Path) -> None:
    broken, unbroken = tmp_path / "broken", tmp_path / "unbroken"
    command = [*INTERPRETED, *WORDS, f"run.dir={broken}", "executor.jobs=1"]
    second = broken / "no_partial_reward_seed0" / "config.yaml"
    kill_once(command, broken, second.exists)
    assert not (broken / "study.json").exists()
    said = study(broken, "run.resume=auto")
    assert "2 runs, 1 of them there already" in said
    assert (
        "measured before training by an earlier run" in (broken / "printed" / "no_partial_reward_seed0.txt").read_text()
    )
    study(unbroken)
    assert [(broken / name).read_text() for name in TABLES] == [(unbroken / name).read_text() for name in TABLES]
    assert "2 runs, 2 of them there already" in study(broken, "run.resume=auto")
