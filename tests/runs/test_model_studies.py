"""Models trained from scratch: a row an arm on equal tokens and equal tasks (properties 43, 44), and held-out loss against
size (property 37)."""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import torch
from completions import completion
from planted import plant
from scipy import stats

from rlvr_exp.algorithms.sft import IGNORED, example
from rlvr_exp.config.architecture import Scratch
from rlvr_exp.config.compose import compose, compose_lenient
from rlvr_exp.config.model import Model
from rlvr_exp.core.errors import InputError
from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.core.measures import BITS, HELD_OUT_BITS
from rlvr_exp.core.statistics import rank_correlation
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.evaluation.bits import gold_costs
from rlvr_exp.evaluation.saved import save
from rlvr_exp.models.policy import load_policy
from rlvr_exp.records.rollout_files import EvalSample
from rlvr_exp.runs.comparison import seconds_until, used
from rlvr_exp.runs.studies.models import TOLERANCE, ArchitectureStudy, Capacity, Tokenization
from rlvr_exp.runs.study import Job, JobRun

CHARACTERS = 10
ARMS = {"first": ["model.scratch.kv_heads=4"], "second": ["model.scratch.kv_heads=1"]}
TASKS = 30
BASE = {"command": ["+stage=sft", "model.from_scratch=true"], "metric": BITS}


def plant_model(
    root: Path,
    job: Job,
    costs: Sequence[float],
    parameters: int = 1000,
    rows: Sequence[Mapping[str, float]] = ({"step": 2, "tokens/seen": 500.0, "time/step": 1.0},),
    passing: int = 0,
    tokens: int = 30,
    examples: int = 64,
) -> JobRun:
    """`costs`: bits a character of each task; `passing`: how many of them, the first, pass."""
    run = plant(root, job, lambda task: True, tasks=0)
    scored = [
        EvalSample(
            completion(f"t{i}", "passed" if i < passing else "failed", None if i < passing else "parse"),
            "sampled",
            "p",
            {"gold": {"bits": CHARACTERS * cost, "characters": CHARACTERS, "tokens": tokens - 20, "prompt_tokens": 20}},
        )
        for i, cost in enumerate(costs)
    ]
    rates = {name: rate.to_dict() for name, rate in save(run.directory, "after", scored, ("pass_at_1", BITS)).items()}
    summary = {**run.summary, "stage": "sft", "after": rates}
    write_json(run.directory / "summary.json", summary)
    write_json(run.directory / "manifest.json", {"model": {"total": parameters}, "imitation": {"examples": examples}})
    lines = ["{" + ", ".join(f'"{name}": {value}' for name, value in row.items()) + "}" for row in rows]
    write_text(run.directory / "metrics.jsonl", "\n".join(lines) + "\n")
    return JobRun(job, run.directory, 0, summary)


def costs(mean: float, seed: int) -> list[float]:
    """Of the same tasks for every arm, a little apart for each seed."""
    drawn = random.Random(seed)
    return [mean + 0.1 * (task % 5) + drawn.gauss(0, 0.02) for task in range(TASKS)]


def arms(kind, tmp_path, means, **more):
    study = kind(**BASE, arms=ARMS, equal=more.pop("equal", "tokens"))
    runs = []
    for job in study.jobs():
        of_arm = {name: value[job.arm] if isinstance(value, dict) else value for name, value in more.items()}
        runs.append(plant_model(tmp_path, job, costs(means[job.arm], 7 * job.seed + len(job.arm)), **of_arm))
    return study, runs


