"""Saved evaluations: the completions are read back, and the saved numbers are theirs."""

import json
from dataclasses import replace

import pytest
from completions import completion

from rlvr_exp.core.errors import InputError
from rlvr_exp.evaluation.metrics import METRICS, rates_from
from rlvr_exp.evaluation.paired import paired
from rlvr_exp.evaluation.saved import save
from rlvr_exp.records.rollout_files import EvalSample, read_evaluation
from rlvr_exp.verifiers.base import Verdict

TASKS = (("a", ("passed", None), "flip", "1 2"), ("b", ("failed", "parse"), "rotate", "3 4"))
RESULTS = [
    EvalSample(completion(task, *verdict, family=family, sample=sample, tokens=4, seconds=0.5), mode, prompt)
    for task, verdict, family, prompt in TASKS
    for mode, samples in (("greedy", 1), ("sampled", 8))
    for sample in range(samples)
]


def judged(verdict, task):
    """The same completions, under another verdict those of one task."""
    return [
        replace(one, completion=replace(one.completion, verdict=verdict)) if one.completion.task.id == task else one
        for one in RESULTS
    ]


def test_completions_and_prompts_come_back(tmp_path):
    save(tmp_path, "before", RESULTS)
    found = read_evaluation(tmp_path, "before")
    assert found == RESULTS and [one.completion.seconds for one in found] == [0.5] * len(RESULTS)


def test_the_numbers_are_those_of_the_completions(tmp_path):
    rates = save(tmp_path, "after", RESULTS)
    assert rates == rates_from(RESULTS)
    numbers = json.loads((tmp_path / "evaluation" / "after.json").read_text())
    assert numbers["rates"] == {name: rate.to_dict() for name, rate in rates.items()}
    assert numbers["families"]["flip"]["pass_at_8"]["value"] == 1.0
    assert numbers["verdicts"]["sampled"]["parse"] == 8 and numbers["verdicts"]["greedy"]["passed"] == 1
    assert numbers["latency"] == {"p50": 0.5, "p95": 0.5} and numbers["tokens"] == 4


def test_after_holds_the_paired_change_since_before(tmp_path):
    save(tmp_path, "before", judged(Verdict("failed", "parse"), "a"))
    save(tmp_path, "after", RESULTS)
    change = json.loads((tmp_path / "evaluation" / "after.json").read_text())["change"]
    assert (
        change["pass_at_1_greedy"] == paired(read_evaluation(tmp_path, "before"), RESULTS, "pass_at_1_greedy").to_dict()
    )
    assert (change["pass_at_8"]["won"], change["pass_at_8"]["tied"], change["pass_at_8"]["value"]) == (1, 1, 0.5)


def test_a_task_without_a_verdict_leaves_the_change_not_the_metric(tmp_path):
    save(tmp_path, "before", RESULTS)
    save(tmp_path, "after", judged(Verdict("no_verdict"), "b"))
    change = json.loads((tmp_path / "evaluation" / "after.json").read_text())["change"]
    assert {metric: numbers["n"] for metric, numbers in change.items()} == dict.fromkeys(METRICS, 1)


def test_other_tasks_before_are_not_compared(tmp_path):
    save(tmp_path, "before", RESULTS[:9])
    save(tmp_path, "after", RESULTS)
    assert json.loads((tmp_path / "evaluation" / "after.json").read_text())["change"] == {}


def test_a_missing_evaluation_is_refused_by_path(tmp_path):
    with pytest.raises(InputError, match="before.jsonl.gz"):
        read_evaluation(tmp_path, "before")
