"""What a look at the data tells before anything starts, in the plan too."""

import json
import sys
from pathlib import Path

import pytest

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build, to_yaml
from rlvr_exp.core.errors import InputError
from rlvr_exp.evaluation.data_quality import report
from rlvr_exp.launch.execute import _told
from rlvr_exp.launch.preflight import data_problems, domain_of, left_out_warning, preflight_problems, splits_of
from rlvr_exp.main import main
from rlvr_exp.memory.plan import plan
from rlvr_exp.records import manifest
from rlvr_exp.records.rollout_files import evaluation_path


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


def files_and_asserts(path: Path) -> Path:
    """One task whose tests are asserts on values, and nine with a pytest file."""
    one = {
        "prompt": "Add.",
        "tests": ["assert f(1) == 2", "assert f(4) == 5"],
        "solution": "def f(x):\n    return x + 1\n",
    }
    file = "import pytest\nfrom solution import f{0}\n\ndef test_f():\n    assert f{0}(1) == 1{0}\n"
    program = "def f{0}(x):\n    return x + {0} + 9\n"
    rows = [one, *({"prompt": f"{n}.", "tests": file.format(n), "solution": program.format(n)} for n in range(9))]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_tasks_that_the_verifier_does_not_judge_are_a_warning_with_the_verifier_that_does(tmp_path: Path) -> None:
    words = ["+stage=validate", "data=code", f"data.path={files_and_asserts(tmp_path / 'own.jsonl')}"]
    told = "9 tasks are left out: a test is not an assert like f(1) == 2 (9, such as import pytest). verifier=pytest runs them"
    checked = compose(words)
    assert left_out_warning(checked.config) == told
    assert f"  warning:     {told}" in plan(checked.config, []) and _told(checked)[0] == f"warning: {told}"
    assert report([], domain_of(checked.config).left_out(), told).endswith(f"\nwarning: {told}\n")
    assert left_out_warning(compose([*words, "verifier=pytest"]).config) == ""


def test_problems_for_another_verifier_are_offered_as_tasks_of_code(tmp_path: Path) -> None:
    path = files_and_asserts(tmp_path / "own.jsonl")
    for stage, first in (("grpo", "data=code, which reads these rows for this verifier, or "), ("adversarial", "")):
        config = compose([f"+stage={stage}", "data=problems", f"data.path={path}", "verifier=pytest"]).config
        (problem,) = data_problems(config)
        assert problem.remedy == f"{first}verifier=python_tests"


def test_embedded_splits_are_counted_without_reading_them() -> None:
    assert splits_of(compose(["+stage=grpo"]).config).sizes["train"] == 12000
    assert splits_of(compose(["+stage=sft", "data=dafny", "data.limit=5", "verifier=dafny"]).config).sizes["dev"] == 5


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["+stage=grpo", "data.draw_splits=false"], "no tasks in split 'train'"),
        (["+stage=evaluate", "evaluation.split=test_unseen"], "no tasks in split 'test_unseen'"),
        (["+stage=grpo", "run.select.every_steps=5", "run.select.split=devel"], "no tasks in split 'devel'"),
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