@pytest.mark.property(43)
def test_a_comparison_has_one_row_an_arm_on_equal_tokens_and_equal_tasks(tmp_path):
    study, runs = arms(
        ArchitectureStudy, tmp_path, {"first": 1.0, "second": 1.3}, parameters={"first": 1000, "second": 1020}
    )
    found = study.summarise(runs)
    rows = found.tables["models"]
    assert [row["arm"] for row in rows] == ["first", "second"] and {row["runs"] for row in rows} == {3}
    assert {row["training_tokens"] for row in rows} == {500.0} and {row[f"{BITS}/tasks"] for row in rows} == {TASKS}
    assert [row["parameters"] for row in rows] == [1000, 1020]
    assert (
        rows[0][BITS] == pytest.approx(1.2, abs=0.02)
        and rows[0][f"{BITS}/low"] < rows[0][BITS] < rows[0][f"{BITS}/high"]
    )
    headline, second, success = found.answer
    assert headline.startswith(f"Difference on {BITS} beyond chance, 1 of 1: second (+0.3")
    assert second.startswith("second: worse, difference +0.30") and "bits a character [" in second
    assert success == "Success does not count: no arm exceeds 5% (pass_at_1 of first 0.0%)."
    assert len(found.plots["difference"].svg()) > 500


def test_arms_of_other_sizes_or_tokens_are_said_first(tmp_path):
    rows = {name: [{"step": 2, "tokens/seen": seen}] for name, seen in (("first", 500.0), ("second", 600.0))}
    sizes = {"first": 1000, "second": 1050}
    study, runs = arms(ArchitectureStudy, tmp_path, {"first": 1.0, "second": 1.3}, parameters=sizes, rows=rows)
    size, budget, *_ = study.summarise(runs).answer
    assert size.startswith("Unequal sizes: first has 1,000 parameters, second 1,050")
    assert budget.startswith("Unequal budgets: first had 500 tokens, second 600")


def test_tokens_of_imitation_are_those_that_it_saw_last(tmp_path):
    rows = [{"step": 1, "tokens/seen": 200.0}, {"step": 2, "tokens/seen": 450.0}]
    _, (run, *_) = arms(ArchitectureStudy, tmp_path, {"first": 1.0, "second": 1.0}, rows=rows)
    assert used(run.directory, "tokens") == 450.0


def test_success_counts_where_some_arm_succeeds(tmp_path):
    study, runs = arms(ArchitectureStudy, tmp_path, {"first": 1.0, "second": 1.0}, passing={"first": 2, "second": 20})
    found = study.summarise(runs)
    assert found.tables["models"][1]["pass_at_1"] == pytest.approx(20 / TASKS)
    assert any(text.startswith("By pass_at_1: second: better, difference +60.0 points") for text in found.answer)
    assert found.answer[0].startswith("No difference was found") and "bits a character" in found.answer[0]


def test_runs_without_bits_are_refused(tmp_path):
    study, runs = arms(ArchitectureStudy, tmp_path, {"first": 1.0, "second": 1.0})
    lost = [
        type(run)(run.job, run.directory, 0, {**run.summary, "after": {"pass_at_1": run.summary["after"]["pass_at_1"]}})
        for run in runs
    ]
    with pytest.raises(InputError, match="no run measured it"):
        study.summarise(lost)


def learning(tokens: int, bits: float) -> list[dict[str, float]]:
    """Eight steps of so many tokens, measured after every second one; bits fall by 1 per 1,000 tokens."""
    rows: list[dict[str, float]] = [{"step": step, "tokens/seen": tokens * step} for step in range(1, 9)]
    for row in rows[1::2]:
        row["held_out/bits_per_character"] = bits - row["tokens/seen"] / 1000
    return rows


