"""No option of imitation is dead: changing it changes the training data, or how it is split."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import fixed_batch
import pytest
import torch
from tokenizers import pre_tokenizers
from updating import driven

from rlvr_exp.algorithms.gradients import NonFiniteGuard
from rlvr_exp.algorithms.sft import ImitationTrainer
from rlvr_exp.config.algorithm import SFT
from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.stages.sft import batch_plan, trainer_arguments
from rlvr_exp.tasks.base import Task
from rlvr_exp.training.example_order import Passes
from rlvr_exp.training.learner import GoldFeed, SFTLearner

SMALL = {
    "max_steps": 3,
    "batch_size": 2,
    "max_tokens_per_device": 60,
    "max_sequence_tokens": 20,
    "eval_every_steps": 1,
}
CHANGES = {
    "max_steps": 2,
    "batch_size": 4,
    "max_tokens_per_device": 20,
    "max_sequence_tokens": 5,
    "eval_every_steps": 2,
    "shown_answers": 1.0,
}
TASKS = [
    Task(f"task{i}", "f", 0.0, inputs=f"w{2 + i} w4", problem=None, gold=" ".join(f"w{3 + j}" for j in range(i)))
    for i in range(1, 7)
]
LEAVES = [spec.name for spec in dataclasses.fields(SFT) if spec.name not in ("_target_", "trl")]


def learning(folder: Path, words: list[str]) -> tuple[SFTLearner, GoldFeed]:
    """A learner of the tasks and what feeds it, as the stage makes them; descent that moves by a billionth."""
    config = compose(["+stage=sft", *words]).config
    policy = fixed_batch.policy(folder / "policy")
    policy.tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    who, plan = build(config.algorithm), batch_plan(config)
    domain = SimpleNamespace(
        task_prompt=lambda task: task.inputs,
        teacher_prompt=lambda task, solution, attempt, feedback: f"{task.inputs} {solution}",
        demonstrations=lambda task: [task],
        gold_completion=lambda task: task.gold,
        variant=lambda task, _: task,
        tools=(),
        gold_turns=lambda task: (),
    )
    rows = who.examples(policy, domain, TASKS)
    args = trainer_arguments(policy, config, who, plan, folder / "scratch")
    made = ImitationTrainer(
        policy,
        args,
        build(config.optimizer).make(policy.model),
        rows.dataset,
        rows.dataset,
        NonFiniteGuard(),
        config.algorithm.max_sequence_tokens,
    )
    feed = GoldFeed(rows, Passes(len(rows), config.seed), plan.sequences, config.seed)
    return SFTLearner("policy", made, who.eval_every_steps, rows.characters), feed


def run(folder: Path, options: dict[str, Any]) -> tuple:
    """The amount of training data, the number of passes, of evaluations and of steps, and the tokens of the first update."""
    learner, feed = learning(folder, [f"algorithm.{name}={value}" for name, value in options.items()])
    made, losses = learner.trainer, []
    with mock.patch.object(made, "training_step", wraps=made.training_step) as passes:
        driven(learner, feed.collect, after=lambda one: one.due(one.steps) and losses.append(one.held_out_loss()))
    tokens = sum(len(one["input_ids"]) for one in feed.collect(0))
    return len(made.train_dataset), passes.call_count, len(losses), learner.steps, tokens


def test_a_restart_is_the_first_update_again(tmp_path):
    """From the first weights, with a new optimizer and the schedule from its begin, warm-up included."""
    words = ["algorithm.max_steps=8", "algorithm.batch_size=4", "scheduler=linear", "scheduler.warmup_steps=3"]
    learner, feed = learning(tmp_path, [*words, "optimizer=adamw", "optimizer.lr=0.05"])
    model = learner.trainer.model
    first = {name: value.clone() for name, value in model.state_dict().items()}
    learner.begin()
    trails = []
    for _ in range(2):
        rates, trail = [], []
        for step in range(3):
            learner.take(feed.collect(step))
            learner.update()
            rates.append(learner.row()["learning_rate"])
            trail.append({name: value.clone() for name, value in model.state_dict().items()})
        trails.append((rates, trail))
        learner.restart(first)
        assert all(torch.equal(value, first[name]) for name, value in model.state_dict().items())
    (rates, trail), (again, repeated) = trails
    assert rates == again and len(set(rates)) == 3 and learner.steps == 6
    for one, other in zip(trail, repeated, strict=True):
        assert all(torch.equal(one[name], other[name]) for name in one)
    assert not all(torch.equal(trail[-1][name], first[name]) for name in first)


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> tuple:
    return run(tmp_path_factory.mktemp("plain"), SMALL)


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_changed_option_changes_the_run(leaf, plain, tmp_path):
    assert leaf in CHANGES, f"{leaf}: a new option; say here what it changes"
    assert run(tmp_path, {**SMALL, leaf: CHANGES[leaf]}) != plain


def test_equal_options_give_equal_runs(plain, tmp_path):
    assert run(tmp_path, SMALL) == plain
