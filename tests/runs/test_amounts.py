"""Success by the number of solved examples in the prompt."""

import json
from dataclasses import replace

import pytest
from completions import completion
from planted import TASKS, evaluated, plant

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError
from rlvr_exp.core.files import write_text
from rlvr_exp.core.statistics import power_law
from rlvr_exp.evaluation.saved import save
from rlvr_exp.records.rollout_files import EvalSample
from rlvr_exp.runs.record import write_record
from rlvr_exp.runs.studies.amounts import FewShot, LearningCurve, SampleComplexity
from rlvr_exp.runs.studies.arms import Algorithms
from rlvr_exp.runs.study import JobRun

GREEDY = "pass_at_1_greedy"


def few_shots(**more):
    return FewShot(command=["+stage=evaluate"], metric=GREEDY, **{"shots": [0, 1, 4], **more})


def shots_measured(tmp_path, solved):
    """Its runs; `solved`: how many of the tasks pass, by arm."""
    return [plant(tmp_path, job, lambda task, job=job: task < solved[job.arm]) for job in few_shots().jobs()]


def too_long(run, tasks):
    """The run again, with prompts that the policy does not take."""
    verdicts = [("failed", "prompt_too_long") if task < tasks else ("passed", None) for task in range(TASKS)]
    scored = [EvalSample(completion(f"t{task}", *verdict), "greedy", "p") for task, verdict in enumerate(verdicts)]
    rates = {name: rate.to_dict() for name, rate in save(run.directory, "after", scored).items()}
    return JobRun(run.job, run.directory, 0, {**run.summary, "after": rates})


def test_a_run_measures_each_number_with_each_seed():
    jobs = few_shots(seeds=[0, 1]).jobs()
    assert [job.name for job in jobs] == [f"shots_{count}_seed{seed}" for count in (0, 1, 4) for seed in (0, 1)]
    assert jobs[-1].words == ("+stage=evaluate", "data.prompt.shots=4", "seed=1")


def test_the_fewest_shots_without_a_loss_against_the_best_are_named(tmp_path):
    found = few_shots().summarise(shots_measured(tmp_path, {"shots_0": 10, "shots_1": 39, "shots_4": 40}))
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
    found = few_shots().summarise(shots_measured(tmp_path, {"shots_0": 10, "shots_1": 20, "shots_4": 50}))
    assert found.answer[0].endswith("highest with 4 shots, 83.3%; every smaller number is worse beyond chance.")
    found = few_shots().summarise(shots_measured(tmp_path / "falling", {"shots_0": 30, "shots_1": 20, "shots_4": 10}))
    assert found.answer[0] == f"{GREEDY} is highest with 0 shots, 50.0%, the fewest that were measured."


def test_a_number_that_was_not_measured_with_the_bests_seeds_is_not_called_worse(tmp_path):
    asked = few_shots(seeds=[0, 1])
    runs = [plant(tmp_path, job, lambda task, job=job: task < (50 if "4" in job.arm else 20)) for job in asked.jobs()]
    kept = [run for run in runs if (run.job.arm == "shots_0") == (run.job.seed == 0)]
    found = asked.summarise(kept)
    assert found.answer[0].endswith("is worse beyond chance, of those measured on its tasks and seeds (not 0).")
    assert "4 shots: not measured on the tasks and seeds of 0 shots." in found.answer


def test_prompts_that_are_too_long_are_counted_and_said_first(tmp_path):
    runs = shots_measured(tmp_path, {"shots_0": 30, "shots_1": 30, "shots_4": 30})
    runs = [too_long(run, 24) if run.job.arm == "shots_4" else run for run in runs]
    found = few_shots().summarise(runs)
    assert found.answer[0].startswith("Prompts are too long for the policy: 24 of 60 with 4 shots, which count as")
    assert [row["prompt_too_long"] for row in found.tables["shots"]] == [0, 0, 24]


@pytest.mark.parametrize("name", ["few_shot", "zero_shot", "transfer", "learning_curve", "cross_validation"])
def test_studies_of_success_take_no_metric_of_another_scale(name):
    with pytest.raises(InputError, match="study.metric: this study is of a success rate"):
        compose(["+stage=study", f"study={name}", "study.metric=bits_per_character"])


def test_shots_have_to_rise():
    assert [one.where for one in few_shots(shots=[1, 1]).problems()] == ["shots"]
    assert few_shots().problems() == []


def rows_to(run, rows):
    write_text(
        run.directory / "metrics.jsonl", "".join(json.dumps({"step": i, **row}) + "\n" for i, row in rows.items())
    )


