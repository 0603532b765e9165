"""No option of an algorithm is dead: changing it changes a run's samples, its training batch or its updates.

The options are found in the schemas: a new one without an entry below fails. `algorithm.trl` is handed on to TRL whole.
"""

import dataclasses
from functools import cache
from typing import Any

import pytest
from option_traces import options_of, trace
from thinning import thinned

from rlvr_exp.config.algorithm import RatioMethod, ReinforcementLearning
from rlvr_exp.config.options import SCHEMAS
from rlvr_exp.config.schema import STAGES
from rlvr_exp.config.schema_check import validator

assert STAGES  # Imported for the schemas that it registers.
PASSED_ON = {"_target_", "trl", "lag", "log_token_logprobs"}
"""Options that the trainer does not read; tests/stages/test_server_training.py has `lag`,
tests/stages/test_run_records.py the log-probabilities."""
REFUSED = {("SSD", "correction"), ("SSD", "correction_cap")}
"""Options that a method has no other value for than the default."""


@dataclasses.dataclass(frozen=True)
class Change:
    """An option's other value, and what has to be set for it to matter."""

    to: Any
    base: tuple[tuple[str, Any], ...] = ()


def change(to: Any, **base: Any) -> Change:
    return Change(to, tuple(base.items()))


FOLLOWED = {"iterations": 3, "max_steps": 3, "kl_coef": 0.5}
"""Several updates on the same samples: ratios differ from 1, the policy differs from its reference."""
REPLAYED = {"iterations": 1, "max_steps": 3, "replay_steps": 1, "replay_prompts": 1}

