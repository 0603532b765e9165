"""An ablation over planted runs: what it says of a component with an effect, of one without, and where it cannot tell."""

import csv
import json

import pytest
from planted import TASKS, plant

from rlvr_exp.core.errors import InputError
from rlvr_exp.runs.comparison import arm_values, contrasts
from rlvr_exp.runs.record import write_record
from rlvr_exp.runs.studies.arms import Ablation
from rlvr_exp.runs.study import Run

ARMS = {"no_terms": ["reward.a=0"], "no_effect": ["reward.b=0"]}


def study(**more):
    return Ablation(command=["+stage=grpo"], arms=ARMS, seeds=[0, 1, 2], metric="pass_at_1_greedy", **more)


def planted(root, passing, **more):
    """`passing`: by arm, of a seed and a task."""
    return [plant(root, job, lambda task, job=job: passing[job.arm](job.seed, task), **more) for job in study().jobs()]


def full(seed, task):
    return (task + seed) % 3 > 0


def test_every_arm_is_run_with_every_seed_and_its_own_words():
    jobs = study(words=["+experiment=quick"], only=["no_effect"]).jobs()
    assert [job.name for job in jobs] == [f"{arm}_seed{seed}" for arm in ("full", "no_effect") for seed in range(3)]
    assert jobs[3].words == ("+stage=grpo", "+experiment=quick", "reward.b=0", "seed=0")
    assert jobs[3].own == ("reward.b=0", "seed=0") and jobs[0].own == ("seed=0",)


@pytest.mark.property(40)
def test_the_impact_is_full_minus_ablated_paired_by_task_and_seed(tmp_path):
    passing = {"full": full, "no_effect": full, "no_terms": lambda seed, task: full(seed, task) and task % 4 > 0}
    runs = planted(tmp_path, passing)
    found = study().summarise(runs)
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
    runs = planted(tmp_path, {arm: lambda seed, task: seed > 0 for arm in ("full", *ARMS)})
    lost = [run for run in runs if run.job.name != "no_terms_seed0"]
    arms = arm_values(lost, "pass_at_1_greedy")
    between = contrasts(arms, "full", "pass_at_1_greedy", from_reference=True)["no_terms"]
    assert (between.value.seeds, between.value.value) == (2, 0.0), "unpaired it would be a third lower"
    assert contrasts({"full": arms["full"], "none": {}}, "full", "pass_at_1_greedy") == {}


@pytest.mark.parametrize(("solved", "where"), [(0, "under 5%"), (TASKS, "over 95%")])
def test_arms_at_the_ends_cannot_be_told_apart(tmp_path, solved, where):
    runs = planted(tmp_path, {arm: lambda seed, task: task < solved for arm in ("full", *ARMS)})
    assert study().summarise(runs).answer[0].startswith(f"Cannot tell: all arms lie {where}")


def test_unequal_budgets_are_said_first(tmp_path):
    runs = [plant(tmp_path, job, lambda task: task % 2, 128 if job.arm == "no_terms" else 64) for job in study().jobs()]
    answer = study().summarise(runs).answer
    assert answer[0].startswith("Unequal budgets: full had 128 rollouts, no_terms 256")
    assert not study(equal="none").summarise(runs).answer[0].startswith("Unequal")
    assert "2,560" in study(equal="tokens").summarise(runs).answer[0]


def test_a_study_says_where_it_cannot_tell_and_what_it_could_have_seen(tmp_path):
    runs = planted(tmp_path, dict.fromkeys(("full", *ARMS), full))
    answer = study().summarise(runs).answer
    assert answer[0].startswith("No difference was found: chance may be the cause of each; one of ")


def test_a_metric_that_no_run_has_is_refused(tmp_path):
    runs = planted(tmp_path, dict.fromkeys(("full", *ARMS), full))
    with pytest.raises(InputError, match=r"study.metric: no run measured it(.|\n)*allowed: pass_at_1_greedy"):
        Ablation(metric="pass_at_3").summarise(runs)


def test_what_a_study_leaves(tmp_path):
    passing = {"full": full, "no_effect": full, "no_terms": lambda seed, task: task % 4 == 0}
    runs = planted(tmp_path, passing)
    runs[-1] = Run(runs[-1].job, tmp_path / "lost", 3, {"status": "stopped"})
    runs[0] = Run(runs[0].job, runs[0].directory, 0, runs[0].summary, reused=True)
    findings = study().summarise(runs)
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
