"""Options of a cascade: who learns in which step, and what cannot work together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.config.compose import compose, compose_lenient
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny.options import CREDITS, MODES, Cascade, attempts

BASE = ["+stage=cascade"]


def faults(*words: str) -> list[str]:
    return [problem.where for problem in compose_lenient([*BASE, *words]).problems]


@given(st.sampled_from(MODES), st.sampled_from(CREDITS), st.integers(1, 5), st.integers(1, 30))
def test_somebody_learns_in_every_step(mode: str, credit: str, every: int, steps: int) -> None:
    options = Cascade(mode=mode, credit=credit, every_steps=every)
    assert all(options.learning(step) for step in range(steps))


def test_roles_take_turns_the_annotator_first() -> None:
    options = Cascade(mode="alternating", every_steps=2)
    assert [options.learning(step)[0][0] for step in range(7)] == list("aawwaaw")


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_composes(mode: str) -> None:
    assert faults(f"cascade.mode={mode}") == []


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["cascade.mode=alternating", "cascade.credit=annotator_only"], "cascade.credit"),
        (["cascade.mode=writer_on_cascade_reward", "cascade.credit=annotator_only"], "cascade.credit"),
        (["cascade.bodies=gold"], "cascade.bodies"),
        (["cascade.every_steps=3"], "cascade.every_steps"),
        (["cascade.resamples=3"], "cascade.resamples"),
        (["cascade.counterfactual=resampled"], "cascade.counterfactual"),
        (["cascade.mode=annotator_only", "cascade.credit=counterfactual"], "cascade.credit"),
        (["cascade.mode=alternating", "algorithm.max_steps=5"], "cascade.every_steps"),
        (["algorithm=dapo"], "algorithm"),
        (["algorithm=ppo"], "algorithm"),
        (["data=arc"], "data"),
        (["data.role=both"], "data.role"),
    ],
)
def test_what_cannot_work_is_told(words: list[str], where: str) -> None:
    assert where in faults(*words)


@pytest.mark.parametrize("words", [["+stage=cascade"], ["+stage=evaluate", "evaluate.cascade=model", "data=dafny"]])
def test_a_cascade_retries_with_its_environment(words: list[str]) -> None:
    assert attempts(compose([*words]).config) == 1
    found = compose([*words, "environment=retry", "environment.attempts=10"])
    assert attempts(found.config) == 10
    assert [one.where for one in compose_lenient([*words, "environment=edits"]).problems].count("environment") == 1


def test_the_attempts_of_inference_are_its_own() -> None:
    words = ["+stage=infer", "infer.cascade=model", "data=dafny", "infer.max_attempts=10"]
    assert attempts(compose(words).config) == 10
    assert "infer.cascade" in [one.where for one in compose_lenient([*words, "environment=retry"]).problems]


def test_the_node_exists_under_its_stage_alone() -> None:
    assert "cascade" in next(
        problem.where for problem in compose_lenient(["+stage=grpo", "cascade.mode=joint"]).problems
    )


def test_rollouts_of_a_cascade_are_not_judged_one_by_one(tmp_path) -> None:
    (tmp_path / "config.yaml").write_text("stage: cascade\nseed: 0\n")
    config = compose_lenient(["+stage=rescore", f"rescore.run={tmp_path}"]).config
    assert [need.problem.where for need in missing_artifacts(config)] == ["rescore.run"]


def test_a_role_without_weights_is_told(tmp_path) -> None:
    config = compose_lenient(["+stage=cascade", f"cascade.writer={tmp_path}"]).config
    assert "cascade.writer" in [need.problem.where for need in missing_artifacts(config)]


@pytest.mark.parametrize("stage", ["evaluate", "infer"])
def test_a_trained_cascade_needs_dafny_wherever_it_is_used(stage) -> None:
    with pytest.raises(InputError, match="a cascade writes and annotates Dafny"):
        compose([f"+stage={stage}", f"{stage}.cascade=model"])
    compose([f"+stage={stage}", f"{stage}.cascade=model", "data=dafny"])