@pytest.mark.property(44)
def test_tokenisations_have_one_row_an_arm_on_equal_tokens_and_equal_tasks(tmp_path):
    rows = {"first": learning(100, 3.0), "second": learning(250, 3.5)}
    study, runs = arms(Tokenization, tmp_path, {"first": 1.0, "second": 1.3}, rows=rows, equal="none")
    found = study.summarise(runs)
    models, equal = found.tables["models"], found.tables["equal_tokens"]
    assert [row["arm"] for row in models] == ["first", "second"] == [row["arm"] for row in equal]
    assert {row[f"{BITS}/tasks"] for row in models} == {TASKS} and {row["runs"] for row in models} == {3}
    assert [row["training_tokens"] for row in models] == [800, 2000] and {row["tokens"] for row in equal} == {800}
    assert [row[HELD_OUT_BITS] for row in equal] == pytest.approx([2.2, 2.7]), (
        "between its measurements at 500 and 1,000"
    )
    assert "difference" not in equal[0] and equal[1]["runs"] == equal[1]["pairs"] == 3
    assert equal[1]["difference"] == pytest.approx(0.5) and equal[1]["p_holm"] < 0.05
    (sentence,) = [text for text in found.answer if text.startswith("At equal tokens (800, those of prompts included)")]
    assert "first 2.200; second +0.500 [+0.500, +0.500], beyond chance; an interval of 3 seeds" in sentence


def test_a_tokenisation_that_was_not_measured_by_then_leaves_equal_tokens_out(tmp_path):
    rows = {"first": learning(100, 3.0), "second": learning(500, 3.5)}
    study, runs = arms(Tokenization, tmp_path, {"first": 1.0, "second": 1.3}, rows=rows, equal="none")
    found = study.summarise(runs)
    assert "equal_tokens" not in found.tables
    assert any(
        text.startswith("At equal tokens nothing is said: some run had no held_out/bits") for text in found.answer
    )


def test_a_last_measurement_that_is_older_than_the_end_leaves_equal_tokens_out(tmp_path):
    rows = {"first": learning(100, 3.0)[:7], "second": learning(250, 3.5)}
    study, runs = arms(Tokenization, tmp_path, {"first": 1.0, "second": 1.3}, rows=rows, equal="none")
    found = study.summarise(runs)
    assert "equal_tokens" not in found.tables, "the first had seen 700, and was measured at 600"
    assert any("that is smaller and divides the steps" in text for text in found.answer)


def test_a_difference_of_one_pair_of_seeds_has_no_interval(tmp_path):
    rows = {"first": learning(100, 3.0), "second": learning(250, 3.5)}
    study, runs = arms(Tokenization, tmp_path, {"first": 1.0, "second": 1.3}, rows=rows, equal="none")
    some = [run for run in runs if (run.job.arm, run.job.seed) not in {("first", 2), ("second", 0)}]
    found = study.summarise(some)
    (row,) = [row for row in found.tables["equal_tokens"] if "pairs" in row]
    assert (row["runs"], row["pairs"]) == (2, 1) and "low" not in row
    assert any("second +0.500 (one seed); of one seed, so that" in text for text in found.answer)
    alone = study.summarise([run for run in runs if run.job.arm == "second"])
    assert "equal_tokens" in alone.tables and not any("pairs" in row for row in alone.tables["equal_tokens"])


@pytest.mark.property(44)
def test_tokens_a_task_are_counted_and_other_texts_are_said(tmp_path):
    means, tokens = {"first": 1.0, "second": 1.0}, {"first": 30, "second": 75}
    study, runs = arms(Tokenization, tmp_path, means, tokens=tokens, examples={"first": 64, "second": 60}, equal="none")
    found = study.summarise(runs)
    assert [row["tokens_a_task"] for row in found.tables["models"]] == [30, 75]
    assert found.answer[0].startswith("Unequal texts: arms imitated other numbers of tasks (first 64, second 60)")
    assert found.answer[-1] == "A task with its gold is 30 tokens by first, 75 by second."


def sized(tmp_path, loss_of, seconds_of=lambda size: 1.0, **more):
    study = Capacity(**BASE, equal="tokens", **{"widths": [32, 64, 128], "depths": [1, 2], **more})
    runs = []
    for job in study.jobs():
        kind, _, size = job.arm.partition("_")
        size, loss = int(size), loss_of(kind, int(size), job.seed)
        rows = [
            {"step": step, "tokens/seen": 100.0 * step, "time/step": seconds_of(size), "held_out/loss": loss + 8 / step}
            for step in range(1, 9)
        ]
        runs.append(plant_model(tmp_path, job, costs(loss, job.seed), parameters=1000 * size, rows=rows))
    return study, runs


