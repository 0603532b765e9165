"""Dafny data from the command line: both roles validated by the real Dafny; mismatched or missing parts are
reported."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from program import ENVIRONMENT, INTERPRETED, PROGRAM

from rlvr_exp.domains.dafny.package import INSTALL
from rlvr_exp.domains.dafny.tool import Tool

HEADER = "method Twice(a: int) returns (r: int)\n"
ROWS = [
    {
        "id": "twice",
        "family": "loop",
        "header": HEADER,
        "spec": "  requires a >= 0\n  ensures r == 2 * a\n",
        "body": "{\n  r := 0;\n  var i := 0;\n  while i < a\n  {\n    i := i + 1;\n    r := r + 2;\n  }\n}",
        "annotated_body": "{\n  r := 0;\n  var i := 0;\n  while i < a\n    invariant i <= a && r == 2 * i\n  {\n"
        "    i := i + 1;\n    r := r + 2;\n  }\n}",
        "mutants": ["{\n  r := 0;\n  var i := 0;\n  while i < a\n  {\n    i := i + 1;\n    r := r + 2;\n  }\n}"],
    }
]
WORDS = ["data=dafny", "role=both", "sandbox.workers=1", "data.dev_fraction=0", "data.test_fraction=0"]


@pytest.fixture
def data(tmp_path: Path) -> str:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return f"data.path={folder}"


def run(tmp_path: Path, *words: str, dafny: bool = True) -> subprocess.CompletedProcess[str]:
    """Run the program; without Dafny, another version of z3 hides the installed one."""
    environment, program = dict(ENVIRONMENT), PROGRAM
    if not dafny:
        program = INTERPRETED
        (tmp_path / "other" / "z3_solver-4.8.dist-info").mkdir(parents=True)
        (tmp_path / "other" / "z3_solver-4.8.dist-info" / "METADATA").write_text("Name: z3-solver\nVersion: 4.8\n")
        places = filter(None, [str(tmp_path / "other"), environment.get("PYTHONPATH")])
        environment |= {"PATH": "/nonexistent", "PYTHONPATH": os.pathsep.join(places)}
    command = [*program, *words, f"run.dir={tmp_path / 'run'}"]
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_both_roles_golds_pass_and_what_is_wrong_does_not(dafny: Tool, tmp_path: Path, data: str) -> None:
    done = run(tmp_path, "+stage=validate", data, *WORDS)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "run" / "validate.jsonl").read_text().splitlines()]
    assert all(row["outcome"] != "passed" for row in rows if row["kind"] == "universal")
    rows = [row for row in rows if row["kind"] != "universal"]
    found = {(row["task"], row["kind"]): row["bucket"] or row["rule"] or row["outcome"] for row in rows}
    assert found == {
        ("twice/writer", "gold"): "passed",
        ("twice/writer", "hollow"): "spec-removed",
        ("twice/annotator", "gold"): "passed",
        ("twice/annotator", "hollow"): "spec-removed",
        ("twice/annotator", "wrong"): "verify",
    }


@pytest.mark.parametrize("stage", ["validate", "grpo"])
def test_without_dafny_it_is_told_how_to_install_it(tmp_path: Path, data: str, stage: str) -> None:
    model = [] if stage == "validate" else ["model=tiny", "evaluation.split=train"]
    done = run(tmp_path, f"+stage={stage}", data, *model, *WORDS, dafny=False)
    assert done.returncode == 2 and INSTALL in done.stderr, done.stderr
    assert not (tmp_path / "run").exists()


def test_without_dafny_all_else_works(tmp_path: Path) -> None:
    words = ["+stage=validate", "data.limit=2", "validate.split=dev", "sandbox.workers=1"]
    done = run(tmp_path, *words, dafny=False)
    assert done.returncode == 0, done.stderr


def test_a_verifier_of_other_problems_is_refused_by_the_name_of_the_right_one(tmp_path: Path, data: str) -> None:
    done = run(tmp_path, "+stage=validate", data, "verifier=python_io", *WORDS)
    assert done.returncode == 2 and "verifier=dafny" in done.stderr, done.stderr


def test_a_role_that_there_is_not_is_refused(tmp_path: Path, data: str) -> None:
    done = run(tmp_path, "+stage=validate", data, "data=dafny", "data.role=reader")
    assert done.returncode == 2 and "writer, annotator, both" in done.stderr, done.stderr


@pytest.mark.slow
def test_tasks_whose_gold_is_not_proved_are_left_out_when_asked(dafny: Tool, tmp_path: Path, data: str) -> None:
    unproved = ROWS[0] | {"id": "unproved", "annotated_body": ROWS[0]["body"], "mutants": []}
    with (tmp_path / "data" / "train.jsonl").open("a") as file:
        file.write(json.dumps(unproved) + "\n")
    words = ["+stage=validate", data, *WORDS, "data.usable=check", "validate.universal=none", "validate.mutants=0"]
    done = run(tmp_path, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "golds: 2 of 4 are proved" in done.stdout and "2 the program is not proved" in done.stdout
    golds = json.loads((tmp_path / "run" / "manifest.json").read_text())["golds"]
    assert golds["checked"] == 4 and list(golds["left_out"]) == ["unproved/writer", "unproved/annotator"]
    assert "unproved" not in (tmp_path / "run" / "validate.jsonl").read_text()