def test_algorithms_are_held_against_the_first_with_their_entropy(tmp_path):
    study = Algorithms(arms={"grpo": ["+stage=grpo"], "ppo": ["+stage=ppo"]}, seeds=[0, 1], metric=GREEDY)
    runs = [
        plant(tmp_path, job, lambda task, job=job: task % 3 == 0 or (job.arm == "ppo" and task % 3 == 1))
        for job in study.jobs()
    ]
    for place, run in enumerate(runs):
        rows_to(run, {step: {"samples/sampled": 32, "entropy": 1 / step + place} for step in (1, 2)})
        evaluated(run.directory, "before", lambda task: task % 6 == 0, range(TASKS))
    found = study.summarise(runs)
    assert found.answer[0].startswith("Difference on pass_at_1_greedy beyond chance, 1 of 1: ppo (+33.3")
    assert found.answer[1].startswith("ppo: better") and [row["arm"] for row in found.tables["difference"]] == [
        "grpo",
        "ppo",
    ]
    entropy = {(row["arm"], row["step"]): row["value"] for row in found.tables["entropy"]}
    assert entropy == {("grpo", 1): 1.5, ("grpo", 2): 1.0, ("ppo", 1): 3.5, ("ppo", 2): 3.0}
    rates = {(row["rate"], row["arm"]): row for row in found.tables["rates"]}
    assert rates[GREEDY, "before"]["value"] < rates[GREEDY, "grpo"]["value"] < rates[GREEDY, "ppo"]["value"]
    assert (
        rates[GREEDY, "ppo"]["difference"] == pytest.approx(1 / 3, abs=0.01) and rates[GREEDY, "ppo"]["p_holm"] < 0.05
    )
    assert {row["arm"]: row["entropy"] for row in found.tables["ends"]} == {"grpo": 1.25, "ppo": 3.25}
    failed = [replace(run, summary={"status": "failed"}) if run.job.arm == "grpo" else run for run in runs]
    assert {row["arm"] for row in study.summarise(failed).tables["rates"]} == {"ppo"}
    write_record(tmp_path, "study", [], runs, found)
    assert (
        {path.stem for path in tmp_path.glob("*.png")}
        == {path.stem for path in tmp_path.glob("*.svg")}
        == {"difference", "entropy"}
    )


def curve(sizes=(10, 40, 160)):
    return LearningCurve(
        command=["+stage=grpo"],
        sizes=[*sizes],
        varied=["data.limit={size}"],
        counted="tasks",
        seeds=[0, 1],
        metric=GREEDY,
    )


@pytest.mark.property(38)
def test_a_learning_curve_has_a_point_for_each_size_and_seed_with_its_runs_own_value(tmp_path):
    failing = {"10": 48, "40": 24, "160": 12}
    study = curve()
    assert study.jobs()[-1].words == ("+stage=grpo", "data.limit=160", "seed=1")
    runs = [plant(tmp_path, job, lambda task, job=job: task >= failing[job.arm] - job.seed) for job in study.jobs()]
    found = study.summarise(runs)
    points = found.tables["curve"]
    assert [(one["size"], one["seed"]) for one in points] == [(size, seed) for size in (10, 40, 160) for seed in (0, 1)]
    assert [one["success"] for one in points] == [run.summary["after"][GREEDY]["value"] for run in runs]
    assert all(one["rollouts"] == 128 for one in points)
    (law,) = found.tables["law"]
    assert law["low"] < -0.5 < law["high"] and law["exponent"] == pytest.approx(-0.5, abs=0.03)
    assert found.answer[0].startswith("Failures go as the number of tasks to the power -0.5")


def test_a_curve_that_is_flat_or_short_cannot_tell(tmp_path):
    flat = curve()
    runs = [
        plant(tmp_path / "flat", job, lambda task, job=job: (task + job.seed) % 2 == 0 and task) for job in flat.jobs()
    ]
    assert flat.summarise(runs).answer[0].startswith("Cannot tell whether more tasks change success")
    same = curve()
    runs = [plant(tmp_path / "same", job, lambda task: task % 2) for job in same.jobs()]
    found = same.summarise(runs)
    assert found.answer[0].startswith("Cannot tell how success grows") and "law" not in found.tables
    short = curve((10, 40))
    runs = [plant(tmp_path / "short", job, lambda task: task % 2) for job in short.jobs()]
    assert short.summarise(runs).answer[0].startswith("Cannot tell how success grows: a law needs 3 sizes")


