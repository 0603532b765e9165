"""A command line becomes a typed configuration, or a report of all its problems."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from rlvr_exp.config.algorithm import GRPO, SFT
from rlvr_exp.config.compose import compose, compose_lenient
from rlvr_exp.config.load import build, load, to_yaml
from rlvr_exp.core.errors import InputError, InputProblem


def problems(*words: str) -> dict[str, InputProblem]:
    """The problems of a command line, by location."""
    found = compose_lenient(words).problems
    assert len({problem.where for problem in found}) == len(found), found
    return {problem.where: problem for problem in found}


def test_defaults_are_typed() -> None:
    config = compose(["+stage=grpo"]).config
    assert isinstance(config.algorithm, GRPO) and config.algorithm._target_ == "rlvr_exp.algorithms.grpo.GRPO"
    assert config.stage == "grpo" and config.seed == 0 and config.data.prompt.style == "bare"


def test_overrides_reach_every_depth() -> None:
    words = ["+stage=grpo", "seed=3", "optimizer.lr=1", "data.prompt.shots=2", "reward.terms.length.weight=0"]
    config = compose(words).config
    assert (config.seed, config.optimizer.lr, config.data.prompt.shots) == (3, 1.0, 2)
    assert isinstance(config.optimizer.lr, float) and config.reward.terms["length"].weight == 0


def test_stage_chooses_its_algorithm_wherever_it_stands() -> None:
    assert isinstance(compose(["seed=1", "+stage=sft"]).config.algorithm, SFT)


def test_every_mistake_is_told_at_once() -> None:
    found = problems(
        "+stage=grp",
        "model=tny",
        "algorithm.max_stpes=3",
        "algorithm.loss=dap",
        "algorithm.trl.bta=1",
        "seed=many",
        "hydra.run.dir=x",
        "a=[",
        "evaluation.samples=0",
    )
    assert found["stage"].suggestion == "+stage=grpo" and found["model"].suggestion == "model=tiny"
    assert found["algorithm.max_stpes"].suggestion == "algorithm.max_steps"
    assert found["algorithm.loss"].suggestion == "dapo" and "dr_grpo" in found["algorithm.loss"].allowed
    assert "beta" in found["algorithm.trl.bta"].suggestion
    assert found["seed"].what == "wrong type" and "whole number" in found["seed"].allowed
    assert {"hydra.run.dir=x", "a=[", "evaluation.samples"} < set(found) and len(found) == 9


def test_compose_raises_all_of_them() -> None:
    with pytest.raises(InputError) as caught:
        compose(["+stage=grpo", "seed=x", "optimizer.lr=-1"])
    assert [problem.where for problem in caught.value.problems] == ["optimizer.lr", "seed"]


@pytest.mark.parametrize("word", ["+algorithm.typo=1", "++algorithm.typo=1", "algorithm.typo=1"])
def test_an_added_key_is_refused_like_any_unknown_one(word: str) -> None:
    assert problems("+stage=grpo", word)["algorithm.typo"].what == "unknown key"


def test_a_key_of_another_node_is_found() -> None:
    found = problems("+stage=grpo", "lr=1", "max_steps=3")
    assert found["lr"].suggestion == "optimizer.lr" and found["max_steps"].suggestion == "algorithm.max_steps"


@pytest.mark.parametrize(
    ("words", "where", "remedy"),
    [
        (["stage=grpo"], "stage=grpo", "+stage=grpo"),
        (["+stage=grpo", "+model=tiny"], "+model=tiny", "model=tiny"),
        (["+stage=grpo", "+seed=1"], "+seed=1", "seed=1"),
        (["+stage=grpo", "~seed"], "~seed", "seed=VALUE"),
        (["+stage=grpo", "seed=1,2"], "seed=1,2", "--multirun"),
        (["+stage=grpo", "run.searchpath=[x]"], "run.searchpath=[x]", "hydra.searchpath"),
        (["+stage=grpo", "algorithm=sft"], "algorithm", "drop it, or +stage=sft"),
        (["+stage=grpo", "algorithm.group_size=1"], "algorithm.group_size", "2 or more"),
        (
            ["+stage=grpo", "algorithm=pass_k", "algorithm.reference_sync_steps=5"],
            "algorithm.reference_sync_steps",
            "kl_coef above 0",
        ),
        (["+stage=grpo", "model.dtype=float16"], "model.dtype", ""),
        (["+stage=compare"], "compare.runs", "compare.runs=["),
        (["+stage=[grpo,sft]"], "stage", "+stage=NAME"),
        (["model=tiny"], "stage", "+stage=NAME"),
        (["+stage=grpo", "seed=${nothing.there}"], "seed", ""),
        (["+stage=grpo", "data.dev_fraction=0.7", "data.test_fraction=0.7"], "data.dev_fraction", ""),
    ],
)
def test_each_mistake_names_its_place_and_the_way_out(words: list[str], where: str, remedy: str) -> None:
    found = problems(*words)
    assert list(found) == [where] and remedy in found[where].remedy


WITHOUT_UPDATES = [
    "optimizer.lr=1",
    "optimizer=adamw",
    "algorithm.max_steps=1",
    "reward=normalized",
    "run.select.times=0",
]


@pytest.mark.parametrize("word", WITHOUT_UPDATES)
def test_words_without_effect_are_refused(word: str) -> None:
    found = problems("+stage=evaluate", word)
    assert found[word].what == "has no effect under +stage=evaluate"


def test_options_of_a_stage_exist_only_there() -> None:
    assert problems("+stage=grpo", "evaluate.baseline=x")["evaluate"].what == "exists only under +stage=evaluate"
    assert compose(["+stage=evaluate", "evaluate.baseline=x"]).config.evaluate.baseline == "x"


def test_terms_are_added_and_deleted_by_name() -> None:
    term = "+reward.terms.again={_target_: rlvr_exp.rewards.terms.Length, scale_tokens: 3}"
    terms = compose(["+stage=grpo", "~reward.terms.length", term]).config.reward.terms
    assert "length" not in terms and terms["again"].scale_tokens == 3
    assert "~reward.terms.nothing" in problems("+stage=grpo", "~reward.terms.nothing")


def test_a_class_of_another_group_is_refused() -> None:
    found = problems("+stage=grpo", "verifier._target_=rlvr_exp.rewards.terms.Length")
    assert found["verifier._target_"].what == "a class of another group"
    found = problems("+stage=grpo", "verifier._target_=rlvr_exp.verifiers.python_io.PythonOI")
    assert found["verifier._target_"].suggestion == "rlvr_exp.verifiers.python_io.PythonIO"


def test_a_refused_value_does_not_make_a_second_problem() -> None:
    assert set(problems("+stage=grpo", "algorithm.kl_coef=x", "algorithm.reference_sync_steps=5")) == {
        "algorithm.kl_coef"
    }


@pytest.mark.parametrize("order", [["+stage=grpo", "+experiment=quick"], ["+experiment=quick", "+stage=grpo"]])
def test_quick_follows_the_stage_in_any_order(order: Sequence[str]) -> None:
    config = compose(order).config
    assert config.algorithm.max_steps < 10 and config.evaluation.tasks < 100


def test_command_line_beats_the_experiment() -> None:
    assert compose(["+stage=grpo", "+experiment=quick", "algorithm.max_steps=77"]).config.algorithm.max_steps == 77


@pytest.mark.parametrize("stage", ["sft", "grpo", "evaluate"])
def test_a_written_configuration_reads_back_the_same(tmp_path: Path, stage: str) -> None:
    checked = compose([f"+stage={stage}", "seed=5", "model.name=${data.path}", "data.path=abc"])
    (tmp_path / "config.yaml").write_text(to_yaml(checked))
    assert load(tmp_path / "config.yaml") == checked.config and checked.config.model.name == "abc"


def test_only_what_the_stage_reads_is_written() -> None:
    text = to_yaml(compose(["+stage=evaluate"]))
    assert "\nevaluate:" in text and "\noptimizer:" not in text and "\ncompare:" not in text


@pytest.mark.parametrize("text", ["- a", "a: [", "stage: grpo\nseed: x"])
def test_a_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(InputError):
        load(tmp_path / "config.yaml")


def test_build_makes_the_objects_below_first() -> None:
    reward = build(compose(["+stage=grpo", "reward.terms.length.weight=0"]).config.reward)
    assert "length" not in reward.terms and reward.terms["all_passed"].weight == 1.0


def test_a_stage_of_a_users_own_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "stage").mkdir()
    (tmp_path / "stage" / "mine.yaml").write_text("# @package _global_\nstage: grop\n")
    (problem,) = compose_lenient(["+stage=mine", f"hydra.searchpath=[{tmp_path}]"]).problems
    assert problem.where == "stage" and "mine.yaml" in problem.what and problem.suggestion == "grpo"
