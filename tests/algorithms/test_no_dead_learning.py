"""Every option of every optimizer and schedule changes a small training."""

import dataclasses
from functools import cache
from typing import Any

import pytest
from thinning import thinned
from tiny_update import Bowl, tiny_language_model, trained

from rlvr_exp.config.algorithm import Optimizer, Scheduler
from rlvr_exp.config.help import group_options
from rlvr_exp.config.load import load  # noqa: F401  (registers every schema)
from rlvr_exp.config.options import SCHEMAS, allowed_of, default_of, field_types
from rlvr_exp.config.schema_check import validator
from rlvr_exp.config.tree import conf_directory

ACTS_WITH = {"warmup_stable_decay": ["scheduler.decay_steps=3"], "adafactor": ["optimizer.lr=0.3"]}
"""Other options that an option needs to have an effect."""
STEPS = ["algorithm.max_steps=4", "run.log_every_steps=1"]


def target(group: str, option: str) -> str:
    lines = (conf_directory() / group / f"{option}.yaml").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("_target_"))


def every_leaf() -> list[tuple[str, str, str]]:
    """(group, option, leaf) of all shipped optimizers and schedules."""
    found = []
    for group in ("optimizer", "scheduler"):
        for option in group_options()[group]:
            names = [
                spec.name for spec in dataclasses.fields(SCHEMAS[target(group, option)]) if spec.name != "_target_"
            ]
            found += [(group, option, name) for name in names]
    return found


@cache
def trace(group: str, option: str, *words: str) -> tuple[tuple[float, ...], ...]:
    """Loss, rate and norm after clipping of each step."""
    model = tiny_language_model() if option == "muon" else Bowl()
    still = ["scheduler=constant", "scheduler.warmup_steps=0"] if group == "optimizer" else ["scheduler.warmup_steps=0"]
    beside = [
        word for word in ACTS_WITH.get(option, []) if word.partition("=")[0] not in {w.partition("=")[0] for w in words}
    ]
    said = {word.partition("=")[0]: word for word in [*STEPS, *still, f"{group}={option}", *beside, *words]}
    _, rows = trained(model, *said.values())
    return tuple((row["loss"], row["learning_rate"], row["grad_norm/after"]) for row in rows)


def others(schema: type, name: str) -> list[Any]:
    """Other allowed values, those with a visible effect first."""
    spec = next(spec for spec in dataclasses.fields(schema) if spec.name == name)
    allowed, default, kind = allowed_of(spec), default_of(spec), field_types(schema)[name]
    if kind is bool:
        return [not default]
    if allowed.choices:
        return [choice for choice in allowed.choices if choice != default]
    near = [default + 1, 1, default + 2] if kind is int else [default + 0.5, default * 0.25, 0.25]
    return [value for value in near if value != default and validator(schema, name).isinstance_python(value)]


@pytest.mark.parametrize(("group", "option", "name"), thinned(every_leaf()))
def test_every_option_changes_the_trace(group: str, option: str, name: str) -> None:
    before = trace(group, option)
    values = others(SCHEMAS[target(group, option)], name)
    assert values and len(before) == 4
    assert any(trace(group, option, f"{group}.{name}={value}") != before for value in values), f"{name} changes nothing"


def test_every_optimizer_and_schedule_ships() -> None:
    shipped = {target(group, option) for group in ("optimizer", "scheduler") for option in group_options()[group]}
    assert shipped == {path for path, schema in SCHEMAS.items() if issubclass(schema, Optimizer | Scheduler)}
