"""Few held-out tasks: the plan and the start say how little they show, and the command that they offer works."""

import json
import shlex
from pathlib import Path

import pytest

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import to_yaml
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.domains.dafny.tasks import DafnyDomain
from rlvr_exp.launch.execute import Outcome
from rlvr_exp.launch.preflight import rl_split
from rlvr_exp.main import main
from rlvr_exp.records import manifest
from rlvr_exp.stages.shared.start import sample_size


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


@pytest.mark.parametrize(("tasks", "few"), [(29, True), (30, False)])
def test_fewer_than_thirty_tasks_are_warned_of(tasks: int, few: bool) -> None:
    found = warnings("+stage=evaluate", f"evaluation.tasks={tasks}")
    assert any(text.startswith(f"only {tasks} tasks of split 'test' are measured") for text in found) is few


def test_an_evaluation_of_few_tasks_names_no_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = said(capsys, "+stage=evaluate", "data=code", own(tmp_path, 60), "evaluation.tasks=4", "run.dry=true")
    assert "only 4 tasks of split 'test' are measured" in plan and "study=" not in plan


def warnings(*words: str) -> list[str]:
    return [text for name, text in sample_size(compose(words).config, words) if name == "warning"]


def started(folder: Path, *words: str) -> Path:
    """A run directory with the files that a start writes."""
    run = folder / "run"
    run.mkdir()
    (run / "config.yaml").write_text(to_yaml(compose(words)))
    manifest.begin(run, "grpo", 0, ["python", "-m", "rlvr_exp", *words], "")
    return run


def test_the_cross_validation_of_a_resumed_run_is_that_of_its_own_command(tmp_path: Path) -> None:
    words = ["+stage=grpo", "data=code", own(tmp_path), "run.log_every_steps=2", "algorithm.max_steps=2"]
    run = started(tmp_path, *words)
    longer = ["+stage=grpo", "data=code", own(tmp_path), "algorithm.max_steps=4"]
    assert warnings(f"run.resume={run}", "algorithm.max_steps=4") == warnings(*longer)
    assert warnings("run.resume=auto", f"run.dir={run}") == warnings(*words)
    manifest.mark_resumed(run, run, ["python", "-m", "rlvr_exp", f"run.resume={run}", "algorithm.max_steps=4"], "")
    (run / "config.yaml").write_text(to_yaml(compose(longer)))
    assert warnings(f"run.resume={run}") == warnings(*longer)
    assert any("study=cross_validation" in text for text in warnings(*longer))


def test_no_command_is_offered_if_that_of_a_resumed_run_is_not_known(tmp_path: Path) -> None:
    run = started(tmp_path, "+stage=grpo", "data=code", own(tmp_path))
    manifest.update(run, command=["python", "-m", "rlvr_exp", "+stage=grpo", "data=code"])
    (few,) = [text for text in warnings(f"run.resume={run}") if "prompts" not in text]
    assert "only 1 task of split 'test'" in few
    (run / manifest.NAME).unlink()
    assert not any("study=" in text for text in warnings(f"run.resume={run}"))


def test_a_step_that_repeats_tasks_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["+stage=grpo", "data=code", own(tmp_path), "run.select.times=0"]
    repeats = "each step repeats tasks: it takes 9 prompts, and split 'train' has 8 tasks"
    assert repeats in said(capsys, *words, "algorithm.prompts_per_step=9", "run.dry=true")
    assert not any("each step repeats" in text for text in warnings(*words, "algorithm.prompts_per_step=8"))


def test_no_best_step_is_promised_without_tasks_to_choose_it_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["+stage=grpo", "data=code", own(tmp_path, 2), "algorithm.max_steps=100", "run.dry=true"]
    plan = said(capsys, *words)
    assert "best step:   none, the run ends with its last: the data has no split 'dev'" in plan
    assert "best step:   lowest train/loss\n" in said(
        capsys, *words, "run.select.metric=train/loss", "run.select.mode=min"
    )
    assert "of 'dev'" in said(capsys, *words[:2], own(tmp_path), *words[3:])


BODY = "{\n  r := a + a;\n}"
ROW = {"header": "method Twice(a: int) returns (r: int)\n", "spec": "  ensures r == 2 * a\n", "body": BODY}


@pytest.mark.parametrize(("files", "asked"), [(("train", "practice"), "practice"), (("train",), "train")])
def test_those_of_practice_where_the_data_has_some(tmp_path: Path, files: tuple[str, ...], asked: str) -> None:
    for name in files:
        row = {"id": name, "annotated_body": BODY, **ROW}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    domain = DafnyDomain(str(tmp_path), dev_fraction=0, test_fraction=0)
    assert list(domain.splits()) == list(files) and rl_split(domain) == asked


def test_a_domain_without_such_a_split_asks_what_it_imitates() -> None:
    assert rl_split(Arc(limit=2)) == "train"
