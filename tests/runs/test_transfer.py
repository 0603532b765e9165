"""Property 49: gains of every pair of groups, and their correlation with how alike the groups are."""

import json
import lzma
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import islice, permutations
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import TASKS, evaluated, known_by, plant

from rlvr_exp.config.compose import compose
from rlvr_exp.core import files
from rlvr_exp.core.seeds import uniform
from rlvr_exp.core.statistics import mantel, spearman
from rlvr_exp.domains.arc.tasks import EMBEDDED, Arc
from rlvr_exp.evaluation.task_similarity import programs, similarity
from rlvr_exp.records import manifest
from rlvr_exp.runs.schedule import study_plan
from rlvr_exp.runs.studies.transfer import EQUAL, OTHERS, OWN, UNTOLD, Likeness, Transfer, _pooled, correlations
from rlvr_exp.runs.study import JobRun

GREEDY = "pass_at_1_greedy"
GROUPS = ("flip_lr", "rotate_180", "recolour", "bars", "tile_right")
Pairs = dict[tuple[str, str], float]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    for split, count in (("train", 1500), ("dev", 400), ("test", 500)):
        with lzma.open(EMBEDDED / f"{split}.jsonl.xz", "rt") as lines:
            kept = [line for line in islice(lines, count) if json.loads(line)["family"] in GROUPS]
        (folder / f"{split}.jsonl").write_text("".join(kept))
    return folder


def study(rows: Path, **more: Any) -> Transfer:
    options = {
        "arms": {name: [f"data.families=[{name}]"] for name in GROUPS},
        "seeds": [0, 1],
        "metric": GREEDY,
        **more,
    }
    return Transfer(command=["+stage=grpo"], words=[f"data.path={rows}"], **options)


def measured(root: Path, asked: Transfer, after: Callable[[str, str], int], before: int = 20) -> list[JobRun]:
    """Its runs: how many of the tasks of a group pass after training on another, and before any."""
    runs, trainings = [], asked.trainings()
    for job in [*trainings, *(one for training in trainings for one in asked.measurements(training, ""))]:
        first, _, second = job.arm.partition("_on_")
        run = plant(root, job, lambda task, pair=(first, second or first): task < after(*pair))
        if not second:
            known_by(run.directory, job.words)
            start = evaluated(run.directory, "before", lambda task: task < before, range(TASKS))
            manifest.update(run.directory, stage="grpo", train={"split": "train"})
            run = replace(run, summary={**run.summary, "before": start})
        runs.append(run)
    return runs


def by_hand(first: list[float], second: list[float]) -> float:
    """Pearson's correlation of mean ranks."""

    def ranks(values: list[float]) -> list[float]:
        return [sum(one < value for one in values) + (values.count(value) - 1) / 2 for value in values]

    pairs = list(
        zip(*((of := ranks(values)) and [one - fmean(of) for one in of] for values in (first, second)), strict=True)
    )
    squares = [sum(pair[side] ** 2 for pair in pairs) for side in (0, 1)]
    return sum(a * b for a, b in pairs) / (squares[0] * squares[1]) ** 0.5


@pytest.mark.property(49)
@given(st.lists(st.tuples(st.integers(0, 6), st.floats(-1, 1)), min_size=3, max_size=30))
def test_the_correlation_is_the_plain_formulas(pairs: list[tuple[float, float]]) -> None:
    first, second = ([float(pair[side]) for pair in pairs] for side in (0, 1))
    found = spearman(first, second)
    if len({*first}) == 1 or len({*second}) == 1:
        assert found is None
    else:
        assert found == pytest.approx(by_hand(first, second), abs=1e-9)


def test_permuting_groups_keeps_what_a_group_does_to_all_of_its_cells() -> None:
    own = [[abs(a - b) / 5 for b in range(6)] for a in range(6)]
    found = mantel(own, own)
    assert found is not None and found.value == pytest.approx(1) and found.p < 0.01 and found.high < 1
    assert mantel(own, [[1.0] * 6] * 6) is None
    first, second = ([[uniform(name, a, b) for b in range(4)] for a in range(4)] for name in "xy")
    cells = [(a, b) for a in range(4) for b in range(4) if a != b]
    chance = [
        by_hand([first[a][b] for a, b in cells], [second[order[a]][order[b]] for a, b in cells])
        for order in permutations(range(4))
    ]
    few = mantel(first, second)
    assert few is not None and few.value == pytest.approx(chance[0])
    sides = [sum(sign * one >= sign * chance[0] - 1e-12 for one in chance) / 24 for sign in (1, -1)]
    assert few.p == pytest.approx(min(1, 2 * min(sides)))
    assert min(chance) <= few.low < few.high <= max(chance)
    with pytest.raises(ValueError, match="three or more"):
        mantel([[1.0, 2.0], [2.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]])


