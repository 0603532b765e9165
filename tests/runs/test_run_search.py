"""A search from its options to its record, kept in SQLite: what a second command finds there, and what is refused before any run."""

import json
from pathlib import Path

import optuna
import pytest
from planted import Planter, context_of

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError
from rlvr_exp.runs.schedule import run_study, study_plan

SPACE = "study.space.optimizer.lr={uniform:[1e-4,1e-3]}"
WORDS = [
    "+stage=study",
    "study=search",
    "study.seeds=[0]",
    "study.trials=2",
    "study.metric=pass_at_1_greedy",
    "study.pruner=none",
    "study.confirm=[7]",
]


def passes(name: str, task: int) -> bool:
    return task % 3 < (2 if name.startswith(("trial_001", "best")) else 1)


@pytest.mark.slow
def test_a_second_command_finds_the_trials_and_asks_for_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = compose([*WORDS, SPACE]).config
    first = Planter(monkeypatch, passes=passes)
    result = run_study(config, context_of(tmp_path, [], WORDS))
    assert first.ran == ["trial_000_default_seed0", "trial_001_seed0", "default_seed7", "best_seed7"]
    assert result.metrics == {"runs": 4, "reused": 0, "failed": 0}
    answer = json.loads((tmp_path / "study.json").read_text())["answer"]
    assert "on seeds that no trial had (7): Difference on pass_at_1_greedy beyond chance" in answer[0]
    second = Planter(monkeypatch, passes=passes)
    again = run_study(config, context_of(tmp_path, [], WORDS))
    assert second.ran == [] and again.metrics == {"runs": 4, "reused": 4, "failed": 0}
    assert json.loads((tmp_path / "study.json").read_text())["answer"] == answer
    (study,) = optuna.get_all_study_summaries(f"sqlite:///{tmp_path / 'search.db'}")
    assert study.n_trials == 2


def test_a_plan_lists_as_many_runs_as_there_may_be(tmp_path: Path) -> None:
    plan = study_plan(compose([*WORDS, SPACE, f"run.dir={tmp_path}"]).config)
    assert "4 runs, 0 there already" in plan
    assert "evaluation.split=dev seed=0, with values that are known once it starts" in plan
    assert next(line for line in plan.splitlines() if line.startswith("  default_seed7")).endswith("seed=7")


@pytest.mark.parametrize(
    ("space", "found"),
    [
        ("study.space.optimizer.lrr={uniform:[1e-4,1e-3]}", r"space.optimizer.lrr: optimizer.lrr: unknown key"),
        ("study.space.algorithm.group_size={int:[0,4]}", r"space.algorithm.group_size: algorithm.group_size"),
    ],
)
def test_a_value_that_cannot_work_is_told_before_any_run(space: str, found: str, tmp_path: Path) -> None:
    config = compose([*WORDS, space]).config
    with pytest.raises(InputError, match=found):
        study_plan(config)
    with pytest.raises(InputError, match=found):
        run_study(config, context_of(tmp_path, [], WORDS))
    assert not (tmp_path / "search.db").exists()
