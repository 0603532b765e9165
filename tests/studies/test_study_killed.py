"""A study of real runs that is killed goes on, and gives the same tables as an unbroken one."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from program import ENVIRONMENT, INTERPRETED

WORDS = ["+stage=study", "study=ablation", "+experiment=quick", "study.seeds=[0]"]
TABLES = ("impact.csv", "arms.csv")


def alive(place: Path) -> list[str]:
    """Command lines of the processes that name a folder."""
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(file.read_text().replace("\0", " "))
        except OSError:  # It has ended meanwhile.
            continue
    return [line for line in lines if str(place) in line]


def study(place: Path, *words: str) -> str:
    command = [*INTERPRETED, *WORDS, f"run.dir={place}", *words]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_killed_study_goes_on_and_gives_the_tables_of_an_unbroken_one(tmp_path: Path) -> None:
    broken, unbroken = tmp_path / "broken", tmp_path / "unbroken"
    command = [*INTERPRETED, *WORDS, f"run.dir={broken}", "executor.jobs=1"]
    first = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, start_new_session=True)
    limit = time.monotonic() + 400
    second = broken / "no_partial_reward_seed0" / "config.yaml"
    while time.monotonic() < limit and not second.exists():
        time.sleep(0.05)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    limit = time.monotonic() + 10
    while time.monotonic() < limit and alive(broken):
        time.sleep(0.2)
    assert second.exists() and not (broken / "study.json").exists() and alive(broken) == []
    said = study(broken, "run.resume=auto")
    assert "2 runs, 1 of them there already" in said
    assert (
        "measured before training by an earlier run" in (broken / "printed" / "no_partial_reward_seed0.txt").read_text()
    )
    study(unbroken)
    assert [(broken / name).read_text() for name in TABLES] == [(unbroken / name).read_text() for name in TABLES]
    assert "2 runs, 2 of them there already" in study(broken, "run.resume=auto")
