"""Every study in its quick form, with real runs: it answers, from runs that completed, within 80 s of two cores."""

import json
from pathlib import Path

import pytest
from commands import processor_seconds, study

STUDIES = sorted(path.stem for path in (Path(__file__).parents[2] / "conf" / "study").glob("*.yaml"))
OWN_TABLE = {
    "ablation": "impact",
    "ablation_self_play": "impact",
    "algorithms": "difference",
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
