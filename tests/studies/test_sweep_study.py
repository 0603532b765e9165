"""The table of a sweep: what is written beside the jobs, and what the page links to."""

import csv
import json

import pytest
from completions import completion
from report_pages import HOSTILE, Page, log

from rlvr_exp.core.files import write_json
from rlvr_exp.evaluation.saved import save
from rlvr_exp.launch.execute import Outcome
from rlvr_exp.records.rollout_files import EvalSample
from rlvr_exp.studies.sweep import write_study

SWEPT = [(f"algorithm.group_size={size}", f"seed={seed}") for size in (4, 8) for seed in (0, 1)]


def job(directory, passing, code=0):
    directory.mkdir(parents=True)
    log(directory, steps=5)
    rates = {}
    for when, some in (("before", range(2)), ("after", passing)):
        verdicts = [
            EvalSample(completion(f"t{i}", "passed" if i in some else "rejected"), "greedy", "p") for i in range(10)
        ]
        rates[when] = {name: rate.to_dict() for name, rate in save(directory, when, verdicts).items()}
    summary = {"status": "completed", "steps": 5, "seconds": 2.5, **rates}
    write_json(directory / "summary.json", summary)
    return Outcome(directory, code, summary)


@pytest.fixture
def outcomes(tmp_path):
    return [job(tmp_path / str(i), range(i + 2)) for i in range(4)]


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def test_jobs_and_arms_are_written_with_their_intervals(tmp_path, outcomes):
    text = write_study(tmp_path, ["python", "a b"], SWEPT, outcomes)
    study = json.loads((tmp_path / "study.json").read_text())
    assert [one["directory"] for one in study["jobs"]] == list("0123") and study["command"] == ["python", "a b"]
    assert [(arm["name"], arm["seeds"]) for arm in study["arms"]] == [
        (f"algorithm.group_size={size}", ["0", "1"]) for size in (4, 8)
    ]
    jobs, arms = rows_of(tmp_path / "jobs.csv"), rows_of(tmp_path / "arms.csv")
    assert [(row["algorithm.group_size"], row["seed"], row["after/pass_at_1_greedy"]) for row in jobs] == [
        ("4", "0", "0.2"), ("4", "1", "0.3"), ("8", "0", "0.4"), ("8", "1", "0.5")
    ]  # fmt: skip
    assert [float(row["after/pass_at_1_greedy"]) for row in arms] == [0.25, 0.45]
    assert float(arms[1]["against_first/pass_at_1_greedy"]) == pytest.approx(0.2)
    assert float(arms[1]["against_first/pass_at_1_greedy/ratio"]) == pytest.approx(0.45 / 0.25)
    assert float(arms[1]["after/pass_at_1_greedy/iqm/low"]) < float(arms[1]["after/pass_at_1_greedy/iqm"])
    assert float(arms[0]["after/pass_at_1_greedy/low"]) < 0.25 < float(arms[0]["after/pass_at_1_greedy/high"])
    assert "seeds 20.0 to 30.0" in text
    (found,) = study["arms"][1]["findings"].values()
    assert (
        found.startswith("no difference between algorithm.group_size=8 and algorithm.group_size=4 was found")
        and found in text
    )


def test_the_page_links_to_its_runs_and_draws_the_arms(tmp_path, outcomes):
    write_study(tmp_path, ["python"], SWEPT, outcomes)
    page = Page((tmp_path / "study.html").read_text())
    assert [named["href"] for tag, named in page.tags if tag == "a"] == [f"{i}/report.html" for i in range(4)]
    assert ("b", "25.0%") in page.texts and ("th", "against algorithm.group_size=4") in page.texts
    assert any(tag == "li" and words.startswith("no difference between") for tag, words in page.texts)
    cells = [named["data-label"] for tag, named in page.tags if tag == "td" and "data-label" in named]
    assert cells[:3] == ["seeds, lowest to highest", "before", "after"], "a phone shows no heads"
    assert list(page.charts["Reward, all runs"]["series"]) == ["algorithm.group_size=4", "algorithm.group_size=8"]


def test_failed_jobs_and_those_that_were_not_started(tmp_path, outcomes):
    stopped = Outcome(tmp_path / "none", 2, {"status": "failed", "diagnosis": HOSTILE})
    hostile = [*SWEPT[:1], ("data.path=" + HOSTILE,), *SWEPT[2:]]
    text = write_study(tmp_path, [HOSTILE], hostile, [outcomes[0], stopped])
    study = json.loads((tmp_path / "study.json").read_text())
    assert [one["exit"] for one in study["jobs"]] == [0, 2] and study["jobs"][1]["after"] == {} and text == ""
    page = Page((tmp_path / "study.html").read_text())
    assert sum(tag == "script" for tag, _ in page.tags) == 1 and not [1 for tag, _ in page.tags if tag == "img"]
    write_study(tmp_path, [], SWEPT, [])


def test_without_a_sweep_over_options_there_is_one_arm(tmp_path, outcomes):
    words = [(f"seed={i}", f"run.dir={i}") for i in range(4)]
    assert "| all " in write_study(tmp_path, [], words, outcomes)