ARC = {"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[3]], "output": [[4]]}]}


@pytest.fixture
def arc(tmp_path: Path) -> str:
    """Real tasks of ARC, which have no golds."""
    folder = tmp_path / "arc"
    folder.mkdir()
    for number in range(1, 9):
        task = {"train": [{"input": [[number]], "output": [[number, 2]]}] * 2, "test": ARC["test"]}
        (folder / f"t{number}.json").write_text(json.dumps(task).replace("[[3]]", f"[[3, {number}]]"))
    return f"data.path={folder}"


@pytest.mark.parametrize("dry", ["true", "false"])
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["+stage=grpo", "verifier=dafny"], "verifier: does not judge the problems of this data"),
        (["+stage=evaluate", "evaluation.split=nowhere"], "no tasks in split 'nowhere'"),
        (["+stage=validate", "validate.split=nowhere"], "no tasks in split 'nowhere'"),
        (["+stage=sft", "ARC"], "no task of split 'train' has a gold to imitate"),
        (["+stage=evaluate", "data=code", "data.path=FILE"], "line 1: nearly a row of your own"),
        (["+stage=grpo", "data=dafny", "data.path=FILE"], "line 1: neither an example nor a program"),
        (["+stage=grpo", "data.path=FILE"], "line 1, id: missing or not text"),
    ],
)
def test_what_the_data_cannot_be_used_for_is_told_before_anything_starts(
    words: list[str], told: str, dry: str, arc: str, tmp_path: Path, monkeypatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rlvr_exp.launch.execute.execute", None)
    file = tmp_path / "rows" / "rows.jsonl"
    file.parent.mkdir()
    file.write_text('{"prompt": "x"}\n')
    given = [arc if word == "ARC" else word.replace("FILE", str(file)) for word in words]
    assert main([*given, f"run.dry={dry}"]) == 2
    assert told in capsys.readouterr().err


def test_a_vote_on_hidden_outputs_cannot_be_measured(tmp_path: Path) -> None:
    hidden = {"train": ARC["train"], "test": [{"input": [[3]]}]}
    (tmp_path / "hidden.json").write_text(json.dumps(hidden))
    words = ["+stage=evaluate", f"data.path={tmp_path}", "evaluation.split=hidden"]
    assert list(data_problems(compose(words).config)) == []
    (problem,) = data_problems(compose([*words, "evaluation.vote=2"]).config)
    assert problem.where == "evaluation.vote" and "are hidden" in problem.what and "infer.vote" in problem.remedy


def test_golds_that_are_there_are_imitated(arc: str, tmp_path: Path) -> None:
    path = tmp_path / "arc" / "t1.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"program": "def transform(grid):\n    return grid\n"}))
    for seed in range(20):
        config = compose(["+stage=sft", arc, f"data.seed={seed}"]).config
        held_out = any(task.id == "t1" for name in ("dev", "test") for task in build(config.data).splits()[name])
        assert [problem.what for problem in data_problems(config)] == (
            ["no task of split 'train' has a gold to imitate"] if held_out else []
        )


def baseline(folder: Path, *words: str) -> Path:
    config = compose(["+stage=grpo", *words])
    folder.mkdir()
    (folder / "config.yaml").write_text(to_yaml(config))
    manifest.begin(folder, "grpo", 0, [], "now")
    manifest.update(folder, data={"test": {"fingerprint": build(config.config.data).fingerprint("test")}})
    evaluation_path(folder, "after").parent.mkdir()
    evaluation_path(folder, "after").touch()
    return folder


def test_a_baseline_measured_in_another_way_is_told_before_anything_starts(tmp_path: Path, arc: str) -> None:
    folder = baseline(tmp_path / "run", arc)

    def problems(*words: str) -> list[str]:
        config = compose(["+stage=evaluate", f"evaluate.baseline={folder}", arc, *words]).config
        return [problem.what for problem in preflight_problems(config, False)]

    assert problems() == []
    assert problems("evaluation.tasks=3", "sandbox.workers=1") == ["evaluation.tasks differs"]
    for path in tmp_path.glob("arc/t*.json"):
        path.write_text(path.read_text().replace("4", "5"))
    assert problems() == ["it was evaluated on other tasks: those of 'test' are not the same"]
    evaluation_path(folder, "after").unlink()
    assert "it was not evaluated" in problems()


def test_a_reward_of_ones_own_without_terms_is_no_teachers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    parts = Path(__file__).parents[1] / "report" / "sick"
    config = compose(["+stage=grpo", "reward=constant", f"hydra.searchpath=[{parts}]", "data.limit=40"]).config
    assert not hasattr(config.reward, "terms") and [*data_problems(config)] == []
