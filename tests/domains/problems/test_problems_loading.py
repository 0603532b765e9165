"""From the checkpoint of a solver and a tester, or of a solver alone, to an engine as in its run."""

import shutil
from pathlib import Path

import pytest

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import to_yaml
from rlvr_exp.config.stage_options import Infer
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.problems import reasoning
from rlvr_exp.domains.problems.engine import Solving, from_checkpoint, reasoning_chain
from rlvr_exp.domains.problems.options import Adversarial, Reasoning

SOLVER = Path(__file__).parents[3] / "rlvr_exp" / "assets" / "models" / "tiny_solver"
ROW = {"text": "Write size(x). It returns x without its sign.", "entry_point": "size"}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A run of two roles, as its files say."""
    place = tmp_path_factory.mktemp("run")
    step = place / "checkpoints" / "step_000001"
    for role in ("solver", "tester"):
        shutil.copytree(SOLVER, step / role)
    words = [
        "+stage=infer",
        "data=problems",
        "environment=adversarial",
        "environment.tests=3",
        "data.prompt.style=instruct",
    ]
    words += ["model.max_completion_tokens=9", "roles.tester.model.max_completion_tokens=7"]
    (place / "config.yaml").write_text(to_yaml(compose(words)))
    return step


def test_both_roles_are_worded_and_limited_as_in_their_run(run) -> None:
    engine = from_checkpoint(run)
    assert isinstance(engine.environment, Solving) and engine.environment.tests == 3
    assert {role: model.max_completion_tokens for role, model in engine.limits.items()} == {
        "solver": 9,
        "tester": 7,
    }
    assert [Path(model.path).name for model in engine.limits.values()] == ["solver", "tester"]
    assert engine.environment.domain("solver").prompt.style == "instruct"
    found = reasoning_chain(engine, ROW)
    assert next(iter(found.stages)) == "reasoning" and set(found.drawn) <= {"solver", "tester"}


def test_theenvironment_may_be_another(run) -> None:
    assert from_checkpoint(run, environment=Adversarial(tests=8)).environment.tests == 8
    alone = from_checkpoint(run, environment=Reasoning())
    assert list(alone.limits) == ["policy"] and Path(alone.limits["policy"].path).name == "solver"


def test_one_folder_is_a_solver_alone(run) -> None:
    engine = from_checkpoint(run / "solver")
    assert isinstance(engine.environment, reasoning.Reasoning)
    assert (
        engine.limits["policy"].max_completion_tokens == 9
        and engine.environment.domain("policy").prompt.style == "instruct"
    )
    embedded = from_checkpoint()
    assert embedded.limits["policy"].embedded == "tiny_solver"
    both = from_checkpoint(environment=Adversarial()).limits
    assert {role: model.embedded for role, model in both.items()} == {"solver": "tiny_solver", "tester": "tiny_tester"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (Infer(decoding="beam"), "outputs of stages are sampled or greedy"),
        (Infer(max_attempts=2), "has no meaning for problems of the data"),
        (Infer(decoding="sample", samples=2), "nothing would choose among them"),
    ],
)
def test_options_that_cannot_work_are_refused(options, told, run) -> None:
    with pytest.raises(InputError, match=told):
        from_checkpoint(run, options)


def test_a_folder_without_weights_is_refused(tmp_path) -> None:
    for role in ("solver", "tester"):
        (tmp_path / role).mkdir()
    with pytest.raises(InputError, match="no checkpoint is there"):
        from_checkpoint(tmp_path)
