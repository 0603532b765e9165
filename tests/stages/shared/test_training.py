"""Training from the current step: nothing left is no training, and the policy ends at its best step."""

from pathlib import Path

import pytest
import torch
from fake_training import FakeLearner
from tiny_step import flat, policy

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import to_yaml
from rlvr_exp.config.run import planned
from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.curriculum.base import Uniform
from rlvr_exp.episodes.episode import POLICY
from rlvr_exp.models.policy import Policy
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.tracking import read_metrics
from rlvr_exp.stages.shared.training import TrainingInputs, curriculum_of, fit, mixed_tasks, open_tracker, resumed_step
from rlvr_exp.tasks.base import Task
from rlvr_exp.training.loop import Measurement

METRIC = "reward/mean"


class Moving(FakeLearner):
    """Each of its updates moves the weights."""

    def __init__(self, who: Policy):
        super().__init__(POLICY)
        self._who = who

    def update(self) -> None:
        super().update()
        with torch.no_grad():
            for value in self._who.model.parameters():
                value.add_(1.0)


class Feed:
    rows = ()

    def collect(self, step: int) -> int:
        return step

    def write(self, learners) -> None: ...


def directory(place: Path, words: list[str], resumed: Path | None = None) -> RunContext:
    """A run directory as the parent leaves it to its child."""
    checked = compose(words)
    place.mkdir(exist_ok=True)
    (place / "config.yaml").write_text(to_yaml(checked))
    if not (place / "manifest.json").exists():
        manifest.begin(place, "grpo", 0, ["python"], "now")
        manifest.update(place, data={}, start={})
    if resumed is not None:
        manifest.mark_resumed(place, resumed, ["python"], "now")
    return RunContext(place, lambda event: None)


def go(place: Path, steps: int, resumed: int = 0, best: int = 0, *more: str) -> tuple[int, Moving, Policy]:
    """(steps done, the learner, the policy) of a run resumed after so many steps; rewards are highest at step `best`."""
    words = ["+stage=grpo", f"algorithm.max_steps={steps}", "run.checkpoint.every_steps=2", *more]
    context = directory(place, words, place / "checkpoints" / f"step_{resumed:06d}" if resumed else None)
    assert resumed_step(context) == (resumed or None)
    who = policy()
    learner = Moving(who)
    measured = Measurement(lambda step: best > 0, lambda: {METRIC: -abs(learner.steps - best)})
    config = compose(words).config
    training = TrainingInputs(who, {POLICY: learner}, lambda step: (POLICY,), Feed(), [measured], planned(config))
    with open_tracker(config, context) as tracker:
        done, _ = fit(training, config, context, tracker)
    return done, learner, who


def moved(who: Policy) -> float:
    """How many updates the weights show."""
    return round(float((flat(who.model) - flat(policy().model)).mean()), 3)


def test_it_begins_from_the_checkpoint(tmp_path: Path) -> None:
    done, learner, who = go(tmp_path, 3)
    assert (done, learner.steps, moved(who)) == (3, 3, 3.0) and learner.told[0] == "policy begins at 0"
    done, learner, who = go(tmp_path, 6, resumed=2)
    assert (done, learner.steps, moved(who)) == (6, 6, 6.0) and learner.told[0] == "policy begins at 2"
    assert [row["step"] for row in read_metrics(tmp_path)] == [1, 2, 3, 4, 5, 6]


def test_where_nothing_is_left_weights_are_loaded_and_nothing_is_trained(tmp_path: Path) -> None:
    go(tmp_path, 4)
    done, learner, who = go(tmp_path, 4, resumed=4)
    assert (done, moved(who)) == (4, 4.0) and learner.told == ["policy begins at 4"]


def test_it_ends_with_the_weights_of_its_best_step(tmp_path: Path) -> None:
    words = [f"run.select.metric={METRIC}", "run.select.patience=2", "run.checkpoint.keep=1"]
    done, learner, who = go(tmp_path, 9, 0, 3, *words)
    assert (done, learner.steps, moved(who)) == (5, 5, 3.0), "stopped after two steps without a better one"
    again, learner, who = go(tmp_path, 9, 5, 3, *words)
    assert (again, moved(who)) == (5, 3.0) and learner.told == ["policy begins at 5"]


def test_without_restoring_it_names_the_best_and_ends_with_the_last(tmp_path: Path) -> None:
    words = [f"run.select.metric={METRIC}", "run.select.restore=false"]
    done, _, who = go(tmp_path, 5, 0, 3, *words)
    assert (done, moved(who)) == (5, 5.0)
    assert (tmp_path / "checkpoints" / "best").resolve().name == "step_000003"


def test_a_metric_that_no_row_has_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(GuardStop, match="no row of metrics has it"):
        go(tmp_path, 2, 0, 0, "run.select.metric=reward/none")


TASKS = [
    Task(f"{source}{number}", "f", number / 8 + start, None, None, source=source)
    for number in range(8)
    for start, source in enumerate("abc")
]


def config_of(*words: str):
    return compose(["+stage=grpo", *words]).config


def test_without_a_mixture_nothing_changes() -> None:
    config = config_of("seed=3")
    assert mixed_tasks(config, TASKS) == TASKS
    assert curriculum_of(config, TASKS).pick(0, 30) == Uniform(TASKS, 3).pick(0, 30)


def test_only_sources_of_the_mixture_are_trained_on() -> None:
    kept = mixed_tasks(config_of("data.mix={c: 1, a: 1}"), TASKS)
    assert kept == [task for task in TASKS if task.source != "b"], "in their order"


def test_the_order_of_the_shares_is_nothing_and_the_seed_is_all() -> None:
    words = ("data.mix={a: 2, b: 1}", "data.mix={b: 1, a: 2}")
    first, turned = (curriculum_of(config_of(one), TASKS).pick(0, 40) for one in words)
    assert first == turned != curriculum_of(config_of(words[0], "seed=1"), TASKS).pick(0, 40)


def test_sources_of_one_size_are_shuffled_apart() -> None:
    picked = curriculum_of(config_of("data.mix={a: 1, b: 1}"), TASKS).pick(0, 16)
    orders = [[task.id[1:] for task in picked if task.source == source] for source in "ab"]
    assert sorted(orders[0]) == sorted(orders[1]) and orders[0] != orders[1]


def test_a_source_that_its_curriculum_cannot_take_is_named() -> None:
    words = ["curriculum=manual", "curriculum.cuts=[0.5]", "curriculum.steps=[1]", "data.mix={a: 1, b: 1}"]
    with pytest.raises(InputError, match="band 0 has no task among those of 'b'"):
        curriculum_of(config_of(*words), TASKS)
