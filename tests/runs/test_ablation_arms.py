"""An ablation over planted runs: what it says of a component with an effect, of one without, and where it cannot tell."""

import csv
import json

import pytest
from planted import TASKS, plant

from rlvr_exp.core.errors import InputError
from rlvr_exp.core.files import write_text
from rlvr_exp.runs.comparison import arm_values, contrasts
from rlvr_exp.runs.record import write_record
from rlvr_exp.runs.studies.arms import Ablation, Optimizers
from rlvr_exp.runs.study import JobRun

TERMS = {"no_terms": ["reward.a=0"], "no_effect": ["reward.b=0"]}


def ablation(**more):
    return Ablation(command=["+stage=grpo"], arms=TERMS, seeds=[0, 1, 2], metric="pass_at_1_greedy", **more)


def ablated(root, passing, **more):
    """`passing`: by arm, of a seed and a task."""
    return [
        plant(root, job, lambda task, job=job: passing[job.arm](job.seed, task), **more) for job in ablation().jobs()
    ]


def full(seed, task):
    return (task + seed) % 3 > 0


def test_every_arm_is_run_with_every_seed_and_its_own_words():
    jobs = ablation(words=["+experiment=quick"], only=["no_effect"]).jobs()
    assert [job.name for job in jobs] == [f"{arm}_seed{seed}" for arm in ("full", "no_effect") for seed in range(3)]
    assert jobs[3].words == ("+stage=grpo", "+experiment=quick", "reward.b=0", "seed=0")
    assert jobs[3].own == ("reward.b=0", "seed=0") and jobs[0].own == ("seed=0",)


@pytest.mark.property(40)
def test_the_impact_is_full_minus_ablated_paired_by_task_and_seed(tmp_path):
    passing = {"full": full, "no_effect": full, "no_terms": lambda seed, task: full(seed, task) and task % 4 > 0}
    runs = ablated(tmp_path, passing)
    found = ablation().summarise(runs)
    rows = {row["arm"]: row for row in found.tables["impact"]}
    assert rows["no_effect"]["impact"] == 0.0 and "impact" not in rows["full"]
    by_hand = [
        sum(passing["full"](seed, task) - passing["no_terms"](seed, task) for seed in range(3)) / 3
        for task in range(TASKS)
    ]
    assert rows["no_terms"]["impact"] == pytest.approx(sum(by_hand) / TASKS)
    assert rows["no_terms"]["low"] > 0 and (rows["no_terms"]["tasks"], rows["no_terms"]["seeds"]) == (TASKS, 3)
    assert "1 of 2: no_terms" in found.answer[0]
    assert [sentence.split(",")[0] for sentence in found.answer[1:]] == [
        "no_terms: helps",
        "no_effect: no difference was found",
    ]


def test_seeds_that_an_arm_lacks_are_left_out_of_both(tmp_path):
    runs = ablated(tmp_path, {arm: lambda seed, task: seed > 0 for arm in ("full", *TERMS)})
    lost = [run for run in runs if run.job.name != "no_terms_seed0"]
    arms = arm_values(lost, "pass_at_1_greedy")
    between = contrasts(arms, "full", "pass_at_1_greedy", from_reference=True)["no_terms"]
    assert (between.value.seeds, between.value.value) == (2, 0.0), "unpaired it would be a third lower"
    assert contrasts({"full": arms["full"], "none": {}}, "full", "pass_at_1_greedy") == {}


@pytest.mark.parametrize(("solved", "where"), [(0, "under 5%"), (TASKS, "over 95%")])
def test_arms_at_the_ends_cannot_be_told_apart(tmp_path, solved, where):
    runs = ablated(tmp_path, {arm: lambda seed, task: task < solved for arm in ("full", *TERMS)})
    assert ablation().summarise(runs).answer[0].startswith(f"Cannot tell: all arms lie {where}")


def test_unequal_budgets_are_said_first(tmp_path):
    runs = [
        plant(tmp_path, job, lambda task: task % 2, 128 if job.arm == "no_terms" else 64) for job in ablation().jobs()
    ]
    answer = ablation().summarise(runs).answer
    assert answer[0].startswith("Unequal budgets: full had 128 rollouts, no_terms 256")
    assert not ablation(equal="none").summarise(runs).answer[0].startswith("Unequal")
    assert "2,560" in ablation(equal="tokens").summarise(runs).answer[0]


def test_a_study_says_where_it_cannot_tell_and_what_it_could_have_seen(tmp_path):
    runs = ablated(tmp_path, dict.fromkeys(("full", *TERMS), full))
    answer = ablation().summarise(runs).answer
    assert answer[0].startswith("No difference was found: chance may be the cause of each; one of ")


def test_a_metric_that_no_run_has_is_refused(tmp_path):
    runs = ablated(tmp_path, dict.fromkeys(("full", *TERMS), full))
    with pytest.raises(InputError, match=r"study.metric: no run measured it(.|\n)*allowed: pass_at_1_greedy"):
        Ablation(metric="pass_at_3").summarise(runs)