@pytest.mark.property(49)
@pytest.mark.parametrize("sign", [1, pytest.param(-1, marks=pytest.mark.slow)])
def test_planted_transfer_has_its_sign_and_its_gains(rows: Path, tmp_path: Path, sign: int) -> None:
    asked = study(rows)
    golds = {name: Arc(str(rows), families=[name]).splits()["train"] for name in GROUPS}
    alike = {(a, b): similarity(programs(golds[a]), programs(golds[b])) for a in GROUPS for b in GROUPS}
    planted = {pair: 25 + round(sign * 24 * share) if pair[0] != pair[1] else 55 for pair, share in alike.items()}
    found = asked.summarise(measured(tmp_path, asked, lambda *pair: planted[pair]))
    gains = {(row["trained_on"], row["measured_on"]): row for row in found.tables["gains"]}
    assert len(gains) == 25
    for pair, row in gains.items():
        assert row["gain"] == pytest.approx((planted[pair] - 20) / TASKS) and (row["n"], row["seeds"]) == (TASKS, 2)
        assert row["likeness_programs"] == pytest.approx(alike[pair])
    off = [pair for pair in gains if pair[0] != pair[1]]
    naive = by_hand([alike[pair] for pair in off], [gains[pair]["gain"] for pair in off])
    related = {row["likeness"]: row for row in found.tables["correlation"]}
    assert related["programs"]["spearman"] == pytest.approx(naive, abs=1e-9) and naive * sign > 0.9
    assert {*related} == {"programs", "inputs"} and related["programs"]["p_holm"] < 0.05
    word = "more" if sign > 0 else "less"
    assert any(
        text.startswith(f"Training helps other groups {word}, the more alike they are: ") for text in found.answer
    )
    own = fmean(gains[name, name]["gain"] for name in GROUPS)
    assert f"Gain on the group that was trained on: {100 * own:+.1f} points [" in found.answer[1]
    others = fmean(gains[pair]["gain"] for pair in off)
    assert found.answer[2].startswith("Gain on other groups: ")
    assert (
        f"{100 * others:+.1f} points [" in found.answer[2] and ", 60 tasks" in found.answer[2]
    )  # Of one set, with the same ids.


def test_each_training_is_followed_by_the_measurements_of_its_policy(rows: Path, tmp_path: Path) -> None:
    asked = study(rows, only=["bars", "recolour"], seeds=[3])
    rounds = asked.rounds(tmp_path, 0)
    first, second = rounds.batch()
    assert (first.name, second.name, rounds.batch(), rounds.left()) == ("recolour_seed3", "bars_seed3", [], 2)
    done = plant(tmp_path, first, lambda task: True)
    (done.directory / "checkpoints" / "best").mkdir(parents=True)
    rounds.ended(done)
    (job,) = rounds.batch()
    path = done.directory / "checkpoints" / "best"
    assert job.name == "recolour_on_bars_seed3"
    assert job.words == ("+stage=evaluate", f"data.path={rows}", "data.families=[bars]", f"model.path={path}", "seed=3")
    rounds.ended(JobRun(second, tmp_path / "lost", 3, {"status": "stopped"}))
    assert (rounds.batch(), rounds.left()) == ([], 0)
    assert [job.open for job in asked.jobs()] == [False, False, True, True]


@pytest.mark.slow
def test_groups_are_compared_by_where_the_initial_policy_puts_them_too(rows: Path, tmp_path: Path) -> None:
    names = GROUPS
    asked = study(rows, only=[*names], embed=["+stage=benchmark", "benchmark=embedding"])
    asked.words.append("evaluation.tasks=8")
    jobs = asked.others()
    assert [(job.arm, job.seed) for job in jobs] == [(f"{name}_embedded", 0) for name in names]
    assert jobs[0] in asked.jobs() and jobs[0].words == (
        "+stage=benchmark",
        "benchmark=embedding",
        f"data.path={rows}",
        f"data.families=[{names[0]}]",
        "seed=0",
    )
    assert study(rows).others() == []
    places = dict(zip(names, [(1.0, 0.2), (1.0, -0.2), (0.0, 0.0), (-1.0, 0.3), (-1.0, -0.3)], strict=True))
    embedded = []
    for job in jobs:
        name = job.arm.removesuffix("_embedded")
        files.write_json(tmp_path / job.name / "benchmark.json", {"mean": [*places[name], 7.0]})
        embedded.append(JobRun(job, tmp_path / job.name, 0, {"status": "completed"}))
    near = {
        (a, b): 35 + round(10 * places[a][0] * places[b][0] + 30 * places[a][1] * places[b][1])
        for a in names
        for b in names
    }
    found = asked.summarise([*measured(tmp_path, asked, lambda *pair: near[pair]), *embedded])
    gains = {(row["trained_on"], row["measured_on"]): row for row in found.tables["gains"]}
    likes = [gains[names[0], name]["likeness_embeddings"] for name in names]
    assert likes[0] == pytest.approx(1) and likes == sorted(likes, reverse=True)
    assert likes[-1] < 0.05, "opposite ends, seen from the middle"
    (row,) = (row for row in found.tables["correlation"] if row["likeness"] == "embeddings")
    assert row["spearman"] > 0.9
    assert any("likeness of embeddings" in text for text in found.answer)
    without = Likeness({}, {name: [*places[name], 7.0] for name in names[1:]})
    pairs = {pair: float(number) for number, pair in enumerate(permutations(names, 2))}
    assert f"{UNTOLD} embeddings matters: {EQUAL}." in correlations(pairs, without)[1], "one was not measured"


