"""What a look at the data tells before anything starts, in the plan too."""

import json
from pathlib import Path

import pytest

from rlvr_exp.config import compose
from rlvr_exp.core.errors import InputError
from rlvr_exp.launch.data_check import data_problems, splits_of
from rlvr_exp.main import main


def rows(path: Path, count: int, **more: str) -> Path:
    made = [
        {"prompt": f"Add {n}.", "tests": [f"assert plus_{n}(1) == {1 + n}", f"assert plus_{n}(-4) == {n - 4}"], **more}
        for n in range(1, count + 1)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in made))
    return path


def test_the_plan_says_which_splits_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = rows(tmp_path / "own.jsonl", 10, split="test")
    assert main(["+stage=grpo", "data=code", f"data.path={path}", "run.dry=true"]) == 0
    said = capsys.readouterr().out
    assert "train 8, dev 1, test 1" in said and "splits are drawn from the set's 10 tasks" in said


def test_embedded_splits_are_counted_without_reading_them() -> None:
    assert splits_of(compose(["+stage=grpo"]).config).sizes["train"] == 12000
    assert splits_of(compose(["+stage=sft", "data=dafny", "data.limit=5", "verifier=dafny"]).config).sizes["dev"] == 5


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["+stage=grpo", "data.draw_splits=false"], "no tasks in split 'train'"),
        (["+stage=evaluate", "evaluation.split=test_unseen"], "no tasks in split 'test_unseen'"),
        (["+stage=sft", "data.draw_splits=false"], "no tasks in split 'train' and 'dev'"),
    ],
)
def test_a_split_that_is_needed_and_not_there_ends_the_plan(words: list[str], said: str, tmp_path: Path) -> None:
    path = rows(tmp_path / "own.jsonl", 10, split="test")
    with pytest.raises(InputError) as refused:
        splits_of(compose([*words, "data=code", f"data.path={path}"]).config)
    assert said in refused.value.problems[0].what and "test (" in refused.value.problems[0].allowed


def test_a_set_whose_licence_forbids_it_is_not_trained_on(tmp_path: Path) -> None:
    row = {
        "id": 1, "full_name": "1_x", "name": "x", "before": "def f(): ...", "after": "def f():\n    return 1\n",
        "tests": "assert f() == 1", "instruction_descriptive": "return 1", "instruction_lazy": "one",
        "taxonomy": {"change_kind": "corrective", "libraries": [], "topic": "x"},
    }  # fmt: skip
    path = tmp_path / "canitedit.jsonl"
    path.write_text(json.dumps(row) + "\n")
    given = ["data=code", f"data.path={path}", "verifier=pytest"]
    (problem,) = data_problems(compose(["+stage=grpo", *given]).config)
    assert "may be trained on" in problem.what and "licence" in problem.got
    assert list(data_problems(compose(["+stage=evaluate", *given]).config)) == []
