"""Evaluations in their files, computed once; measurements that runs share."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from completions import completion

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import to_yaml
from rlvr_exp.core.errors import InputError
from rlvr_exp.evaluation.metrics import METRICS, rates_from
from rlvr_exp.evaluation.paired import paired
from rlvr_exp.evaluation.saved import measurement, recall, remember, save
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


MANIFEST = {
    "data": {"train": {"fingerprint": "a"}, "test": {"fingerprint": "b"}},
    "start": {"model/x": "1"},
    "versions": {},
}


def place(folder: Path, *words: str, **changed: object) -> Path:
    run = folder / "run"
    run.mkdir(exist_ok=True)
    (run / "config.yaml").write_text(to_yaml(compose(["+stage=grpo", *words])))
    (run / "manifest.json").write_text(json.dumps({**MANIFEST, **changed}))
    return measurement(str(folder), run, "test")


@pytest.mark.heavy
def test_runs_that_learn_otherwise_share_a_measurement_and_others_do_not(tmp_path: Path) -> None:
    base = place(tmp_path)
    same = (
        ["optimizer.lr=1e-5", "algorithm.group_size=4", "reward.terms.length.weight=0", "curriculum=ordered"],
        ["evaluation.batch_size=8", "evaluation.remember=elsewhere", "run.log_every_steps=2"],
    )
    assert {place(tmp_path, *words) for words in same} == {base}
    assert place(tmp_path, data={**MANIFEST["data"], "train": {"fingerprint": "c"}}) == base, "not measured on"
    other = (
        ["seed=1"],
        ["evaluation.samples=4"],
        ["evaluation.temperature=0.5"],
        ["sandbox.cpu_s=1"],
        ["model.max_completion_tokens=9"],
    )
    found = {place(tmp_path, *words) for words in other}
    found |= {place(tmp_path, start={"model/x": "2"}), place(tmp_path, data={"test": {"fingerprint": "d"}})}
    assert len(found) == len(other) + 2 and base not in found


def test_what_is_remembered_is_recalled_whole(tmp_path: Path) -> None:
    scored = [EvalSample(completion(f"t{i}"), "greedy", "prompt") for i in range(3)]
    assert recall(tmp_path / "a") is None
    remember(tmp_path / "a", scored)
    assert recall(tmp_path / "a") == scored