def test_tasks_that_another_group_was_trained_on_are_told(rows: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(rows, other)
    test = [json.loads(line) for line in (rows / "test.jsonl").read_text().splitlines()]
    seen = next(row for row in test if row["family"] == "bars")
    with (other / "train.jsonl").open("a") as train:
        train.write(json.dumps({**seen, "id": "seen", "family": "recolour"}) + "\n")
    (other / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in test if row["family"] == "recolour"))
    arms = {"bars": ["data.families=[bars]"], "recolour": [f"data.path={other}", "data.families=[recolour]"]}
    asked = study(rows, arms=arms, seeds=[0])
    told = [text for text in asked.summarise(measured(tmp_path, asked, lambda *pair: 40)).answer if "content" in text]
    count = sum(row["family"] == "bars" for row in test)
    assert len(told) == 1 and told[0].startswith(
        f"1 of the {count} held-out tasks of bars share content with tasks that recolour"
    )


def test_a_task_that_two_groups_have_is_one_task_by_its_mean() -> None:
    sides = {(one, other): ({0: {"t": 1.0, "u": 0.0}}, {0: {"t": 0.0, "u": 0.0}}) for one in "ab" for other in "ab"}
    sides["a", "b"] = ({0: {"t": 0.0, "u": 0.0}}, {0: {"t": 0.0, "u": 0.0}})
    (after, before), *_ = [_pooled(sides, {"a": "set", "b": "set"})[where] for where in (OTHERS, OWN)]
    assert after == {0: {"set t": 0.5, "set u": 0.0}} and {*before[0].values()} == {0.0}
    assert len(_pooled(sides, {"a": "set", "b": "other"})[OWN][0][0]) == 4


def test_the_plan_counts_nothing_of_where_a_policy_puts_tasks() -> None:
    words = ["+stage=study", "study=transfer", "study.only=[moves,cuts]", "study.seeds=[0]"]
    lines = study_plan(compose(words).config).splitlines()
    (embedded,) = (line for line in lines if line.startswith("  moves_embedded_seed0"))
    assert "0 steps on 0 completions, 0 measured: python -m rlvr_exp +stage=benchmark benchmark=embedding" in embedded
    assert lines[0].startswith("study (nothing is run): 6 runs")


def test_two_groups_have_no_correlation_and_a_group_alone_has_no_other(rows: Path, tmp_path: Path) -> None:
    asked = study(rows, only=["bars", "recolour"])
    found = asked.summarise(measured(tmp_path, asked, lambda *pair: 40))
    assert found.answer[-1].startswith("Cannot tell what likeness does: that takes 5 groups") and len(found.tables) == 1
    assert [one.where for one in study(rows, only=["bars"]).problems()] == ["arms"]


def test_without_golds_there_is_no_likeness_of_programs_and_equal_gains_have_no_ranks(
    rows: Path, tmp_path: Path
) -> None:
    colours = "data.randomise.colours=true"
    asked = study(rows, arms={name: [f"data.families=[{name}]", colours] for name in GROUPS})
    found = asked.summarise(measured(tmp_path, asked, lambda *pair: 40))
    assert all("likeness_inputs" in row and "likeness_programs" not in row for row in found.tables["gains"])
    assert [text.partition(":")[0] for text in found.answer[-2:]] == [
        f"Cannot tell whether likeness of {kind} matters" for kind in ("programs", "inputs")
    ]


def test_likeness_is_symmetric_and_one_of_the_same_tasks() -> None:
    first, second = {"a": 0.5, "b": 0.5}, {"b": 0.25, "c": 0.75}
    assert similarity(first, first) == 1 and similarity(first, second) == similarity(second, first) == 0.25 / 1.75
    assert similarity(first, {}) == 0
