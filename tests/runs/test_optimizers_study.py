"""Optimizers over planted runs: when a curve gets to where the first arm's ends, and how often its gradient was clipped."""

import json

import pytest
from planted import plant

from rlvr_exp.core.errors import InputError
from rlvr_exp.core.files import write_text
from rlvr_exp.runs.record import write_record
from rlvr_exp.runs.studies.arms import Optimizers

ARMS = {"adamw": ["optimizer=adamw"], "fast": ["optimizer.lr=1e-2"], "flat": ["optimizer.lr=1e-9"]}


def study(**more):
    more = {"window": 1, "metric": "pass_at_1_greedy", **more}
    return Optimizers(command=["+stage=grpo"], arms=ARMS, seeds=[0, 1], **more)


def course(arm, seed):
    """By step: `fast` is at 0.5, the end of `adamw`, in half the steps; `flat` never."""
    grows = {"adamw": 0.05, "fast": 0.1, "flat": 0.0}[arm]
    return {step: min(0.8, 0.1 * seed + grows * step) for step in range(1, 11)}


def planted(root, name="success/mean", of=course):
    jobs = study().jobs()
    runs = [plant(root, job, lambda task, job=job: task % 3 == 0 or job.arm == "fast") for job in jobs]
    for run in runs:
        clipped = {"adamw": 0.25, "fast": 1.0, "flat": 0.0}[run.job.arm]
        rows = of(run.job.arm, run.job.seed).items()
        lines = [
            {"step": step, name: value, "samples/sampled": 8, "grad_norm/clipped": clipped} for step, value in rows
        ]
        write_text(run.directory / "metrics.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    return runs


def test_an_arm_converges_where_its_curve_gets_to_the_end_of_the_first(tmp_path):
    runs = planted(tmp_path)
    found = study().summarise(runs)
    rows = {row["arm"]: row for row in found.tables["convergence"]}
    assert (rows["fast"]["step"], rows["fast"]["reached"]) == (5, 2), (
        "0.5 of seed 0, 0.6 of seed 1: in its pair's own terms"
    )
    assert "step" not in rows["flat"] and rows["flat"]["reached"] == 0
    assert rows["adamw"]["step"] == 10 and rows["adamw"]["final"] == pytest.approx(0.55)
    assert [rows[arm]["clipped"] for arm in ARMS] == [0.25, 1.0, 0.0]
    assert found.answer[0].startswith("Difference on pass_at_1_greedy beyond chance, 1 of 2: fast")
    assert "fast: gets to the final value of adamw at step 5 [5, 5]; 100% of its steps are clipped." in found.answer
    assert "flat: gets to the final value of adamw with 0 of 2 seeds; 0% of its steps are clipped." in found.answer
    write_record(tmp_path, "study", [], runs, found)
    assert {path.stem for path in tmp_path.glob("*.png")} == {"difference", "curve"}


def test_a_smoothed_curve_is_the_mean_of_the_latest_rows(tmp_path):
    of = study(window=4).summarise(planted(tmp_path)).tables["convergence"]
    fast = next(row for row in of if row["arm"] == "fast")
    assert fast["step"] == 6, "the mean of steps 3 to 6 is 0.45, that of adamw at its end 0.425, of 2 to 5 0.35"


def test_a_window_that_is_not_full_reaches_nothing(tmp_path):
    """One good row at the start is chance; a run that is shorter than the window has its mean alone."""
    lucky = lambda arm, seed: {1: 0.9, **dict.fromkeys(range(2, 11), 0.0)} if arm == "flat" else course(arm, seed)  # noqa: E731
    of = {row["arm"]: row for row in study(window=4).summarise(planted(tmp_path, of=lucky)).tables["convergence"]}
    assert of["flat"]["reached"] == 0
    of = {row["arm"]: row for row in study(window=40).summarise(planted(tmp_path / "short")).tables["convergence"]}
    assert of["adamw"]["step"] == 10 and of["fast"]["reached"] == 2


def test_a_loss_has_to_fall(tmp_path):
    runs = planted(tmp_path, "loss", lambda arm, seed: {step: -value for step, value in course(arm, seed).items()})
    rows = {row["arm"]: row for row in study(curve="loss", direction="minimize").summarise(runs).tables["convergence"]}
    assert rows["fast"]["step"] == 5 and rows["flat"]["reached"] == 0


def test_rows_of_several_steps_count_as_many(tmp_path):
    runs = planted(tmp_path)
    lines = [(1, 1.0), (4, 0.0)]
    for run in runs:
        rows = [{"step": step, "success/mean": 0.1, "grad_norm/clipped": share} for step, share in lines]
        write_text(run.directory / "metrics.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    assert {row["clipped"] for row in study().summarise(runs).tables["convergence"]} == {0.25}


def test_a_curve_that_no_run_has_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"study.curve: no run has it(.|\n)*study.curve=NAME"):
        study(curve="succes/mean").summarise(planted(tmp_path))
