"""Comparing runs: exactly the options that differ, rates side by side, paired differences, and clear refusals."""

import json
from types import SimpleNamespace

import pytest
import yaml
from completions import completion
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.core.errors import InputError
from rlvr_exp.core.files import write_json
from rlvr_exp.evaluation.arms import rows_of
from rlvr_exp.evaluation.paired import paired
from rlvr_exp.evaluation.saved import save
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.manifest import flat
from rlvr_exp.records.rollout_files import EvalSample, read_evaluation
from rlvr_exp.stages import compare

OPTIONS = {
    "seed": 0,
    "algorithm": {"group_size": 8, "trl": {}},
    "run": {"dir": "a"},
    "model": {"path": "x"},
    "flag": True,
}


def answer(task, passed):
    verdict = ("passed", None) if passed else ("failed", "parse")
    return EvalSample(completion(task, *verdict), "greedy", "prompt")


def made(directory, options, passing, tasks=range(10), metrics=None):
    directory.mkdir(parents=True)
    results = [answer(f"t{i}", i in passing) for i in tasks]
    rates = save(directory, "after", results)
    (directory / "config.yaml").write_text(yaml.safe_dump(options))
    summary = {"stage": "grpo", "status": "completed", "reason": "", "steps": 20, "seconds": 61.5, "before": {}}
    plain = {name: rate.to_dict() for name, rate in rates.items()}
    write_json(directory / "summary.json", summary | {"after": plain, "metrics": metrics or {}})
    return directory


@pytest.fixture
def two(tmp_path):
    other = {**OPTIONS, "algorithm": {"group_size": 4, "lr": 1e-4, "trl": {}}, "run": {"dir": "b"}, "flag": 1}
    return [
        made(tmp_path / "first", OPTIONS, range(3), metrics={"loss": 0.25}),
        made(tmp_path / "second", other, range(2, 9)),
    ]


def test_only_the_options_that_differ_are_listed(two):
    assert compare.compare(two).options == {
        "algorithm.group_size": [8, 4],
        "algorithm.lr": ["(absent)", 1e-4],
        "flag": [True, 1],
    }


def test_rates_stand_side_by_side_with_their_intervals(two):
    comparison = compare.compare(two)
    rates = comparison.metrics["after/pass_at_1_greedy"]
    assert [rate["value"] for rate in rates] == pytest.approx([0.3, 0.7])
    assert rates == [json.loads((run / "summary.json").read_text())["after"]["pass_at_1_greedy"] for run in two]
    assert comparison.metrics["loss"] == [0.25, None]
    assert comparison.facts["steps"] == [20, 20]


def test_runs_on_the_same_tasks_are_compared_task_by_task(two):
    none, difference = compare.compare(two).differences["pass_at_1_greedy"]
    assert none is None
    assert difference == paired(*(read_evaluation(run, "after") for run in two), "pass_at_1_greedy").to_dict()
    assert (difference["won"], difference["lost"], difference["tied"]) == (6, 2, 2)


def test_runs_on_other_tasks_have_no_paired_difference(two, tmp_path):
    third = made(tmp_path / "third", OPTIONS, range(3), tasks=range(5))
    differences = compare.compare([*two, third]).differences
    assert [value is None for value in differences["pass_at_1_greedy"]] == [True, False, True]


def test_the_stage_writes_both_files_and_shows_the_table(two, tmp_path):
    events = []
    context = RunContext(tmp_path / "comparison", events.append)
    config = SimpleNamespace(compare=SimpleNamespace(runs=[str(run) for run in two]))
    result = compare.run(config, context)
    written = json.loads((context.directory / "compare.json").read_text())
    assert written["runs"] == ["first", "second"] and written["options"]["algorithm.group_size"] == [8, 4]
    text = (context.directory / "compare.md").read_text()
    assert [event["text"] for event in events] == [text]
    assert "| algorithm.group_size | 8" in text and "+40.0 points [" in text and "30.0% [" in text
    assert result.metrics == {"runs": 2, "options_that_differ": 3} and result.steps == 0


