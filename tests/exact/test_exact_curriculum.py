"""Runs whose curriculum remembers, killed while they sample: what was observed before is in the checkpoint."""

import json
from pathlib import Path

import pytest
from trajectories import EVERY, RL, SMALL, forked, go_on, killed_and_resumed, rows, said_in

pytestmark = pytest.mark.slow

WORDS = ["+stage=grpo", *SMALL, *RL, "run.log_every_steps=1"]
"""Every step samples."""
CURRICULA = {
    "staged": ["curriculum.window=2", "curriculum.threshold=0", "curriculum.earlier=0.4"],
    "manual": ["curriculum.steps=[1,3]"],
    "learnability": ["curriculum.unexplored=0.5"],
    "families": ["curriculum.decay=0.9"],
    "band": ["curriculum.size=8", "curriculum.least_samples=3"],
}


@pytest.mark.property(24)
@pytest.mark.parametrize("kind", CURRICULA)
def test_a_killed_run_goes_on_with_what_its_curriculum_observed(kind: str, tmp_path: Path) -> None:
    words = [*WORDS, f"curriculum={kind}", *CURRICULA[kind]]
    assert killed_and_resumed(forked, "grpo", "verification", tmp_path, words=words) == []
    state = json.loads((tmp_path / "run" / "checkpoints" / f"step_{EVERY:06d}" / "state.json").read_text())
    assert state["curriculum"]["dealt"] and not state["curriculum"]["in_step"]
    assert all("curriculum/pool" in row and "curriculum/mixed_groups" in row for row in rows(tmp_path / "run"))


@pytest.mark.parametrize("kind", ["staged", "manual"])
def test_a_resumed_run_is_sent_to_another_band_which_its_manifest_knows(kind: str, tmp_path: Path) -> None:
    words = [*WORDS, f"curriculum={kind}", "curriculum.earlier=0"]
    words += ["curriculum.cuts=[0.3,0.4]", "curriculum.steps=[20,30]"] if kind == "manual" else []
    assert go_on(forked, [*words, "algorithm.max_steps=4"], tmp_path) == 0, said_in(tmp_path)
    assert go_on(forked, [*words, "curriculum.override=2"], tmp_path) == 0, said_in(tmp_path)
    bands = [row["curriculum/band"] for row in rows(tmp_path / "run")]
    assert bands == ["0.0"] * 4 + ["2.0"]
    (entry,) = json.loads((tmp_path / "run" / "manifest.json").read_text())["overrides"]
    assert (entry["band"], entry["after_step"]) == (2, 4)