def test_what_a_study_leaves(tmp_path):
    passing = {"full": full, "no_effect": full, "no_terms": lambda seed, task: task % 4 == 0}
    runs = ablated(tmp_path, passing)
    runs[-1] = JobRun(runs[-1].job, tmp_path / "lost", 3, {"status": "stopped"})
    runs[0] = JobRun(runs[0].job, runs[0].directory, 0, runs[0].summary, reused=True)
    findings = ablation().summarise(runs)
    text = write_record(tmp_path, "study", ["python", "-m", "rlvr_exp"], runs, findings)
    assert findings.answer[0] in text and "Seeds pooled, with" in text
    plain = json.loads((tmp_path / "study.json").read_text())
    assert plain["answer"] == findings.answer and plain["jobs"][0]["reused"] and plain["jobs"][-1]["exit"] == 3
    assert set(plain["options"]) == {"options", "options.reward.a", "options.reward.b"}
    assert plain["options"]["options.reward.a"] == {"full": "(absent)", "no_terms": "0", "no_effect": "(absent)"}
    with open(tmp_path / "impact.csv", newline="") as lines:
        assert [row["arm"] for row in csv.DictReader(lines)] == ["full", "no_terms", "no_effect"]
    page = (tmp_path / "study.html").read_text()
    for part in (findings.answer[0], "full_seed0/report.html", "<svg xmlns", "reused", "stopped"):
        assert part in page
    assert "://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert (tmp_path / "impact.svg").read_text().startswith("<svg") and (tmp_path / "impact.png").read_bytes()[
        1:4
    ] == b"PNG"


OPTIMIZERS = {"adamw": ["optimizer=adamw"], "fast": ["optimizer.lr=1e-2"], "flat": ["optimizer.lr=1e-9"]}


def optimizers(**more):
    more = {"window": 1, "metric": "pass_at_1_greedy", **more}
    return Optimizers(command=["+stage=grpo"], arms=OPTIMIZERS, seeds=[0, 1], **more)


def course(arm, seed):
    """By step: `fast` is at 0.5, the end of `adamw`, in half the steps; `flat` never."""
    grows = {"adamw": 0.05, "fast": 0.1, "flat": 0.0}[arm]
    return {step: min(0.8, 0.1 * seed + grows * step) for step in range(1, 11)}


def courses(root, name="success/mean", of=course):
    jobs = optimizers().jobs()
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
    runs = courses(tmp_path)
    found = optimizers().summarise(runs)
    rows = {row["arm"]: row for row in found.tables["convergence"]}
    assert (rows["fast"]["step"], rows["fast"]["reached"]) == (5, 2), (
        "0.5 of seed 0, 0.6 of seed 1: in its pair's own terms"
    )
    assert "step" not in rows["flat"] and rows["flat"]["reached"] == 0
    assert rows["adamw"]["step"] == 10 and rows["adamw"]["final"] == pytest.approx(0.55)
    assert [rows[arm]["clipped"] for arm in OPTIMIZERS] == [0.25, 1.0, 0.0]
    assert found.answer[0].startswith("Difference on pass_at_1_greedy beyond chance, 1 of 2: fast")
    assert "fast: gets to the final value of adamw at step 5 [5, 5]; 100% of its steps are clipped." in found.answer
    assert "flat: gets to the final value of adamw with 0 of 2 seeds; 0% of its steps are clipped." in found.answer
    write_record(tmp_path, "study", [], runs, found)
    assert {path.stem for path in tmp_path.glob("*.png")} == {"difference", "curve"}


def test_a_smoothed_curve_is_the_mean_of_the_latest_rows(tmp_path):
    of = optimizers(window=4).summarise(courses(tmp_path)).tables["convergence"]
    fast = next(row for row in of if row["arm"] == "fast")
    assert fast["step"] == 6, "the mean of steps 3 to 6 is 0.45, that of adamw at its end 0.425, of 2 to 5 0.35"


def test_a_window_that_is_not_full_reaches_nothing(tmp_path):
    """One good row at the start is chance; a run that is shorter than the window has its mean alone."""
    lucky = lambda arm, seed: {1: 0.9, **dict.fromkeys(range(2, 11), 0.0)} if arm == "flat" else course(arm, seed)  # noqa: E731
    of = {row["arm"]: row for row in optimizers(window=4).summarise(courses(tmp_path, of=lucky)).tables["convergence"]}
    assert of["flat"]["reached"] == 0
    of = {row["arm"]: row for row in optimizers(window=40).summarise(courses(tmp_path / "short")).tables["convergence"]}
    assert of["adamw"]["step"] == 10 and of["fast"]["reached"] == 2


def test_a_loss_has_to_fall(tmp_path):
    runs = courses(tmp_path, "loss", lambda arm, seed: {step: -value for step, value in course(arm, seed).items()})
    rows = {
        row["arm"]: row for row in optimizers(curve="loss", direction="minimize").summarise(runs).tables["convergence"]
    }
    assert rows["fast"]["step"] == 5 and rows["flat"]["reached"] == 0


def test_rows_of_several_steps_count_as_many(tmp_path):
    runs = courses(tmp_path)
    lines = [(1, 1.0), (4, 0.0)]
    for run in runs:
        rows = [{"step": step, "success/mean": 0.1, "grad_norm/clipped": share} for step, share in lines]
        write_text(run.directory / "metrics.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    assert {row["clipped"] for row in optimizers().summarise(runs).tables["convergence"]} == {0.25}


def test_a_curve_that_no_run_has_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"study.curve: no run has it(.|\n)*study.curve=NAME"):
        optimizers(curve="succes/mean").summarise(courses(tmp_path))