@pytest.mark.property(37)
def test_held_out_loss_falls_with_width_at_equal_tokens(tmp_path):
    study, runs = sized(tmp_path, lambda kind, size, seed: 2 - size / 100 + 0.01 * seed if kind == "width" else 1.0)
    found = study.summarise(runs)
    width = found.tables["rank_correlation"][0]
    sizes = [int(run.job.arm.partition("_")[2]) for run in runs if run.job.arm.startswith("width")]
    losses = [run.summary["after"][BITS]["value"] for run in runs if run.job.arm.startswith("width")]
    assert (
        width["correlation"] == pytest.approx(stats.spearmanr(sizes, losses).statistic, abs=1e-12)
        and width["correlation"] < 0
    )
    assert (width["of"], width["at"], width["sizes"], width["seeds"]) == ("width", "equal tokens", 3, 3)
    assert found.answer[0].startswith(f"At equal tokens {BITS} falls with width: rank correlation -0.9")
    assert any(
        text.startswith(f"At equal tokens cannot tell whether {BITS} changes with depth") for text in found.answer
    )
    assert len(found.plots["capacity"].svg()) > 500


def test_at_equal_time_the_loss_is_that_which_was_reached_when_the_fastest_run_ended(tmp_path):
    study, runs = sized(tmp_path, lambda kind, size, seed: 1.0 + 0.001 * seed, lambda size: size / 32, depths=[])
    found = study.summarise(runs)
    timed = {(row["size"], row["seed"]): row["value"] for row in found.tables["losses"] if row["at"] == "equal time"}
    # The fastest takes 8 s for its 8 steps; in that time the others make 4 and 2.
    assert timed == pytest.approx(
        {
            (size, seed): 1.0 + 0.001 * seed + 8 / steps
            for size, steps in ((32, 8), (64, 4), (128, 2))
            for seed in range(3)
        }
    )
    (time,) = [row for row in found.tables["rank_correlation"] if row["at"] == "equal time"]
    assert time["correlation"] > 0.9 and "At equal time held_out/loss rises with width" in " ".join(found.answer)


