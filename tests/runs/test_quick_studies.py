"""Every study in its quick form, with real runs: it answers, from runs that completed, within 80 s of two cores."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from commands import processor_seconds, study
from program import ENVIRONMENT, INTERPRETED

STUDIES = sorted(path.stem for path in (Path(__file__).parents[2] / "conf" / "study").glob("*.yaml"))
OWN_TABLE = {
    "ablation": "impact",
    "ablation_self_play": "impact",
    "algorithms": "difference",
    "algorithms_core_seconds": "rates",
    "architecture": "models",
    "bias_variance": "decomposition",
    "capacity": "models",
    "cross_validation": "folds",
    "few_shot": "shots",
    "landscape": "line",
    "learning_curve": "curve",
    "learning_curve_steps": "curve",
    "optimizers": "difference",
    "robustness": "gains",
    "sample_complexity": "rollouts",
    "search": "trials",
    "search_grpo": "trials",
    "tokenization": "models",
    "transfer": "gains",
    "zero_shot": "gains",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_it_answers_within_eighty_seconds_of_two_cores(name: str, tmp_path: Path) -> None:
    before = processor_seconds()
    study(tmp_path / "s", f"study={name}", "+experiment=quick")
    used = processor_seconds() - before
    found = json.loads((tmp_path / "s" / "study.json").read_text())
    assert {job["status"] for job in found["jobs"]} <= {"completed", "pruned"} and len(found["jobs"]) > 1
    assert found["answer"] and found["tables"][OWN_TABLE[name]], found["answer"]
    assert all((tmp_path / "s" / job["directory"] / "report.html").is_file() for job in found["jobs"])
    assert (tmp_path / "s" / "study.html").is_file() and (tmp_path / "s" / f"{OWN_TABLE[name]}.csv").is_file()
    assert used < 2 * 80, "of a machine that may be busy: its own time, not that of the clock"


STUDY = ["study=ablation", "+experiment=quick", "study.seeds=[0]"]
STUDY_TABLES = ("impact.csv", "arms.csv")
RATES = "study.space.optimizer.lr.log_uniform=[1e-3,1e-2]"
"""Without that of the unchanged command, which then cannot be the best."""
SEARCH = [
    "study=search", "+experiment=quick", RATES, "study.trials=2", "study.confirm=[7]", "study.pruner=none",
    "executor.jobs=1",
]  # fmt: skip
SEARCH_TABLES = ("trials.csv", "arms.csv", "difference.csv")


@pytest.mark.slow
def test_a_killed_study_goes_on_and_gives_the_tables_of_an_unbroken_one(tmp_path: Path) -> None:
    broken, unbroken = tmp_path / "broken", tmp_path / "unbroken"
    command = [*INTERPRETED, "+stage=study", *STUDY, f"run.dir={broken}", "executor.jobs=1"]
    second = broken / "no_partial_reward_seed0" / "config.yaml"
    kill_once(command, broken, second.exists)
    assert not (broken / "study.json").exists()
    said = study(broken, *STUDY, "run.resume=auto")
    assert "2 runs, 1 of them there already" in said
    assert (
        "measured before training by an earlier run" in (broken / "printed" / "no_partial_reward_seed0.txt").read_text()
    )
    study(unbroken, *STUDY)
    assert [(broken / name).read_text() for name in STUDY_TABLES] == [
        (unbroken / name).read_text() for name in STUDY_TABLES
    ]
    assert "2 runs, 2 of them there already" in study(broken, *STUDY, "run.resume=auto")


@pytest.mark.slow
def test_a_killed_search_goes_on_and_gives_the_tables_of_an_unbroken_one(tmp_path: Path) -> None:
    broken, unbroken = tmp_path / "broken", tmp_path / "unbroken"
    command = [*INTERPRETED, "+stage=study", *SEARCH, f"run.dir={broken}"]
    kill_once(command, broken, lambda: [*broken.glob("trial_001_seed0/metrics.jsonl")])
    assert not (broken / "study.json").exists()
    told = study(broken, *SEARCH, "run.resume=auto")
    assert "trial_000_seed0: completed already" in told and "trial_000_seed0: python" not in told
    study(unbroken, *SEARCH)
    assert [(broken / name).read_text() for name in SEARCH_TABLES] == [
        (unbroken / name).read_text() for name in SEARCH_TABLES
    ]
    answers = [json.loads((place / "study.json").read_text())["answer"] for place in (broken, unbroken)]
    assert answers[0] == answers[1]


def kill_once(command: Sequence[str], place: Path, ready: Callable[[], object]) -> None:
    """Start a command that writes into a folder, kill it (SIGKILL) once `ready`, and wait until nothing of it is left."""
    first = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, start_new_session=True)
    assert _within(600, ready), "it never came so far"
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    assert _within(10, lambda: not alive(place)), alive(place)


def alive(place: Path) -> list[str]:
    """Command lines of the processes that name a folder."""
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(file.read_text().replace("\0", " "))
        except OSError:  # It has ended meanwhile.
            continue
    return [line for line in lines if str(place) in line]


def _within(seconds: float, ready: Callable[[], object]) -> bool:
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if ready():
            return True
        time.sleep(0.05)
    return False
