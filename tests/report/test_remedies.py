"""Remedies name options that the stage of the run accepts, with values, for every cause and every training stage."""

import re
from dataclasses import fields
from typing import Any

import pytest

from rlvr_exp.config import schema
from rlvr_exp.config.compose import compose_lenient
from rlvr_exp.config.load import resolved
from rlvr_exp.config.schema import STAGES, trains
from rlvr_exp.report.causes import CAUSES
from rlvr_exp.report.diagnosis import diagnose
from rlvr_exp.report.evidence import Evidence
from rlvr_exp.report.remedies import Remedy, remedies

TRAINING = [stage for stage in STAGES if trains(stage)]
ODD = {
    "algorithm.temperature": 5.0, "algorithm.top_p": 0.1, "algorithm.kl_coef": 100.0, "algorithm.zero_variance": "keep",
    "algorithm.stop": ["x"], "optimizer.lr": 1e-9, "optimizer.eps": 1.0, "optimizer.weight_decay": 9.0, "data.limit": 9,
    "optimizer.max_grad_norm": 1e-9, "model.from_scratch": True, "model.dtype": "bfloat16", "verifier.validate": 0,
}  # fmt: skip
"""Values that remedies change."""


def seen_of(stage: str) -> Evidence:
    """The evidence of a run with the stage's defaults, but for odd values."""
    config = resolved(compose_lenient([f"+stage={stage}"]))
    for key, value in ODD.items():
        node, name = key.split(".")
        if name in (config.get(node) or {}):
            config[node][name] = value
    rows = [{"step": step, "grad_norm": 0.4, "learning_rate": 1e-4} for step in range(1, 13)]
    return Evidence(metrics=rows, config=config, manifest={"model": {"total": 10**6}})


def proposed(stage: str) -> list[tuple[Remedy, ...]]:
    """The remedies of each cause, equal ones once."""
    seen = seen_of(stage)
    found = [remedies(seen.config, cause.remedies(seen)) for cause in CAUSES]
    return list({str(of_cause): of_cause for of_cause in found}.values())


def values(stage: str) -> dict[str, list[Any]]:
    """The values of all remedies by option."""
    found: dict[str, list[Any]] = {}
    for of_cause in proposed(stage):
        for remedy in of_cause:
            found.setdefault(remedy.key, []).append(remedy.value)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("stage", TRAINING)
def test_the_stage_accepts_the_remedies_of_every_cause(stage):
    before = {str(problem) for problem in compose_lenient([f"+stage={stage}"]).problems}
    for of_cause in proposed(stage):
        words = [f"{remedy.key}={remedy.value}" for remedy in of_cause]
        problems = compose_lenient([f"+stage={stage}", *words]).problems
        assert [str(one) for one in problems if str(one) not in before] == [], words


def test_no_remedy_of_imitation_names_an_option_of_reinforcement_learning():
    keys = values("sft").keys()
    assert {"optimizer.lr", "optimizer.weight_decay", "algorithm.max_steps"} <= keys
    assert not {key for key in keys if key.split(".")[-1] in ("kl_coef", "group_size", "temperature", "clip_high")}


def test_remedies_of_reinforcement_learning_have_values():
    found = values("grpo")
    assert set(found["algorithm.temperature"]) == {1.0} and set(found["algorithm.zero_variance"]) == {"resample"}
    assert found["optimizer.eps"] == [1e-8] and 0.0008 in found["optimizer.lr"]


def test_an_option_that_a_class_has_not_is_no_remedy():
    config = resolved(compose_lenient(["+stage=grpo", "optimizer=sgd"]))
    assert remedies(config, {"optimizer.eps": 1e-8, "optimizer.momentum": 2.0, "no.such": 1}) == ()
    assert [str(one) for one in remedies(config, {"optimizer.momentum": 0.5})] == ["optimizer.momentum=0.5 (now 0.9)"]


def test_groups_are_chosen_by_name_and_suit_the_stage():
    config = resolved(compose_lenient(["+stage=ppo"]))
    named = [one.key for one in remedies(config, {"algorithm": "grpo", "scheduler": "constant", "reward": "nothing"})]
    assert named == ["scheduler"]


def test_texts_of_causes_name_no_option_as_advice():
    nodes = "|".join(spec.name for spec in fields(schema.Config))
    assert [cause.name for cause in CAUSES if re.search(rf"(?<!\+)\b({nodes})(\.[a-z_]+|=)", cause.advice)] == []


def test_a_schedule_that_dies_is_answered_by_the_schedule():
    config = resolved(compose_lenient(["+stage=grpo", "scheduler=polynomial", "scheduler.power=12"]))
    rows = [{"step": step, "learning_rate": 8e-4 * (1 - step / 20) ** 12, "grad_norm": 0.4} for step in range(20)]
    (found,) = diagnose(Evidence(metrics=rows, config=config, summary={"steps": 20})).findings
    assert found.cause == "learning_rate" and "scheduler.power=1 (now 12)" in map(str, found.remedies)
