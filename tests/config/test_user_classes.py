"""A user's own folder: YAML found by hydra.searchpath, its class imported from there, its schema checked like ours."""

import sys
from pathlib import Path

import pytest

from rlvr_exp.config.compose import compose, compose_lenient
from rlvr_exp.config.help import field_help
from rlvr_exp.config.load import build, load, to_yaml

CLASSES = '''
from dataclasses import InitVar, dataclass
from rlvr_exp.config.options import option
from rlvr_exp.config.verifier import Verifier
from rlvr_exp.core.errors import InputProblem
from rlvr_exp.verifiers.engine import CachedVerifier

@dataclass(kw_only=True)
class Patient:
    patience: int = option(3, low=1)
    """Tries."""
    name: str = "p"
    sandbox: InitVar[str]

    def __post_init__(self, sandbox):
        self.given = (self.patience, self.name, sandbox)

    def problems(self):
        return [InputProblem("name", "is taken", self.name)] if self.name == "taken" else []

@dataclass
class Options(Verifier):
    depth: int = option(2, low=1)
    """Levels."""

class Deep(CachedVerifier, Options):
    def __init__(self, sandbox, cache=None, **given):
        super().__init__(cache, **given)
        self.given = (self.depth, sandbox)

    prepare = start = None

@dataclass
class Unset:
    size: int

class Closed(Deep):
    def __init__(self, sandbox):
        super().__init__(sandbox)

class Bare:
    pass
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "verifier").mkdir()
    module = f"own_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{module}.py").write_text(CLASSES)
    (tmp_path / "verifier" / "patient.yaml").write_text(f"_target_: {module}.Patient\nname: mine\n")
    (tmp_path / "verifier" / "bare.yaml").write_text(f"_target_: {module}.Bare\n")
    (tmp_path / "verifier" / "deep.yaml").write_text(f"_target_: {module}.Deep\n")
    (tmp_path / "verifier" / "unset.yaml").write_text(f"_target_: {module}.Unset\n")
    (tmp_path / "verifier" / "closed.yaml").write_text(f"_target_: {module}.Closed\n")
    (tmp_path / "verifier" / "lost.yaml").write_text("_target_: no.such.module.Class\n")
    (tmp_path / "verifier" / "broken.yaml").write_text("a: [\n")
    (tmp_path / "verifier" / "stray.yaml").write_text(f"_target_: {module}.Patient\nstray: 1\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def line(folder: Path, *words: str) -> list[str]:
    return ["+stage=grpo", f"hydra.searchpath=[{folder}]", *words]


def test_an_own_class_is_typed_and_built(folder: Path) -> None:
    config = compose(line(folder, "verifier=patient", "verifier.patience=7")).config
    assert (config.verifier.patience, config.verifier.name) == (7, "mine")
    assert config.verifier.max_no_verdict_rate == 0.05, "what every verifier has"
    assert build(config.verifier, sandbox="box").given == (7, "mine", "box")


def test_own_options_have_ranges_checks_and_help_and_may_be_inherited(folder: Path) -> None:
    config = compose(line(folder, "verifier=deep", "verifier.depth=5", "verifier.validate=0")).config
    assert build(config.verifier, sandbox="box").given == (5, "box") and config.verifier.validate == 0
    assert field_help(type(config.verifier))["depth"] == "Levels." and "validate" in field_help(type(config.verifier))
    words = (("verifier=deep", "verifier.depth=0"), ("verifier=patient", "verifier.name=taken"))
    found = [compose_lenient(line(folder, *given)).problems[0] for given in words]
    assert [(one.where, one.what) for one in found] == [
        ("verifier.depth", "not allowed"),
        ("verifier.name", "is taken"),
    ]


def test_an_own_class_is_given_what_its_constructor_names(folder: Path) -> None:
    config = compose(line(folder, "verifier=patient")).config
    assert build(config.verifier, sandbox="box", cache="shelf").given == (3, "mine", "box")
    with pytest.raises(TypeError, match="sandbox"):
        build(config.verifier, cache="shelf")


def test_its_mistakes_are_told_like_ours(folder: Path) -> None:
    found = {
        problem.where: problem
        for problem in compose_lenient(
            line(folder, "verifier=patient", "verifier.patiense=7", "verifier.name=[1]")
        ).problems
    }
    assert found["verifier.patiense"].suggestion == "verifier.patience" and found["verifier.name"].what == "wrong type"
    (problem,) = compose_lenient(line(folder, "verifier=stray")).problems
    assert problem.where == "verifier.stray" and "verifier/stray.yaml" in problem.got


@pytest.mark.parametrize(
    ("option", "what"),
    [
        ("bare", "brings no schema"),
        ("unset", "without a default: size"),
        ("closed", "takes no max_no_verdict_rate, validate, depth"),
        ("lost", "cannot be imported"),
        ("broken", ""),
        ("patent", "no such option"),
    ],
)
def test_what_cannot_be_used_is_a_problem(folder: Path, option: str, what: str) -> None:
    (problem,) = compose_lenient(line(folder, f"verifier={option}")).problems
    assert what in problem.what


def test_a_child_finds_the_class_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = compose(line(folder, "verifier=patient"))
    (folder / "config.yaml").write_text(to_yaml(checked))
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(folder)])
    assert load(folder / "config.yaml") == checked.config and str(folder) in sys.path


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    (problem,) = compose_lenient(["+stage=grpo", f"hydra.searchpath=[{tmp_path}/nowhere]"]).problems
    assert problem.where == "hydra.searchpath" and "nowhere" in problem.got