COMMON = {
    "temperature": change(0.5),
    "top_k": change(2),
    "top_p": change(0.3),
    "min_p": change(0.9),
    "stop": change([f"w{word}" for word in range(8, 15)]),
    "max_steps": change(3),
    "prompts_per_step": change(3),
    "group_size": change(4),
    "max_tokens_per_device": change(8, **FOLLOWED),
    "rollout_batch_size": change(3),
    "correction": change("token_truncate", correction="sequence_mask"),
    "correction_cap": change(1.1, correction="token_truncate"),
    "zero_variance": change("mask"),
    "resample_budget": change(1, zero_variance="resample"),
    "rollout_steps": change(2, rollout_steps=1),
    "iterations": change(2, iterations=1),
    "kl_coef": change(0.9, **FOLLOWED),
    "reference_sync_steps": change(1, kl_coef=0.5, max_steps=3, iterations=1, rollout_steps=1),
    "entropy_coef": change(0.3, **FOLLOWED),
    "entropy_target": change(9.0, **FOLLOWED),
    "entropy_unit": change("start", entropy_target=1.5, **FOLLOWED),
    "entropy_step": change(0.5, entropy_target=9.0, **FOLLOWED),
    "pass_k": change(2),
    "pass_k_weight": change(0.5, pass_k=2),
    "unlikeliness": change(0.9),
    "positive_weight": change(0.1),
    "clip_low": change(1e-9, **FOLLOWED),
    "clip_high": change(9.0, **FOLLOWED),
    "loss": change("dr_grpo"),
    "advantage_scale": change("none"),
    "overlong_share": change(0.9),
    "alpha": change(0.0),
    "distillation_top_k": change(1),
    "is_clip": change(0.1, **FOLLOWED),
    "teacher_update_rate": change(1.0, max_steps=3),
}
UNTAUGHT = {"include_feedback": False, "group_size": 2, "prompts_per_step": 6, "iterations": 2, "max_steps": 8}
"""Some failed answers have no teacher, because no answer of their group passed."""
MIXED = {"distillation_weight": 0.5}
"""A loss with a part of GRPO."""
WEIGHED = {
    "distillation_weight": change(0.5),
    "positive_weight": change(0.1, **MIXED),
    "pass_k": change(2, **MIXED),
    "pass_k_weight": change(0.5, pass_k=2, **MIXED),
    "unlikeliness": change(0.9, **MIXED),
    "clip_low": change(1e-9, **MIXED, **FOLLOWED),
    "clip_high": change(9.0, **MIXED, **FOLLOWED),
    "correction": change("token_truncate", correction="sequence_mask", **MIXED),
    "correction_cap": change(1.1, correction="token_truncate", **MIXED),
}
OWN = {
    "Distillation": {**WEIGHED, "is_clip": change(0.1, **FOLLOWED)},
    "SDFT": {**WEIGHED, "is_clip": change(0.1, **FOLLOWED), "alpha": change(1.0)},
    "SDPO": {**WEIGHED, "include_feedback": change(False)},
    "SRPO": {
        "entropy_beta": change(0.0),
        "include_feedback": change(False),
        "clip_low": change(1e-9, **UNTAUGHT),
    },
    "GSPO": {"clip_low": change(0.9, **FOLLOWED)},
    "CISPO": {"clip_high": change(1e-9, **FOLLOWED)},
    "RLOO": {"baseline": change("none"), "kl_coef": change(0.9, max_steps=2)},
    "PPO": {
        "gamma": change(0.5, **FOLLOWED),
        "gae_lambda": change(0.2, **FOLLOWED),
        "whiten_advantages": change(False, **FOLLOWED),
        "minibatches": change(2, **FOLLOWED),
        "value_trunk": change("own", **FOLLOWED),
        "value_coef": change(0.7, **FOLLOWED),
        "value_clip": change(1e-6, **FOLLOWED),
        "value_lr": change(0.05, **FOLLOWED),
        "value_warmup_steps": change(1, **FOLLOWED),
        "kl_in": change("loss", **FOLLOWED),
        "kl_coef": change(0.9, iterations=1, max_steps=3),
        "replay_steps": change(2, **REPLAYED),
        "replay_prompts": change(2, **REPLAYED),
        "replay_max_weight": change(0.1, **REPLAYED),
    },
}
IN_EVERY_RUN = ("GRPO", "PPO")
"""Methods some of whose common options are tried in every run of the tests; the rest are slow tests."""
SCHEMAS_OF_RL = {schema.__name__: schema for schema in SCHEMAS.values() if issubclass(schema, ReinforcementLearning)}
LEAVES = [
    (name, spec.name)
    for name, schema in SCHEMAS_OF_RL.items()
    for spec in dataclasses.fields(schema)
    if spec.name not in PASSED_ON and (name, spec.name) not in REFUSED
]
OFTEN = thinned(leaf for leaf in LEAVES if leaf[0] in IN_EVERY_RUN or leaf[1] in OWN.get(leaf[0], ()))
CHOSEN = [pytest.param(*leaf, marks=() if leaf in OFTEN else pytest.mark.slow) for leaf in LEAVES]


@cache
def parts(name: str, options: tuple[tuple[str, Any], ...]) -> list:
    """The parts of a trace computed so far, and the function that computes the rest."""
    return [[], trace(options_of(SCHEMAS_OF_RL[name], **dict(options)))]


def part(kept: list, number: int) -> Any:
    """The trace's part, computed once."""
    made, rest = kept
    while len(made) <= number:
        made.append(next(rest))
    return made[number]


def differ(name: str, base: tuple[tuple[str, Any], ...], changed: dict[str, Any]) -> bool:
    other = [[], trace(options_of(SCHEMAS_OF_RL[name], **changed))]
    return any(part(parts(name, base), number) != part(other, number) for number in range(3))


def entry_of(name: str, leaf: str) -> Change | None:
    return OWN.get(name, {}).get(leaf) or COMMON.get(leaf)


def test_every_option_has_an_entry():
    assert not [leaf for leaf in LEAVES if not entry_of(*leaf)], "a new option; say above what it changes"


