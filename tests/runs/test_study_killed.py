"""A study of real runs that is killed goes on, and gives the same tables as an unbroken one."""

from pathlib import Path

import pytest
from commands import study
from killed import kill_once
from program import INTERPRETED

WORDS = ["study=ablation", "+experiment=quick", "study.seeds=[0]"]
TABLES = ("impact.csv", "arms.csv")


@pytest.mark.slow
def test_a_killed_study_goes_on_and_gives_the_tables_of_an_unbroken_one(tmp_path: Path) -> None:
    broken, unbroken = tmp_path / "broken", tmp_path / "unbroken"
    command = [*INTERPRETED, "+stage=study", *WORDS, f"run.dir={broken}", "executor.jobs=1"]
    second = broken / "no_partial_reward_seed0" / "config.yaml"
    kill_once(command, broken, second.exists)
    assert not (broken / "study.json").exists()
    said = study(broken, *WORDS, "run.resume=auto")
    assert "2 runs, 1 of them there already" in said
    assert (
        "measured before training by an earlier run" in (broken / "printed" / "no_partial_reward_seed0.txt").read_text()
    )
    study(unbroken, *WORDS)
    assert [(broken / name).read_text() for name in TABLES] == [(unbroken / name).read_text() for name in TABLES]
    assert "2 runs, 2 of them there already" in study(broken, *WORDS, "run.resume=auto")
