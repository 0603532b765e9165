"""Runs that can be repeated: one kill in every stage that trains, and one seed in many layouts.

The point of the kill is drawn from the commit's hash and printed at the head of the test run (drawn.py); every point is
covered by `bash launchers/test.sh -m exact`.
"""

from pathlib import Path

import drawn
import killing
import pytest
import trajectories
from every_file import every_file
from trajectories import STAGES, Runner, differing, judged, killed_and_resumed, whole

from rlvr_exp.core.sealed import CARD

pytestmark = pytest.mark.slow

SHORT = [*STAGES["grpo"], "algorithm.max_steps=2"]
LAYOUT = [
    "algorithm.rollout_batch_size=3",
    "algorithm.max_tokens_per_device=400",
    "evaluation.batch_size=3",
    "sandbox.workers=1",
    "cache.enabled=false",
]


@pytest.fixture(scope="module")
def runner() -> Runner:
    return trajectories.forked


@pytest.fixture(scope="module")
def once(runner: Runner, tmp_path_factory) -> Path:
    return whole(runner, SHORT, tmp_path_factory.mktemp("once"), "run")


def test_points_are_drawn_of_all() -> None:
    assert set(drawn.POINTS) == set(killing.POINTS) and set(drawn.STAGES) <= set(STAGES)
    assert {drawn.drawn("sft", str(number)) for number in range(99)} == set(drawn.POINTS)


@pytest.mark.property(24)
@pytest.mark.parametrize("stage", drawn.STAGES)
def test_a_killed_run_goes_on_as_if_it_had_not_been(stage: str, tmp_path: Path, runner: Runner) -> None:
    assert killed_and_resumed(runner, stage, drawn.drawn(stage, drawn.commit()), tmp_path) == []
    before = trajectories.untouched(tmp_path / "run")
    assert trajectories.go_on(runner, STAGES[stage], tmp_path) == 0
    assert "completed already" in trajectories.said_in(tmp_path) and trajectories.untouched(tmp_path / "run") == before


def test_one_seed_makes_one_run_to_every_byte_but_times(once: Path, tmp_path: Path, runner: Runner) -> None:
    first, second = every_file(once), every_file(whole(runner, SHORT, tmp_path, "run"))
    assert differing(first, second) == []
    assert {
        "config.yaml",
        "manifest.json",
        "metrics.csv",
        "log.txt",
        "report.html",
        "rollouts/step_000001.jsonl.gz",
    } <= set(first)


def test_layout_changes_neither_samples_nor_verdicts(once: Path, tmp_path: Path, runner: Runner) -> None:
    assert judged(whole(runner, [*SHORT, *LAYOUT], tmp_path)) == judged(once)


def test_another_seed_draws_other_samples(once: Path, tmp_path: Path, runner: Runner) -> None:
    assert judged(whole(runner, [*SHORT, "seed=1"], tmp_path))["step"] != judged(once)["step"]


def test_looking_for_the_best_step_and_ending_with_it_changes_no_curve(
    once: Path, tmp_path: Path, runner: Runner
) -> None:
    words = [*SHORT, "run.select.every_steps=1", "run.select.tasks=2", "run.select.samples=1"]
    first, second = trajectories.trace(once), trajectories.trace(whole(runner, words, tmp_path))
    assert second["links"]["best"] and first["links"]["best"] is None
    looked = [f"held_out/{name}{end}" for name in ("pass_at_1", "pass_at_1_greedy") for end in ("", "/low", "/high")]
    assert all(row.keys() >= set(looked) for row in second["metrics"])
    rows = [{name: value for name, value in row.items() if name not in looked} for row in second["metrics"]]
    second["metrics"] = [row for row in rows if row.keys() > {"step"}]
    last = [name for name in first if name.startswith("step_000002/") and not name.endswith((".json", CARD))]
    assert any(name.endswith("model.safetensors") for name in last) and any("optimizer" in name for name in last)
    assert [name for name in ("metrics", "rollouts", "before", *last) if first[name] != second[name]] == []
