"""No option of a reward is dead: changing it changes the reward of some completion, or the reward is rejected.

The options are found in the schemas: a new one without an entry below fails.
"""

import dataclasses
from typing import Any

import pytest
from verified_samples import answer, failed, passed, rejected

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.config.options import SCHEMAS
from rlvr_exp.config.schema_check import validator
from rlvr_exp.config.verifier import Term
from rlvr_exp.core.errors import InputError
from rlvr_exp.verifiers.base import Verdict

ANSWERS = [passed(10), passed(300), failed(share=7), failed("parse"), failed("timeout", 3, 50), rejected()]
ANSWERS.append(answer(Verdict("failed", bucket="parse"), text=None))
ANSWERS += [answer(Verdict("passed", passed=1, total=1), text=f"l = {k}") for k in range(4)]
LIKE = {"valid": 1.0, "field_similarity": 0.5, "string_similarity": 0.75, "environment_reward": 0.5}
ANSWERS.append(answer(Verdict("failed", bucket="wrong_answer", measures=LIKE)))
ACTIONS = ANSWERS[-2:]
"""Answers without and with what an action is likened by, and a server's reward."""
CHANGES: dict[str, dict[str, Any]] = {
    "CasesPassed": {"weight": 0.1},
    "AllPassed": {"weight": 2.0},
    "Syntax": {"weight": 0.0},
    "Length": {"weight": 0.02, "scale_tokens": 20},
    "CodeLength": {"weight": 0.02, "scale_characters": 20},
    "Severity": {"weight": 0.2},
    "Parses": {"weight": 0.1},
    "Resolves": {"weight": 0.2},
    "Obligations": {"weight": 0.1},
    "FieldSimilarity": {"weight": 0.5},
    "StringSimilarity": {"weight": 0.5},
    "InvalidAction": {"weight": 0.5},
    "RemoteReward": {"weight": 0.5},
    "Random": {"weight": 0.5},
    "Ruff": {"weight": 0.05, "select": ["F"]},
    "Identity": {},
    "RunningScale": {},
    "PerTask": {},
    "Reward": {"terms": "one switched off", "normalizer": "another", "ordered": True},
}
REWARDS = {
    schema.__name__: schema for target, schema in SCHEMAS.items() if ".rewards." in target or issubclass(schema, Term)
}
LEAVES = [
    (name, spec.name)
    for name, schema in REWARDS.items()
    for spec in dataclasses.fields(schema)
    if spec.name != "_target_"
]
TERMS = {
    "CasesPassed": "cases_passed",
    "AllPassed": "all_passed",
    "Syntax": "syntax",
    "Length": "length",
    "CodeLength": "code_length",
    "Severity": "severity",
    "Parses": "parses",
    "Resolves": "resolves",
    "Obligations": "obligations",
    "FieldSimilarity": "field_similarity",
    "StringSimilarity": "string_similarity",
    "InvalidAction": "invalid",
    "RemoteReward": "environment",
    "Random": "random",
    "Ruff": "ruff",
}
SHIPPED = {
    **dict.fromkeys(("Parses", "Resolves", "Obligations"), "dafny_partial"),
    **dict.fromkeys(("FieldSimilarity", "StringSimilarity", "InvalidAction"), "srl"),
    "CodeLength": "short_code",
    "RemoteReward": "openenv",
    "Random": "random",
    "Ruff": "lint",
}


def paid(*words: str) -> list[float | None]:
    answers = ACTIONS if {"reward=srl", "reward=openenv"} & {*words} else ANSWERS
    return [one.total for one in build(compose(["+stage=grpo", *words]).config.reward)(answers)]


def override(name: str, leaf: str) -> str:
    """The command line overrides that change the option."""
    if name == "Reward":
        return {"terms": "reward.terms.severity.weight=0", "normalizer": "reward=normalized"}[leaf]
    return f"reward.terms.{TERMS[name]}.{leaf}={CHANGES[name][leaf]}"


def test_an_order_that_likeness_does_not_keep_is_refused_where_it_is_wanted():
    with pytest.raises(InputError, match="a wrong answer can earn"):
        paid("reward=srl", "reward.ordered=true")


@pytest.mark.parametrize(
    ("name", "leaf"), [one for one in LEAVES if one != ("Reward", "ordered")], ids=lambda part: part
)
def test_a_changed_option_changes_what_is_paid(name, leaf):
    assert leaf in CHANGES.get(name, {}), f"{name}.{leaf}: a new option; say here what it changes"
    if name != "Reward":
        assert validator(REWARDS[name], leaf).isinstance_python(CHANGES[name][leaf])
        assert REWARDS[name]().__dict__[leaf] != CHANGES[name][leaf]
    of = [f"reward={SHIPPED[name]}"] if name in SHIPPED else []
    assert paid(*of, override(name, leaf)) != paid(*of)


def test_every_schema_of_rewards_has_an_entry():
    assert set(CHANGES) == set(REWARDS)


def test_equal_options_pay_equally():
    assert paid() == paid()


def test_the_running_scale_has_no_options_and_is_not_the_identity():
    assert paid("reward=normalized") == paid("reward=normalized") != paid("reward=default")


def test_scaling_by_task_is_an_option_of_its_own():
    assert paid("reward=per_task") != paid("reward=default")


def test_weights_that_let_a_wrong_answer_earn_most_are_refused():
    with pytest.raises(InputError, match="a wrong answer can earn"):
        paid("reward.terms.all_passed.weight=0", "reward.terms.cases_passed.weight=0", "reward.terms.severity.weight=0")