def test_the_law_of_exact_values_is_found():
    scale, exponent = power_law([1, 10, 100, 1000], [2.0, 0.2, 0.02, 0.002])
    assert scale == pytest.approx(2) and exponent == pytest.approx((-1, -1, -1))
    with pytest.raises(ValueError, match="three or more above 0"):
        power_law([1, 2, 3], [1, 0, 1])


def complexity(**more):
    options = {"targets": [0.2, 0.3, 0.5], "seeds": [0, 1], "curve": "held_out/pass_at_1", **more}
    return SampleComplexity(arms={"one": ["a=1"], "two": ["a=2"]}, command=["+stage=grpo"], **options)


@pytest.mark.property(50)
def test_rollouts_to_a_target_never_fall_as_the_target_rises(tmp_path):
    study = complexity()
    runs = [plant(tmp_path, job, lambda task: task < TASKS / 2) for job in study.jobs()]
    values = [0.1, 0.35, 0.25, 0.4, 0.3, 0.55]
    for run in runs:
        best = values if run.job.arm == "one" else values[:5]
        rows_to(
            run, {i + 1: {"samples/sampled": 10.0 + run.job.seed, study.curve: value} for i, value in enumerate(best)}
        )
    found = study.summarise(runs)
    one, two = ([row for row in found.tables["rollouts"] if row["arm"] == arm] for arm in ("one", "two"))
    assert [row["rollouts"] for row in one] == [21.0, 21.0, 63.0]
    assert [row.get("rollouts") for row in two] == [21.0, 21.0, None] and two[2]["reached"] == 0
    assert found.answer[0].startswith("50% takes one 63 [") and "no other arm" in found.answer[0]
    assert found.answer[-1] == "two, 50%: reached by 0 of 2 seeds."


def test_one_seed_is_not_sure(tmp_path):
    study = complexity(seeds=[0], targets=[0.2])
    runs = [plant(tmp_path, job, lambda task: True) for job in study.jobs()]
    for run in runs:
        rows_to(run, {i: {"samples/sampled": 10, study.curve: 0.1 * i * (1 + (run.job.arm == "two"))} for i in (1, 2)})
    assert (
        study.summarise(runs).answer[0]
        == "20% takes two 10 rollouts: cannot tell whether fewer than one, 20; of one seed, so that nothing is known of others."
    )


def counted(tmp_path, by_seed, **more):
    """A target that each arm reaches after so many rollouts of each seed; None: the run failed."""
    study = complexity(seeds=[*range(len(by_seed["one"]))], targets=[0.2], **more)
    runs = []
    for job in study.jobs():
        rollouts = by_seed[job.arm][job.seed]
        run = plant(tmp_path, job, lambda task: True)
        rows_to(run, {1: {"samples/sampled": rollouts, study.curve: 0.3}})
        runs.append(run if rollouts else JobRun(job, run.directory, 3, {"status": "stopped"}))
    return study.summarise(runs)


def test_arms_are_paired_by_seeds_and_equal_counts_are_no_certainty(tmp_path):
    found = counted(tmp_path / "a", {"one": [100, 400, 900], "two": [110, 412, 911]})
    assert found.answer[0].startswith("20% takes one 467 [") and ": fewer than two, " in found.answer[0]
    assert found.answer[0].endswith("; such a figure of 3 seeds is too small where seeds differ much.")
    found = counted(tmp_path / "b", {"one": [300, 300], "two": [400, 400]})
    assert "one 300 [300, 300] rollouts: cannot tell whether fewer than two" in found.answer[0]


def test_a_run_that_failed_is_none_that_reached_a_target(tmp_path):
    found = counted(tmp_path, {"one": [100, 110, 120], "two": [900, 950, None]})
    assert [row["seeds"] for row in found.tables["rollouts"]] == [3, 2]
    assert "; such a figure of 2 seeds" in found.answer[0]


def test_sizes_measured_on_other_tasks_are_said_first(tmp_path):
    study = curve()
    runs = [plant(tmp_path, job, lambda task: task % 2, tasks=20 if job.arm == "10" else TASKS) for job in study.jobs()]
    assert study.summarise(runs).answer[0].startswith("Not all sizes were measured on the same tasks")


def test_a_curve_that_no_run_has_is_refused(tmp_path):
    runs = [plant(tmp_path, job, lambda task: True) for job in complexity().jobs()]
    with pytest.raises(InputError, match=r"study.curve: no run has it(.|\n)*run.select.every_steps=N"):
        complexity().summarise(runs)
