"""Verifiers that cannot serve a stage: one that shares its process with the candidate is for inspection, not for training;
one that proves nothing checks no golds of Dafny."""

import pytest

from rlvr_exp.config.compose import compose_lenient

DATA = ["data=code", "data.path=.", "verifier=pytest"]


def faults(*words: str) -> list[str]:
    return [problem.where for problem in compose_lenient([*DATA, *words]).problems]


@pytest.mark.parametrize("stage", ["grpo", "ppo", "sft"])
def test_stages_that_train_refuse_a_shared_process(stage: str) -> None:
    assert "verifier.process" in faults(f"+stage={stage}", "verifier.process=shared")
    assert "verifier.process" not in faults(f"+stage={stage}", "verifier.process=bridged")


def test_others_take_it() -> None:
    assert "verifier.process" not in faults("+stage=validate", "verifier.process=shared")


def test_golds_are_checked_by_dafny_alone() -> None:
    words = ["+stage=validate", "data=dafny", "data.usable=check"]
    others = [problem.where for problem in compose_lenient([*words, "verifier=python_io"]).problems]
    assert "data.usable" in others
    assert compose_lenient([*words, "verifier=dafny"]).problems == ()
