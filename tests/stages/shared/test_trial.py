"""What a run would cost, from what a trial has measured; and a trial, which keeps nothing."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from program import ENVIRONMENT, PROGRAM

from rlvr_exp.config.compose import compose, compose_lenient
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.tracking import Files
from rlvr_exp.stages.shared.training import open_tracker
from rlvr_exp.stages.shared.trial import cost_of, energy_line, spell, token_lines
from rlvr_exp.training.step_log import MEASURING, SAVING, UPDATING, StepClock


def measured(**seconds: list[float]) -> StepClock:
    clock = StepClock()
    clock.seconds.update(seconds)
    return clock


def test_a_run_costs_its_start_its_steps_its_measurements_and_its_checkpoints() -> None:
    words = ["+stage=grpo", "algorithm.max_steps=100", "run.select.every_steps=10", "run.checkpoint.every_steps=30"]
    config = compose([*words, "evaluation.samples=3"]).config
    clock = measured(**{UPDATING: [5.0, 2.0, 4.0], MEASURING: [1.5], SAVING: [0.5]})
    cost = cost_of(config, clock, answer=0.25, start=7.0, held_out=20)
    assert cost.step == 3.0 and cost.evaluation == 0.25 * 20 * (3 + 1)
    assert cost.selection == 10 * 1.5 and cost.checkpoints == 4 * 0.5
    assert cost.start == 7.0 + (5.0 - 3.0), "the first step warms up"
    assert cost.seconds == 9.0 + 100 * 3.0 + 2 * 20.0 + 15.0 + 2.0


def test_a_look_for_the_best_step_that_was_not_measured_costs_its_answers() -> None:
    config = compose(["+stage=grpo", "algorithm.max_steps=10", "run.select.every_steps=5", "run.select.tasks=6"]).config
    cost = cost_of(config, measured(**{UPDATING: [1.0]}), answer=0.5, start=0.0, held_out=9)
    assert cost.selection == 2 * 6 * (config.run.select.samples + 1) * 0.5


def test_power_becomes_energy_of_the_whole_run() -> None:
    config = compose(["+stage=grpo", "algorithm.max_steps=3600", "run.select.times=0"]).config
    cost = cost_of(config, measured(**{UPDATING: [1.0, 1.0]}), answer=0.0, start=0.0, held_out=1)
    assert (
        energy_line({"GPUs": 0.4, "processor": 0.1}, cost)
        == "  energy       0.5 kWh, at 400 W of the GPUs, 100 W of the processor"
    )
    assert "cannot be read" in energy_line({}, cost)


def test_tokens_are_of_every_role_and_of_imitation_those_that_it_is_shown() -> None:
    rows = [{"time/writer/tokens_per_second": 1.0}, {"time/writer/tokens_per_second": 30.0}]
    assert list(token_lines(rows, StepClock())) == ["  tokens       30 sampled a second, writer"]
    shown = [{"tokens/seen": 100.0}, {"tokens/seen": 500.0}]
    assert list(token_lines(shown, measured(**{UPDATING: [9.0, 2.0]}))) == ["  tokens       200 trained on a second"]


@pytest.mark.parametrize(("seconds", "said"), [(9.0, "9.0 s"), (600.0, "10.0 minutes"), (36000.0, "10.0 hours")])
def test_durations_are_in_the_unit_that_a_person_would_take(seconds: float, said: str) -> None:
    assert spell(seconds) == said


def test_a_trial_is_of_a_run_that_trains() -> None:
    assert "run.trial" in [one.where for one in compose_lenient(["+stage=evaluate", "run.trial=true"]).problems]
    assert compose_lenient(["+stage=sft", "run.trial=true"]).problems == ()


def test_a_trial_is_shown_to_no_viewer(tmp_path: Path) -> None:
    words = ["+stage=grpo", "tracking=wandb"]
    manifest.begin(tmp_path, "grpo", 0, [], "")
    with open_tracker(compose([*words, "run.trial=true"]).config, RunContext(tmp_path, lambda event: None)) as tracker:
        assert isinstance(tracker._sink, Files)


@pytest.mark.parametrize("stage", ["grpo", pytest.param("sft", marks=pytest.mark.slow)])
def test_a_trial_says_what_the_run_would_cost_and_keeps_nothing(tmp_path: Path, stage: str) -> None:
    (tmp_path / "tmp").mkdir()
    done = subprocess.run(
        [*PROGRAM, f"+stage={stage}", "+experiment=quick", "run.trial=true"],
        cwd=tmp_path,
        env={**ENVIRONMENT, "TMPDIR": str(tmp_path / "tmp")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("steps", "evaluation", "tokens", "memory", "energy"):
        assert re.search(rf"^  {name} +\S", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"the run +\d+ steps: about ", done.stdout) and "completed:" not in done.stdout
    assert [name for name in os.listdir(tmp_path) if name != "tmp"] == []
    assert not list((tmp_path / "tmp").glob(".scratch*"))


def test_a_sweep_is_no_trial(tmp_path: Path) -> None:
    words = [*PROGRAM, "+stage=grpo", "seed=0,1", "run.trial=true", "--multirun"]
    done = subprocess.run(words, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "run.trial" in done.stderr, done.stderr
    assert not list(tmp_path.iterdir())
