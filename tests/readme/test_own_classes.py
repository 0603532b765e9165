"""The classes of the page on extending, in a folder outside the project: each kind is checked, and all train in one run."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from program import ENVIRONMENT, PROGRAM
from test_adding import follow

from rlvr_exp.config.compose import compose, compose_lenient
from rlvr_exp.config.help import options_page
from rlvr_exp.config.load import build, load, to_yaml

PAGE = "rlvr_exp/docs/extending.md"
TEXT = (Path(__file__).parents[2] / PAGE).read_text()
KINDS = ["data", "verifier", "environment", *re.findall(r"<!-- steps: own (\w+) -->", TEXT)]
WORDS = shlex.split(re.search(r"python -m rlvr_exp (\+stage=grpo.*?)\n\n", TEXT, re.DOTALL)[1].replace("\\\n", " "))
OPTIONS = {
    "data": ("least=9", 9, "least=0"),
    "verifier": ("capitals=false", False, "capitals=3"),
    "environment": ("again=3", 3, "again=0"),
    "curriculum": ("share=0.25", 0.25, "share=0"),
    "algorithm": ("most=2", 2, "most=0"),
    "optimizer": ("alpha=0.5", 0.5, "alpha=1"),
    "scheduler": ("ends_at=0.25", 0.25, "ends_at=2"),
    "tracking": ("file=x.txt", "x.txt", "file=[1]"),
}
"""Of each kind: an option, its value, and a value that is refused."""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert follow(tmp_path, "domain", PAGE) == 9
    assert [follow(tmp_path, f"own {kind}", PAGE) for kind in KINDS[3:]] == [2] * len(KINDS[3:])
    return tmp_path


def test_each_kind_has_options_help_and_checks_of_its_own(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own)
    assert set(KINDS) == set(OPTIONS)
    given = [f"{kind}.{good}" for kind, (good, _, _) in OPTIONS.items()]
    checked = compose([*WORDS, *given])
    config = checked.config
    (own / "config.yaml").write_text(to_yaml(checked))
    assert load(own / "config.yaml") == config, "as the child reads it"
    for kind, (good, value, bad) in OPTIONS.items():
        name = good.partition("=")[0]
        assert getattr(getattr(config, kind), name) == value and f"{kind}.{name}=" in options_page(WORDS, [f"{kind}."])
        (problem,) = compose_lenient([*WORDS, f"{kind}.{bad}"]).problems
        assert problem.where == f"{kind}.{name}"
    tasks = build(config.data).splits()["train"]
    curriculum = build(config.curriculum, tasks=tasks, seed=0)
    assert [task.id for task in curriculum.pick(0, 4)] == ["letter_a", "letter_b", "letter_c", "letter_a"], (
        "a quarter of twelve"
    )


@pytest.mark.slow
def test_all_of_them_train_at_once(own: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, *WORDS, "run.dir=run", "evaluation.tasks=2"],
        cwd=own, env=ENVIRONMENT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((own / "run" / "summary.json").read_text())
    assert (summary["status"], summary["steps"], summary["after"]["pass_at_1"]["n"]) == ("completed", 3, 2)
    lines = (own / "run" / "lines.txt").read_text().splitlines()
    assert [line.split()[0] for line in lines if "reward/mean=" in line] == ["1", "2", "3"]
    config = (own / "run" / "config.yaml").read_text()
    assert all(
        name in config for name in ("letters.tasks.Letters", "letters.verifier.Count", "bounded.Bounded", f"{own}/own")
    )