def test_every_run_that_is_not_finished_is_named_with_what_it_lacks(two, tmp_path):
    (two[0] / "summary.json").unlink()
    (tmp_path / "bare").mkdir()
    with pytest.raises(InputError) as refusal:
        compare.compare([*two, tmp_path / "bare", tmp_path / "none"])
    assert [(problem.what.split(": ")[0], problem.got) for problem in refusal.value.problems] == [
        (str(two[0]), "without summary.json"),
        (str(tmp_path / "bare"), "without config.yaml and summary.json"),
        (str(tmp_path / "none"), ""),
    ]


@pytest.mark.parametrize("name", ["config.yaml", "summary.json"])
@pytest.mark.parametrize("text", ["{[", "[]"])
def test_a_damaged_file_is_named(two, name, text):
    (two[1] / name).write_text(text)
    with pytest.raises(InputError, match=name):
        compare.compare(two)


def test_folders_of_one_name_are_told_apart_by_their_paths(tmp_path):
    runs = [made(tmp_path / sweep / "0", OPTIONS, range(3)) for sweep in "ab"]
    comparison = compare.compare(runs)
    assert comparison.runs == [str(run) for run in runs]
    assert "Options that differ: none" in compare.as_markdown(comparison)


def test_runs_that_differ_in_their_seed_alone_are_pooled(two, tmp_path):
    assert compare.compare(two).arms == []
    again = made(tmp_path / "again", {**OPTIONS, "seed": 1, "run": {"dir": "c"}}, range(5))
    comparison = compare.compare([*two, again])
    first, second = comparison.arms
    assert first.name == "algorithm.group_size=8, flag=True, algorithm.lr=(absent)" and first.seeds == (0, 1)
    assert first.rates["after/pass_at_1_greedy"]["of_seeds"] == [0.3, 0.5] and second.runs == (1,)
    text = compare.as_markdown(comparison)
    assert "40.0% [" in text and "seeds 30.0 to 50.0" in text
    other = made(tmp_path / "other", {**OPTIONS, "flag": "x" * 80}, range(5))
    assert [arm.name for arm in compare.compare([two[0], again, other]).arms] == ["flag=True", "other"]


def test_the_same_links_of_two_chains_are_pooled_though_their_files_stand_in_two_places(tmp_path):
    """The chains were moved after they had run: what counts is where they ran."""
    links = []
    for seed in (0, 1):
        ran, here = f"/ran/chain_{seed}", tmp_path / f"chain_{seed}"
        for link, passing in (("01_sft", 3), ("02_grpo", 5 + seed)):
            options = {**OPTIONS, "seed": seed, "run": {"dir": f"{ran}/{link}"}}
            options["model"] = {"path": f"{ran}/01_sft/checkpoints/best" if link == "02_grpo" else "x"}
            options["sandbox"] = {"paths": [f"{ran}/rows", "/ran/chain_00/rows"]}
            links.append(made(here / link, options, range(passing)))
        write_json(here / "chain.json", {})
    found = compare.compare(links)
    assert found.options["model.path"] == ["x", "{chain}/01_sft/checkpoints/best"] * 2
    assert "sandbox.paths" not in found.options, "/ran/chain_00 is no part of /ran/chain_0"
    sft, grpo = found.arms
    assert (sft.seeds, sft.runs, grpo.runs) == ((0, 1), (0, 2), (1, 3))
    assert grpo.rates["after/pass_at_1_greedy"]["of_seeds"] == [0.5, 0.6]
    for folder in (tmp_path / "chain_0", tmp_path / "chain_1"):
        (folder / "chain.json").unlink()
    assert not compare.compare(links).arms, "without the chains they are runs with other files"


LEAVES = st.integers(0, 2) | st.none() | st.lists(st.integers(0, 1), max_size=2)
TREES = st.recursive(LEAVES, lambda below: st.dictionaries(st.sampled_from("abc"), below, max_size=3), max_leaves=8)
NODES = st.dictionaries(st.sampled_from("abc"), TREES, max_size=3)


@given(NODES, NODES)
def test_options_differ_if_and_only_if_the_trees_do(first, second):
    rows = rows_of([flat(first), flat(second)], only_differing=True)
    assert (rows == {}) == (first == second)
    assert rows_of([flat(first)] * 2, only_differing=True) == {}
