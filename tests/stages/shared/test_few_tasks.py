"""Few held-out tasks: the plan and the start say how little they show, and the command that they offer works."""

import json
import shlex
from pathlib import Path

import pytest

from rlvr_exp.launch.execute import Outcome
from rlvr_exp.main import main


def own(folder: Path, count: int = 10) -> str:
    rows = [
        {"prompt": f"Add {n}.", "tests": [f"assert plus_{n}(1) == {n + 1}", f"assert plus_{n}(-4) == {n - 4}"]}
        for n in range(1, count + 1)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return f"data.path={folder / 'rows.jsonl'}"


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main([*words]) == 0
    return capsys.readouterr().out


def test_one_held_out_task_is_warned_of_and_the_cross_validation_can_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["+stage=grpo", "data=code", own(tmp_path), "seed=3", "run.dir=here", "algorithm.max_steps=2"]
    plan = said(capsys, *words, "run.dry=true")
    assert "evaluation:  1 task of 'test', 8 samples each" in plan
    assert "detectable:  no difference: a single task" in plan and "only 1 task of split 'test' is measured" in plan
    command = shlex.split(plan[plan.index("python -m rlvr_exp +stage=study") :].splitlines()[0])
    assert f"{own(tmp_path)}" in " ".join(command) and "seed" not in " ".join(command)
    assert "data.fold=4" in said(capsys, *command[3:], "run.dry=true")
    monkeypatch.setattr("rlvr_exp.launch.execute.execute", lambda *_: Outcome(tmp_path, 0, {}))
    assert plan[plan.index("warning:") :].split()[1:5] == said(capsys, *words).split("warning:")[1].split()[:4]


def test_enough_tasks_are_not_warned_of_and_the_real_number_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    plan = said(capsys, "+stage=evaluate", "evaluation.tasks=1000000", "run.dry=true")
    assert "evaluation:  500 tasks of 'test'" in plan and "warning:" not in plan
    assert "3.1 points by 8 samples, 8.9 points by the greedy answer of each of 500 tasks" in plan


def test_an_evaluation_of_few_tasks_names_no_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = said(capsys, "+stage=evaluate", "data=code", own(tmp_path, 60), "evaluation.tasks=4", "run.dry=true")
    assert "only 4 tasks of split 'test' are measured" in plan and "study=" not in plan
