"""A gold that does not pass ends a run that trains before its first evaluation, which takes an hour with a large model."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.records.context import RunContext
from rlvr_exp.stages import reinforcement, sft


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        (sft, "+stage=sft"),
        (reinforcement, "+stage=grpo"),
        (reinforcement, "+stage=ppo"),
        (reinforcement, "+stage=cascade"),
    ],
)
def test_golds_are_checked_before_the_first_evaluation(
    stage: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise GuardStop("a gold does not pass")

    def evaluate(*_: object) -> None:
        pytest.fail("evaluated before the golds were checked")

    config, domain = compose([words]).config, SimpleNamespace(splits=dict)
    components = SimpleNamespace(domain=domain, policy=None, policies={}, held_out=(), verifier=None)
    monkeypatch.setattr(stage, "open_tracker", lambda *_: nullcontext())
    monkeypatch.setattr(stage, "build_components", lambda *_: nullcontext(components))
    monkeypatch.setattr(stage, "training_tasks", refuse)
    monkeypatch.setattr(stage, "evaluate_before", evaluate)
    if stage is reinforcement:
        monkeypatch.setattr(stage, "training_environment", lambda *_: SimpleNamespace(roles=("policy",)))
        monkeypatch.setattr(stage, "algorithm_of", lambda *_: None)
    with pytest.raises(GuardStop, match="gold"):
        stage.run(config, RunContext(tmp_path, lambda event: None))
