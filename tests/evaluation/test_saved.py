"""Saved evaluations: the completions are read back, and the saved numbers are theirs."""

import json
from dataclasses import replace

import pytest

from rlvr_exp.core.errors import InputError
from rlvr_exp.evaluation.metrics import METRICS, EvalSample, rates_from
from rlvr_exp.evaluation.paired import paired
from rlvr_exp.evaluation.saved import load, save
from rlvr_exp.records.rollout_files import read_evaluation

RESULTS = [
    EvalSample(
        task, family, mode, sample, outcome, "parse" if outcome == "failed" else None, f"{task}{sample}", 4, "", 0.5
    )
    for task, family, outcome in (("a", "flip", "passed"), ("b", "rotate", "failed"))
    for mode, samples in (("greedy", 1), ("sampled", 8))
    for sample in range(samples)
]
PROMPTS = {"a": "1 2", "b": "3 4"}


def test_completions_and_prompts_come_back(tmp_path):
    save(tmp_path, "before", RESULTS, PROMPTS)
    assert load(tmp_path, "before") == RESULTS
    assert [row["prompt"] for row in read_evaluation(tmp_path, "before")] == [
        PROMPTS[result.task] for result in RESULTS
    ]


def test_the_numbers_are_those_of_the_completions(tmp_path):
    rates = save(tmp_path, "after", RESULTS, PROMPTS)
    assert rates == rates_from(RESULTS)
    numbers = json.loads((tmp_path / "evaluation" / "after.json").read_text())
    assert numbers["rates"] == {name: rate.to_dict() for name, rate in rates.items()}
    assert numbers["families"]["flip"]["pass_at_8"]["value"] == 1.0
    assert numbers["verdicts"]["sampled"]["parse"] == 8 and numbers["verdicts"]["greedy"]["passed"] == 1
    assert numbers["latency"] == {"p50": 0.5, "p95": 0.5} and numbers["tokens"] == 4


def test_after_holds_the_paired_change_since_before(tmp_path):
    save(tmp_path, "before", [replace(result, outcome="failed", bucket="parse") for result in RESULTS], PROMPTS)
    save(tmp_path, "after", RESULTS, PROMPTS)
    change = json.loads((tmp_path / "evaluation" / "after.json").read_text())["change"]
    assert change["pass_at_1_greedy"] == paired(load(tmp_path, "before"), RESULTS, "pass_at_1_greedy").to_dict()
    assert (change["pass_at_8"]["won"], change["pass_at_8"]["tied"], change["pass_at_8"]["value"]) == (1, 1, 0.5)


def test_a_task_without_a_verdict_leaves_the_change_not_the_metric(tmp_path):
    save(tmp_path, "before", RESULTS, PROMPTS)
    silent = [replace(r, outcome="no_verdict", bucket=None) if r.task == "b" else r for r in RESULTS]
    save(tmp_path, "after", silent, PROMPTS)
    change = json.loads((tmp_path / "evaluation" / "after.json").read_text())["change"]
    assert {metric: numbers["n"] for metric, numbers in change.items()} == dict.fromkeys(METRICS, 1)


def test_other_tasks_before_are_not_compared(tmp_path):
    save(tmp_path, "before", RESULTS[:9], PROMPTS)
    save(tmp_path, "after", RESULTS, PROMPTS)
    assert json.loads((tmp_path / "evaluation" / "after.json").read_text())["change"] == {}


def test_a_missing_evaluation_is_refused_by_path(tmp_path):
    with pytest.raises(InputError, match="before.jsonl.gz"):
        load(tmp_path, "before")
