"""Words of a command line that a shell or a habit has spoiled are refused with the word that was meant."""

import shlex

import pytest

from rlvr_exp.config.compose import compose_lenient
from rlvr_exp.config.words import parse
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.runs.sweep import expand


def problem(*words: str) -> InputProblem:
    (found,) = compose_lenient(["+stage=grpo", *words]).problems
    return found


@pytest.mark.parametrize("value", ["/data/modèle", "/data/a,b", "/data/a=b", "/data/a(b", "/data/it's", "/data/ä ö"])
def test_a_path_with_special_characters_comes_back_quoted(value: str) -> None:
    remedy = problem(f"data.path={value}").remedy
    shown = remedy[remedy.index("'data.path=") :]
    (word,) = shlex.split(shown[: shown.rindex("'") + 1])
    (override,) = parse([word]).overrides
    assert override.value() == value


def test_a_list_keeps_its_brackets() -> None:
    assert "'hydra.searchpath=[\"/é\"]'" in problem("hydra.searchpath=[/é]").remedy


def test_a_value_with_a_blank_is_put_together() -> None:
    assert "'model.path=\"/my model\"'" in problem("model.path=/my", "model").remedy


@pytest.mark.parametrize("word", ["model.path=", "seed=", "+reward.terms.mine="])
def test_nothing_after_the_sign_is_refused(word: str) -> None:
    found = problem(word)
    assert found.what == "nothing is given" and "variable" in found.remedy
    with pytest.raises(InputError, match="nothing is given"):
        expand(["+stage=grpo", "seed=1,2", word])
    assert compose_lenient(["+stage=grpo", "model.path=''"]).problems == ()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("group_size", "algorithm.group_size"),
        ("learning_rate", "optimizer.lr"),
        ("steps", "algorithm.max_steps"),
        ("modle", "model"),
        ("path", "model.path or model.adapter.path or data.path or cache.path"),
        ("frobnicate", ""),
    ],
)
def test_a_bare_key_is_looked_for_in_all_nodes(name: str, meant: str) -> None:
    assert problem(f"{name}=1").suggestion == meant


@pytest.mark.parametrize("node", ["run", "sandbox", "roles", "reward.terms", "data.prompt"])
def test_a_value_in_the_place_of_a_node_is_refused(node: str) -> None:
    found = problem(f"{node}=3")
    assert found.what == "a value where a node belongs" and found.suggestion == f"{node}.NAME=VALUE"


@pytest.mark.parametrize(
    ("words", "remedy"),
    [(["+stage=ppo", "algorithm=grpo"], "+stage=grpo"), (["+stage=grpo", "algorithm=sft"], "+stage=sft")],
)
def test_an_algorithm_of_another_stage_is_refused(words: list[str], remedy: str) -> None:
    (found,) = compose_lenient(words).problems
    assert found.where == "algorithm" and found.remedy.endswith(remedy)
