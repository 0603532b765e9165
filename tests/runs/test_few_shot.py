"""Success by the number of solved examples in the prompt."""

import pytest
from completions import completion
from planted import TASKS, plant

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError
from rlvr_exp.evaluation.saved import save
from rlvr_exp.records.rollout_files import EvalSample
from rlvr_exp.runs.studies.amounts import FewShot
from rlvr_exp.runs.study import Run

GREEDY = "pass_at_1_greedy"


def study(**more):
    return FewShot(command=["+stage=evaluate"], metric=GREEDY, **{"shots": [0, 1, 4], **more})


def measured(tmp_path, solved):
    """Its runs; `solved`: how many of the tasks pass, by arm."""
    return [plant(tmp_path, job, lambda task, job=job: task < solved[job.arm]) for job in study().jobs()]


def too_long(run, tasks):
    """The run again, with prompts that the policy does not take."""
    verdicts = [("failed", "prompt_too_long") if task < tasks else ("passed", None) for task in range(TASKS)]
    scored = [EvalSample(completion(f"t{task}", *verdict), "greedy", "p") for task, verdict in enumerate(verdicts)]
    rates = {name: rate.to_dict() for name, rate in save(run.directory, "after", scored).items()}
    return Run(run.job, run.directory, 0, {**run.summary, "after": rates})


def test_a_run_measures_each_number_with_each_seed():
    jobs = study(seeds=[0, 1]).jobs()
    assert [job.name for job in jobs] == [f"shots_{count}_seed{seed}" for count in (0, 1, 4) for seed in (0, 1)]
    assert jobs[-1].words == ("+stage=evaluate", "data.prompt.shots=4", "seed=1")


def test_the_fewest_shots_without_a_loss_against_the_best_are_named(tmp_path):
    found = study().summarise(measured(tmp_path, {"shots_0": 10, "shots_1": 39, "shots_4": 40}))
    assert found.answer[0].startswith(
        f"{GREEDY} is highest with 4 shots, 66.7%; 1 are the fewest that no loss against it was found for"
    )
    assert found.answer[1].startswith(f"1 shots against 0: +{100 * 29 / TASKS:.1f} points [")
    rows = found.tables["shots"]
    assert [row["shots"] for row in rows] == [0, 1, 4] and "difference" not in rows[0]
    assert [row["value"] for row in rows] == pytest.approx([10 / 60, 39 / 60, 40 / 60])
    assert rows[2]["difference"] == pytest.approx(0.5) and rows[2]["p_holm"] < 0.01
    assert all(row["low"] < row["value"] < row["high"] for row in rows)


def test_where_every_smaller_number_is_worse_it_is_said(tmp_path):
    found = study().summarise(measured(tmp_path, {"shots_0": 10, "shots_1": 20, "shots_4": 50}))
    assert found.answer[0].endswith("highest with 4 shots, 83.3%; every smaller number is worse beyond chance.")
    found = study().summarise(measured(tmp_path / "falling", {"shots_0": 30, "shots_1": 20, "shots_4": 10}))
    assert found.answer[0] == f"{GREEDY} is highest with 0 shots, 50.0%, the fewest that were measured."


def test_a_number_that_was_not_measured_with_the_bests_seeds_is_not_called_worse(tmp_path):
    asked = study(seeds=[0, 1])
    runs = [plant(tmp_path, job, lambda task, job=job: task < (50 if "4" in job.arm else 20)) for job in asked.jobs()]
    kept = [run for run in runs if (run.job.arm == "shots_0") == (run.job.seed == 0)]
    found = asked.summarise(kept)
    assert found.answer[0].endswith("is worse beyond chance, of those measured on its tasks and seeds (not 0).")
    assert "4 shots: not measured on the tasks and seeds of 0 shots." in found.answer


def test_prompts_that_are_too_long_are_counted_and_said_first(tmp_path):
    runs = measured(tmp_path, {"shots_0": 30, "shots_1": 30, "shots_4": 30})
    runs = [too_long(run, 24) if run.job.arm == "shots_4" else run for run in runs]
    found = study().summarise(runs)
    assert found.answer[0].startswith("Prompts are too long for the policy: 24 of 60 with 4 shots, which count as")
    assert [row["prompt_too_long"] for row in found.tables["shots"]] == [0, 0, 24]


@pytest.mark.parametrize("name", ["few_shot", "zero_shot", "transfer", "learning_curve", "cross_validation"])
def test_studies_of_success_take_no_metric_of_another_scale(name):
    with pytest.raises(InputError, match="study.metric: this study is of a success rate"):
        compose(["+stage=study", f"study={name}", "study.metric=bits_per_character"])


def test_shots_have_to_rise():
    assert [one.where for one in study(shots=[1, 1]).problems()] == ["shots"]
    assert study().problems() == []