def test_a_slow_run_that_is_measured_seldom_is_no_worse_for_that(tmp_path):
    study, runs = sized(tmp_path, lambda kind, size, seed: 1.0, depths=[])
    for run in runs:  # The same loss after the same time, measured after every two steps of 1, 1.7 and 3 s.
        pace = {"width_32": 1.0, "width_64": 1.7, "width_128": 3.0}[run.job.arm]
        rows = [{"step": step, "time/step": pace, "held_out/loss": 9 - pace * step / 8} for step in range(2, 9, 2)]
        write_text(run.directory / "metrics.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    timed = [row["value"] for row in study.summarise(runs).tables["losses"] if row["at"] == "equal time"]
    assert timed == pytest.approx([8.0] * 9)


def test_seconds_of_steps_between_logged_rows_count():
    rows = [
        {"step": 20, "held_out/loss": 1.0},
        {"step": 40},
        {"step": 50, "time/step": 2.0},
        {"step": 100, "time/step": 1.0},
    ]
    assert [*seconds_until(rows)] == [40.0, 80.0, 100.0, 150.0]


def test_a_run_without_a_loss_in_that_time_leaves_equal_time_out(tmp_path):
    study, runs = sized(tmp_path, lambda kind, size, seed: 1.0, lambda size: float(size) ** 2, depths=[])
    found = study.summarise(runs)
    assert not any(row["at"] == "equal time" for row in found.tables["losses"])
    assert any(
        text.startswith("At equal time nothing is said of width: some run had no held_out/loss")
        for text in found.answer
    )


def test_widths_have_heads_of_one_size_and_are_multiples_of_it():
    jobs = Capacity(**BASE, widths=[32, 96], depths=[2], seeds=[0]).jobs()
    assert [job.arm for job in jobs] == ["width_32", "width_96", "depth_2"]
    assert "model.scratch.heads=3" in jobs[1].words and "model.scratch.intermediate=288" in jobs[1].words
    found = compose_lenient(["+stage=study", "study=capacity", "study.widths=[32,50]"]).problems
    assert [one.where for one in found] == ["study.widths"]
    found = compose_lenient(["+stage=study", "study=capacity", "study.depths=[3,1]"]).problems
    assert [one.where for one in found] == ["study.depths"]


@pytest.mark.parametrize("name", ["capacity", "architecture", "tokenization"])
def test_the_commands_of_every_arm_compose(name):
    from rlvr_exp.config.load import build

    study = build(compose(["+stage=study", f"study={name}"]).config.study)
    for job in study.jobs()[:: len(study.seeds)]:
        assert compose(job.words).config.evaluation.bits


@pytest.mark.property(43)
def test_the_arms_of_architectures_are_models_of_equally_many_parameters():
    from rlvr_exp.config.load import build

    study = build(compose(["+stage=study", "study=architecture"]).config.study)
    counts = {}
    for job in study.jobs()[:: len(study.seeds)]:
        network = load_policy(compose(job.words).config.model, seed=0).model
        counts[job.arm] = sum(value.numel() for value in network.parameters())
    assert len(counts) == 9 and max(counts.values()) - min(counts.values()) <= TOLERANCE * max(counts.values()), counts


def test_a_rank_correlation_is_scipy_s_and_its_p_that_of_permutations():
    numbers, values = [1, 1, 2, 2, 3, 3], [5.0, 6.0, 4.0, 3.0, 2.0, 1.0]
    rho, p = rank_correlation(numbers, values)
    assert rho == pytest.approx(stats.spearmanr(numbers, values).statistic) and rho < 0
    assert p == pytest.approx(2 * 8 / 720), "eight orders have pairs in this one, ties of the numbers counted"
    with pytest.raises(ValueError, match="rank_correlation"):
        rank_correlation([1, 1], [2.0, 3.0])


STEPS, BATCH, LONGEST = 24, 8, 128


def held_out_bits(width: int, seed: int, domain: Arc) -> float:
    """Bits a character of golds of `dev` after some steps of imitation, on the same examples for every width."""
    heads = width // 16
    shape = Scratch(layers=2, hidden=width, heads=heads, kv_heads=heads, head_dim=16, intermediate=3 * width)
    policy = load_policy(Model(from_scratch=True, scratch=shape), seed)
    tasks = domain.splits()["train"]
    examples = [example(policy, domain.task_prompt(task), task.gold) for task in tasks]
    fitting = [one for one in examples if len(one["input_ids"]) <= LONGEST]
    order = torch.randperm(len(fitting), generator=torch.Generator().manual_seed(seed)).tolist()
    optimizer = torch.optim.AdamW(policy.model.parameters(), lr=1e-3)
    policy.model.train()
    for step in range(STEPS):
        rows = [fitting[place] for place in order[step * BATCH : (step + 1) * BATCH]]
        ids, labels = torch.zeros((BATCH, LONGEST), dtype=torch.long), torch.full((BATCH, LONGEST), IGNORED)
        for row, one in enumerate(rows):
            ids[row, : len(one["input_ids"])] = torch.tensor(one["input_ids"])
            labels[row, : len(one["labels"])] = torch.tensor(one["labels"])
        policy.model(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    costs = gold_costs(policy, domain, domain.splits()["dev"][:40])
    return sum(one.bits / one.characters for one in costs.values()) / len(costs)


@pytest.mark.slow
@pytest.mark.property(37)
def test_held_out_loss_falls_with_width_at_equal_tokens_in_three_seeds() -> None:
    domain = Arc(limit=400)
    points = [(width, held_out_bits(width, seed, domain)) for width in (16, 32, 64) for seed in range(3)]
    correlation, chance = rank_correlation([width for width, _ in points], [bits for _, bits in points])
    assert correlation < 0 and chance < 0.05, points
