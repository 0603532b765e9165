"""Packages that are installed but not used by a run stay unimported, and never one that it may need."""

import importlib.util
import sys

import pytest
import yaml

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import to_yaml
from rlvr_exp.launch.unused_packages import hide_unused_packages, unused_packages
from rlvr_exp.records.fingerprint import flat

ALL = {"deepspeed", "wandb", "bitsandbytes"}


def unused(*words: str) -> set[str]:
    checked = compose(list(words))
    return set(unused_packages(checked.config, flat(yaml.safe_load(to_yaml(checked)))))


@pytest.mark.parametrize("stage", ["sft", "grpo", "ppo", "cascade"])
def test_the_defaults_use_none_of_them(stage):
    assert unused(f"+stage={stage}") == ALL


@pytest.mark.parametrize(
    ("word", "used"),
    [
        ("tracking=wandb", {"wandb"}),
        ("parallel=zero2", {"deepspeed"}),
        ("parallel=zero3", {"deepspeed"}),
        ("optimizer=adamw_8bit", {"bitsandbytes"}),
        ("model.quantization=8bit", {"bitsandbytes"}),
        ("model.path=somewhere", {"bitsandbytes"}),
        ("model.adapter.path=somewhere", {"bitsandbytes"}),
        ("data.path=somewhere", set()),
    ],
)
def test_what_an_option_may_need_is_kept(word, used):
    assert unused("+stage=grpo", *(["model=tiny_lora"] if "quantization" in word else []), word) == ALL - used


def test_a_class_of_the_users_own_may_need_all():
    checked = compose(["+stage=grpo"])
    options = flat(yaml.safe_load(to_yaml(checked))) | {"verifier._target_": "mine.Verifier"}
    assert list(unused_packages(checked.config, options)) == []


def test_a_stage_that_does_not_train_hides_nothing():
    assert unused("+stage=evaluate") == set()


def test_a_hidden_package_is_absent_for_whoever_looks(monkeypatch):
    for package in ALL:
        monkeypatch.delitem(sys.modules, package, raising=False)
    checked = compose(["+stage=grpo", "tracking=wandb"])
    hide_unused_packages(checked.config, flat(yaml.safe_load(to_yaml(checked))))
    hidden = {package for package in ALL if package in sys.modules and sys.modules[package] is None}
    for package in hidden:
        del sys.modules[package]  # for the tests that follow: monkeypatch would put it back
    assert hidden == {"deepspeed", "bitsandbytes"}
    monkeypatch.setitem(sys.modules, "deepspeed", None)
    assert importlib.util.find_spec("deepspeed") is None