@pytest.mark.parametrize(("name", "leaf"), CHOSEN, ids=lambda part: part)
def test_a_changed_option_changes_the_run(name, leaf):
    entry = entry_of(name, leaf)
    schema = SCHEMAS_OF_RL[name]
    known = {spec.name: spec for spec in dataclasses.fields(schema)}
    base = tuple((option, value) for option, value in entry.base if option in known)
    to = "keep" if leaf == "zero_variance" and schema().zero_variance == "resample" else entry.to
    before, after = options_of(schema, **dict(base)), options_of(schema, **{**dict(base), leaf: to})
    assert validator(schema, leaf).isinstance_python(to)
    assert getattr(before, leaf) != to and not before.problems() and not after.problems()
    assert differ(name, base, {**dict(base), leaf: to}), f"{name}.{leaf} does nothing"


@pytest.mark.parametrize("name", thinned(SCHEMAS_OF_RL))
def test_equal_options_give_equal_traces(name):
    """Otherwise any two traces would differ."""
    base = tuple((option, value) for option, value in FOLLOWED.items() if hasattr(SCHEMAS_OF_RL[name](), option))
    assert not differ(name, base, dict(base))


@pytest.mark.parametrize("name", [name for name, schema in SCHEMAS_OF_RL.items() if issubclass(schema, RatioMethod)])
@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"zero_variance": "keep", "resample_budget": 3}, "resample_budget"),
        ({"kl_coef": 0.0, "reference_sync_steps": 2}, "reference_sync_steps"),
        ({"entropy_unit": "start"}, "entropy_unit"),
        ({"entropy_step": 0.1}, "entropy_step"),
        ({"pass_k": 3}, "pass_k"),
        ({"pass_k_weight": 0.5}, "pass_k_weight"),
    ],
)
def test_a_combination_without_effect_is_refused(name, given, where):
    assert [problem.where for problem in options_of(SCHEMAS_OF_RL[name], **given).problems()] == [where]


@pytest.mark.parametrize(
    ("name", "given", "where"),
    [
        ("SSD", {"correction": "sequence_mask"}, "correction"),
        ("SSD", {"group_size": 1}, "group_size"),
        ("SSD", {"trl": {"delta": 2.0}}, "trl.delta"),
        ("GRPO", {"trl": {"loss_type": "sapo"}}, "kl_coef"),
        ("GRPO", {"trl": {"loss_type": "sapo"}, "kl_coef": 0.0, "clip_high": 0.3}, "clip_high"),
        ("GRPO", {"trl": {"loss_type": "vespo"}, "clip_low": 0.3}, "clip_low"),
        ("GRPO", {"trl": {"loss_type": "luspo"}}, "trl.loss_type"),
        ("GRPO", {"trl": {"loss_type": "bnpo"}}, "trl.loss_type"),
        ("GRPO", {"trl": {"sapo_temperature_pos": 2.0}}, "trl.sapo_temperature_pos"),
        ("GRPO", {"trl": {"loss_type": "vespo", "vespo_k_pos": "high"}}, "trl.vespo_k_pos"),
        ("MaxRL", {"trl": {"loss_type": "sapo"}}, "trl.loss_type"),
    ],
)
def test_a_value_that_a_method_cannot_use_is_refused(name, given, where):
    assert [problem.where for problem in options_of(SCHEMAS_OF_RL[name], **given).problems()] == [where]


def test_the_constants_of_trls_losses_are_passed_on():
    made = options_of(SCHEMAS_OF_RL["GRPO"], trl={"loss_type": "vespo", "vespo_k_pos": 2.5}, kl_coef=0.0)
    assert not made.problems()
    usual = options_of(SCHEMAS_OF_RL["GRPO"], trl={"loss_type": "vespo"}, kl_coef=0.0)
    runs = [trace(dataclasses.replace(one, max_steps=3, iterations=3)) for one in (made, usual)]
    weights = [[*run][2] for run in runs]
    assert weights[0] != weights[1]
