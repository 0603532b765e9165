"""A study from its options to its record, with an executor that plants runs: what is reused, what fails, what is refused."""

import json
from pathlib import Path

import optuna
import pytest
from planted import Planter, context_of

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.records import manifest
from rlvr_exp.runs import study as places
from rlvr_exp.runs.executors import Local
from rlvr_exp.runs.schedule import run_study, study_plan

WORDS = ["+stage=study", "study=ablation", "study.only=[with_kl]", "study.seeds=[0,1]", "study.metric=pass_at_1_greedy"]


def test_a_failed_run_is_told_and_runs_again_while_the_others_are_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, notes = compose(WORDS).config, list[str]()
    first = Planter(monkeypatch, failing="with_kl_seed0")
    with pytest.raises(GuardStop, match="1 of 4 runs did not complete: with_kl_seed0"):
        run_study(config, context_of(tmp_path / "s", notes, WORDS))
    assert len(first.ran) == 4 and any("see printed/with_kl_seed0.txt; 1 left" in note for note in notes)
    assert json.loads((tmp_path / "s" / "study.json").read_text())["jobs"][2]["status"] == "stopped"
    second = Planter(monkeypatch)
    result = run_study(config, context_of(tmp_path / "s", notes, WORDS))
    assert second.ran == ["with_kl_seed0"] and result.metrics == {"runs": 4, "reused": 3, "failed": 0}
    elsewhere = compose([*WORDS, f"study.reuse=[{tmp_path}]", "study.only=[with_kl,masked_groups]"]).config
    third = Planter(monkeypatch)
    assert run_study(elsewhere, context_of(tmp_path / "t", notes, WORDS)).metrics["reused"] == 4
    assert third.ran == ["masked_groups_seed0", "masked_groups_seed1"]
    plan = study_plan(compose([*WORDS, f"study.reuse=[{tmp_path}]", "study.seeds=[0,7]"]).config)
    assert "4 runs, 2 there already" in plan and f"there already: {tmp_path / 's' / 'full_seed0'}" in plan
    assert "to run, 1 at a time: 720 steps on 184,320 completions" in plan and "about 6 s" in plan


def test_a_run_that_reached_its_end_has_completed_whatever_became_of_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = list[str]()
    Planter(monkeypatch, lost="with_kl_seed0")
    result = run_study(compose(WORDS).config, context_of(tmp_path, notes, WORDS))
    assert result.metrics == {"runs": 4, "reused": 0, "failed": 0}
    assert any("with_kl_seed0: completed" in note and "; see " not in note for note in notes)


def test_a_study_that_was_changed_leaves_the_runs_of_before_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Planter(monkeypatch)
    run_study(compose(WORDS).config, context_of(tmp_path, [], WORDS))
    changed = compose([*WORDS, 'study.words=["optimizer.lr=1e-5"]']).config
    again = Planter(monkeypatch)
    assert run_study(changed, context_of(tmp_path, [], WORDS)).metrics == {"runs": 4, "reused": 0, "failed": 0}
    assert len(again.ran) == 4 and len([*tmp_path.glob("full_seed0_*")]) == 1


@pytest.mark.parametrize("change", ["algorithm.max_steps=100", "data.limit=2000", "weights"])
def test_runs_that_others_cannot_go_on_from_are_left_alone(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*WORDS, "study.seeds=[0]"]
    Planter(monkeypatch)
    run_study(compose(words).config, context_of(tmp_path, [], words))
    if change == "weights":
        manifest.update(tmp_path / "full_seed0", start={"model": "another"})
    else:
        words.append(f'study.words=["{change}"]')
    again = Planter(monkeypatch)
    run_study(compose(words).config, context_of(tmp_path, [], words))
    assert len(again.ran) == (1 if change == "weights" else 2) and len([*tmp_path.glob("full_seed0_*")]) == 1


def test_a_run_that_is_refused_has_not_completed_though_one_of_before_has(tmp_path: Path, monkeypatch) -> None:
    words = [*WORDS, "study.seeds=[0]"]
    Planter(monkeypatch)
    run_study(compose(words).config, context_of(tmp_path, [], words))
    monkeypatch.setattr(places, "_free", lambda directory, *_: directory)
    fewer = [*words, 'study.words=["algorithm.max_steps=100"]']
    monkeypatch.setattr(Local, "run", lambda _, feed, __: [feed.ended(found[0], 2) for found in iter(feed.next, None)])
    with pytest.raises(InputError, match="2 of 2 runs did not complete: full_seed0, with_kl_seed0"):
        run_study(compose(fewer).config, context_of(tmp_path, [], words))


def test_what_its_options_cannot_answer_is_recorded_and_refused(tmp_path: Path, monkeypatch) -> None:
    words = [*WORDS[:4], "study.metric=validity"]
    Planter(monkeypatch, failing="with_kl_seed1")
    with pytest.raises(GuardStop, match="1 of 4 runs did not complete"):
        run_study(compose(words).config, context_of(tmp_path, [], words))
    answer = json.loads((tmp_path / "study.json").read_text())["answer"]
    assert answer == ["Cannot tell: study.metric: no run measured it after training."]
    Planter(monkeypatch)
    with pytest.raises(InputError, match="study.metric: no run measured it"):
        run_study(compose(words).config, context_of(tmp_path, [], words))


