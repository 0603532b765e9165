"""The environment of a process that runs a stage: its threads, and packages that a run does not use and may not need."""

import importlib.util
import os
import sys

import pytest
import yaml

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import to_yaml
from rlvr_exp.config.parallel import first_alone
from rlvr_exp.launch.children import (
    automatic_threads,
    child_environment,
    hide_unused_packages,
    inline_environment,
    physical_cores,
    unused_packages,
)
from rlvr_exp.records.manifest import flat


def test_threads_do_not_fight_with_the_verifiers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert child_environment(3)["OMP_NUM_THREADS"] == child_environment(3)["MKL_NUM_THREADS"] == "3"
    assert child_environment(0)["OMP_NUM_THREADS"] == str(automatic_threads())
    assert child_environment(0, processes=64)["OMP_NUM_THREADS"] == "1", "shared by the ranks"
    assert child_environment(0)["OMP_WAIT_POLICY"] == "PASSIVE"
    assert 0 < int(child_environment(0)["GOMP_SPINCOUNT"]) < 10_000, (
        "longer than a gap between operations, shorter than a task"
    )
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert child_environment(0)["OMP_NUM_THREADS"] == "5", "what the caller says"
    assert 1 <= physical_cores() <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 2), (4, 3), (16, 15)])
def test_automatic_threads(monkeypatch: pytest.MonkeyPatch, cores: int, threads: int) -> None:
    monkeypatch.setattr("rlvr_exp.launch.children.physical_cores", lambda: cores)
    assert automatic_threads() == threads


def test_an_inline_run_has_the_environment_of_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delitem(sys.modules, "deepspeed", raising=False)
    before, made = dict(os.environ), child_environment(3)
    assert made["OMP_NUM_THREADS"] == "3" and made["OMP_WAIT_POLICY"] == "PASSIVE"
    with inline_environment(compose(["+stage=grpo", "parallel.threads=3"])):
        assert dict(os.environ) == made | first_alone(made)
        assert sys.modules["deepspeed"] is None
    assert dict(os.environ) == before and "deepspeed" not in sys.modules


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
