"""What differs for a role: the top's nodes below what is given, whole nodes of another class, and what cannot differ."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from rlvr_exp.config.algorithm import ReinforcementLearning
from rlvr_exp.config.compose import compose, compose_lenient
from rlvr_exp.config.load import load, to_yaml
from rlvr_exp.config.roles import of_role, role_names
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError
from rlvr_exp.records.manifest import trajectory_options

CASCADE = "+stage=cascade"


def composed(*words: str) -> Config:
    return compose([CASCADE, *words]).config


def problems(*words: str) -> dict[str, str]:
    return {one.where: str(one) for one in compose_lenient([CASCADE, *words]).problems}


def test_a_role_without_options_has_the_tops() -> None:
    config = composed()
    assert config.roles == {} and of_role(config, "writer") == config
    assert role_names(config) == ("writer", "annotator")


def test_what_is_given_lies_over_the_top() -> None:
    config = composed("optimizer.lr=0.5", "optimizer.beta2=0.7", "roles.annotator.optimizer.lr=0.25")
    assert of_role(config, "writer").optimizer == config.optimizer
    own = of_role(config, "annotator").optimizer
    assert (own.lr, own.beta2) == (0.25, 0.7)
    assert of_role(config, "annotator").algorithm is config.algorithm


def test_nested_options_and_terms_of_a_reward() -> None:
    config = composed("reward=dafny_partial", "roles.annotator.reward.terms.parses.weight=0.5")
    top, own = config.reward.terms, of_role(config, "annotator").reward.terms
    assert own["parses"].weight == 0.5 != top["parses"].weight and own.keys() == top.keys()
    assert own["resolves"] == top["resolves"]


def test_another_option_of_a_group_is_whole_but_for_what_is_the_runs() -> None:
    words = "algorithm.max_steps=7", "algorithm.temperature=0.5", "roles.writer.algorithm=rloo"
    config = composed(*words, "reward=dafny_partial", "roles.annotator.reward=binary")
    own = of_role(config, "writer").algorithm
    assert own._target_.endswith("RLOO") and own.max_steps == 7
    assert own.prompts_per_step == config.algorithm.prompts_per_step
    assert own.temperature == ReinforcementLearning.temperature
    assert set(of_role(config, "annotator").reward.terms) == {"all_passed"}
    partial = of_role(composed("roles.annotator.reward=dafny_partial"), "annotator").reward.terms
    assert set(partial) == {"all_passed", "parses", "resolves", "obligations"}, "an option that extends another"


WORDS = (
    ("roles.annotator.optimizer.lr=0.25",),
    ("roles.writer.algorithm=rloo", "roles.annotator.reward=default", "roles.writer.optimizer=sgd"),
    ("roles.annotator.model.max_completion_tokens=9", "roles.writer.model.adapter.rank=3", "model=tiny_lora"),
)


@pytest.mark.parametrize("words", WORDS)
def test_it_is_written_as_what_differs_and_reads_back_the_same(tmp_path: Path, words: Sequence[str]) -> None:
    checked = compose([CASCADE, *words])
    (tmp_path / "config.yaml").write_text(to_yaml(checked))
    assert load(tmp_path / "config.yaml") == checked.config
    longer = yaml.safe_load(to_yaml(compose([CASCADE, *words, "algorithm.max_steps=99"])))
    assert trajectory_options(longer) == trajectory_options(yaml.safe_load(to_yaml(checked))), "a run may be extended"


@pytest.mark.parametrize("path", [["roles.teacher.model.path=x"], ["roles.teacher.model.name=OWNER/NAME"]])
def test_a_teacher_is_written_whole_since_it_has_nothing_of_its_student(tmp_path: Path, path: list[str]) -> None:
    own = ["roles.teacher.model.dtype=bfloat16", "roles.teacher.model.max_prompt_tokens=77"]
    words = ["+stage=distill", *path, *own, "model.dtype=bfloat16", "model.max_prompt_tokens=77"]
    checked = compose_lenient(words)
    (tmp_path / "config.yaml").write_text(to_yaml(checked))
    values = yaml.safe_load((tmp_path / "config.yaml").read_text())
    assert values["roles"]["teacher"]["model"]["dtype"] == "bfloat16"
    assert load(tmp_path / "config.yaml") == checked.config
    assert checked.config.roles["teacher"].model.max_prompt_tokens == 77


def test_what_equals_the_top_is_not_written() -> None:
    checked = compose([CASCADE, "optimizer.lr=0.5", "roles.writer.optimizer.lr=0.5"])
    assert yaml.safe_load(to_yaml(checked))["roles"] == {}


@pytest.mark.parametrize(
    ("words", "where", "told"),
    [
        (("roles.anotator.optimizer.lr=1",), "roles.anotator", "writer, annotator"),
        (("roles.writer.optimizer.lrr=1",), "roles.writer.optimizer.lrr", "roles.writer.optimizer.lr"),
        (("roles.writer.optimizer.lr=x",), "roles.writer.optimizer.lr", "a number"),
        (("roles.writer.algorithm.max_steps=3",), "roles.writer.algorithm.max_steps", "40"),
        (("roles.writer.reward=binary",), "roles.writer.reward", "roles.annotator.reward"),
        (("roles.writer.algorithm=sft",), "roles.writer.algorithm", "not an algorithm of +stage=cascade"),
        (("roles.writer.algorithm=dapo",), "roles.writer.algorithm", "do not wait"),
        (("roles.writer.model.quantization=4bit",), "roles.writer.model.quantization", "take no gradient"),
        (("model=tiny_lora", "roles.writer.model.dtype=bfloat16"), "roles.writer.model.dtype", "share one base"),
        (("roles.writer.model=tiny_dafny_cascade",), "roles.writer.model", "roles.writer.model.NAME=VALUE"),
        (("roles.writer=3",), "roles.writer", "roles.writer.NAME=VALUE"),
    ],
)
def test_what_cannot_be_is_refused_by_its_path(words: Sequence[str], where: str, told: str) -> None:
    found = problems(*words)
    assert told in found[where], found


def test_a_preset_of_a_role_gives_it_the_model_and_its_rate() -> None:
    words = ["+stage=adversarial", "roles.tester.model=tiny_tester"]
    own = compose(words).config.roles["tester"]
    assert own.model is not None and own.model.embedded == "tiny_tester"
    large = compose([*words[:1], "roles.tester.model=qwen_coder_1_5b"]).config
    assert large.roles["tester"].model.name == "Qwen/Qwen2.5-Coder-1.5B-Instruct"
    assert large.roles["tester"].optimizer.lr == 1e-6 and large.optimizer.lr != 1e-6
    kept = compose([*words[:1], "roles.tester.model=qwen_coder_1_5b", "roles.tester.optimizer.lr=1e-5"]).config
    assert kept.roles["tester"].optimizer.lr == 1e-5


def test_one_role_has_the_top_nodes_alone() -> None:
    (problem,) = compose_lenient(["+stage=grpo", "roles.policy.optimizer.lr=1"]).problems
    assert problem.where == "roles.policy" and "one role" in problem.what


def test_a_stage_that_does_not_train_reads_the_models_alone() -> None:
    words = "+stage=evaluate", "data=dafny", "verifier=dafny", "evaluate.cascade=model"
    (problem,) = compose_lenient(
        [*words, "roles.writer.optimizer.lr=1", "roles.writer.model.max_prompt_tokens=9"]
    ).problems
    assert problem.where == "roles.writer.optimizer"


def test_a_cascade_of_adapters_refuses_to_move_its_references_once() -> None:
    words = ["+stage=cascade", "model.adapter.kind=lora", "algorithm.kl_coef=0.1", "algorithm.reference_sync_steps=2"]
    with pytest.raises(InputError) as refused:
        compose(words)
    found = [one for one in refused.value.problems if one.where == "algorithm.reference_sync_steps"]
    assert len(found) == 1 and "cascade" in found[0].what


TEACHER = "roles.teacher.engine.url=http://HOST:8000/v1"


def test_a_teacher_on_a_server_is_complete() -> None:
    config = compose(["+stage=distill", TEACHER]).config
    engine = config.roles["teacher"].engine
    assert engine is not None and engine.url.endswith(":8000/v1") and config.roles["teacher"].model is None


@pytest.mark.parametrize(
    ("words", "where", "told"),
    [
        ([TEACHER, "roles.teacher.model.embedded=tiny"], "roles.teacher", "drop roles.teacher.model or"),
        ([TEACHER, "algorithm.temperature=0.7"], "algorithm.temperature", "got: 0.7"),
        ([TEACHER, "algorithm.distillation_top_k=0"], "algorithm.distillation_top_k", "some tokens, not all"),
        (["roles.teacher.engine.model=x"], "roles.teacher.engine.url", "needs an address"),
        (["roles.teacher.engine.url=HOST"], "roles.teacher.engine.url", "no address"),
    ],
)
def test_a_server_that_cannot_teach_is_refused(words: Sequence[str], where: str, told: str) -> None:
    found = {one.where: str(one) for one in compose_lenient(["+stage=distill", *words]).problems}
    assert told in found[where]


def test_another_role_has_no_engine_of_its_own() -> None:
    assert "share its engine" in problems("roles.writer.engine.url=http://HOST:8000/v1")["roles.writer.engine"]


@pytest.mark.parametrize(
    ("words", "where", "told"),
    [
        (["+stage=grpo", "algorithm=sdpo", "environment=retry"], "algorithm", "environment=single_turn"),
        ([CASCADE, "roles.writer.algorithm=distillation"], "roles.writer.algorithm", "the one policy of a run"),
        (["+stage=grpo", "algorithm=sdpo", "algorithm.positive_weight=0.5"], "algorithm.positive_weight", "no rewards"),
        (["+stage=distill", TEACHER, "algorithm.clip_low=0.1"], "algorithm.clip_low", "distillation_weight below 1"),
        (["+stage=distill", TEACHER, "algorithm.correction=none"], "algorithm.correction", "the loss has no rewards"),
    ],
)
def test_a_method_with_a_teacher_is_refused_if_it_cannot_teach(words: Sequence[str], where: str, told: str) -> None:
    found = {one.where: str(one) for one in compose_lenient(words).problems}
    assert told in found[where]