def test_a_run_that_ends_with_weights_chosen_otherwise_is_another_run(tmp_path: Path, monkeypatch) -> None:
    Planter(monkeypatch)
    run_study(compose(WORDS).config, context_of(tmp_path, [], WORDS))
    last = [*WORDS, f"study.reuse=[{tmp_path}]", 'study.words=["run.select.restore=false"]']
    assert "4 runs, 0 there already" in study_plan(compose(last).config)


def test_a_folder_of_others_is_no_run(tmp_path: Path) -> None:
    for name, text in (("a", "{}"), ("b", '{"status": "completed", "stage": "grpo"}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text(text)
    assert "4 runs, 0 there already" in study_plan(compose([*WORDS, f"study.reuse=[{tmp_path}]"]).config)


def test_runs_that_train_nothing_are_run_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cooler = ['study.command=["+stage=evaluate"]', "study.equal=none", 'study.arms.cool=["evaluation.temperature=0.5"]']
    words = [*WORDS[:2], *WORDS[4:], *cooler, "study.only=[cool]", f"run.dir={tmp_path}"]
    config = compose(words).config
    first = Planter(monkeypatch)
    run_study(config, context_of(tmp_path, [], words))
    assert len(first.ran) == 6 and not any("remember" in word for word in first.words)
    assert "6 runs, 6 there already" in study_plan(config)
    assert "0 steps on 0 completions, 3,600 measured" in study_plan(compose([*words[:-1], "run.dir=new"]).config)
    second = Planter(monkeypatch)
    assert run_study(config, context_of(tmp_path, [], words)).metrics["reused"] == 6 and second.ran == []


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (['study.arms.bad=["optimizer.lrr=1"]', "study.only=[]"], "arm bad: optimizer.lrr: unknown key"),
        (['study.command=["+stage=verify"]'], "no stage for the runs of a study"),
        (['study.words=["+experiment=none"]'], "study, arm full"),
        (['study.reuse=["nowhere"]'], "study.reuse: no such folder"),
    ],
)
def test_what_cannot_work_is_told_before_any_run(words: list[str], found: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=found):
        run_study(compose([*WORDS, *words]).config, context_of(tmp_path, [], WORDS))


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["study.seeds=[1,1]"], "study.seeds"),
        (['study.words=["seed=1"]'], "the study says that itself"),
        (["study.only=[with_kll]"], "study.only"),
        (["study.arms.full=[]"], "no name of an arm"),
        (["study.metric=pass@1"], "study.metric: no evaluation reports it"),
        (["study=transfer", "study.equal=seconds"], "study.equal: unknown key"),
        (["study=sample_complexity", "study.metric=pass_at_1"], "study.metric: unknown key"),
    ],
)
def test_options_that_cannot_work(words: list[str], found: str) -> None:
    with pytest.raises(InputError, match=found):
        compose([*WORDS, *words])


def test_all_algorithms_are_planned_with_as_many_rollouts() -> None:
    plan = study_plan(compose(["+stage=study", "study=algorithms", "study.seeds=[0]"]).config)
    arms = [line.split() for line in plan.splitlines() if "_seed0 " in line]
    assert len(arms) == 10 and {words[words.index("completions,") - 1] for words in arms} == {"92,160"}


SPACE = "study.space.optimizer.lr={uniform:[1e-4,1e-3]}"
SEARCHED = [
    "+stage=study",
    "study=search",
    "study.seeds=[0]",
    "study.trials=2",
    "study.metric=pass_at_1_greedy",
    "study.pruner=none",
    "study.confirm=[7]",
]


def passing(name: str, task: int) -> bool:
    return task % 3 < (2 if name.startswith(("trial_001", "best")) else 1)


@pytest.mark.slow
def test_a_second_command_finds_the_trials_and_asks_for_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = compose([*SEARCHED, SPACE]).config
    first = Planter(monkeypatch, passes=passing)
    result = run_study(config, context_of(tmp_path, [], SEARCHED))
    assert first.ran == ["trial_000_default_seed0", "trial_001_seed0", "default_seed7", "best_seed7"]
    assert result.metrics == {"runs": 4, "reused": 0, "failed": 0}
    answer = json.loads((tmp_path / "study.json").read_text())["answer"]
    assert "on seeds that no trial had (7): Difference on pass_at_1_greedy beyond chance" in answer[0]
    second = Planter(monkeypatch, passes=passing)
    again = run_study(config, context_of(tmp_path, [], SEARCHED))
    assert second.ran == [] and again.metrics == {"runs": 4, "reused": 4, "failed": 0}
    assert json.loads((tmp_path / "study.json").read_text())["answer"] == answer
    (study,) = optuna.get_all_study_summaries(f"sqlite:///{tmp_path / 'search.db'}")
    assert study.n_trials == 2


def test_a_plan_lists_as_many_runs_as_there_may_be(tmp_path: Path) -> None:
    plan = study_plan(compose([*SEARCHED, SPACE, f"run.dir={tmp_path}"]).config)
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
    config = compose([*SEARCHED, space]).config
    with pytest.raises(InputError, match=found):
        study_plan(config)
    with pytest.raises(InputError, match=found):
        run_study(config, context_of(tmp_path, [], SEARCHED))
    assert not (tmp_path / "search.db").exists()
