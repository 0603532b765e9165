"""Problems of one's own and public sets through the command: validation of references, one problem alone."""

import json
import subprocess
from pathlib import Path

import pytest
from program import ENVIRONMENT, PROGRAM

import rlvr_exp

EXAMPLES = Path(rlvr_exp.__file__).parent / "assets" / "example_problems.json"
VALIDATE = ["+stage=validate", "data=problems", "validate.mutants=1", "validate.universal=none", "sandbox.workers=1"]
DRAWN = {
    "id": "own/drawn",
    "text": "Write near(x). It returns about x.",
    "solution": "import os\n\n\ndef near(x):\n    return x + int.from_bytes(os.urandom(8)) * 1e-25\n",
    "tests": "from solution import near\n\n\ndef test_it():\n    assert abs(near(3) - 3) < 1\n",
    "split": "train",
}


def program(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *words], cwd=place, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)


def test_the_example_problems_can_be_trusted(tmp_path: Path) -> None:
    done = program(tmp_path, *VALIDATE, f"data.path={EXAMPLES}", "run.dir=run")
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(line) for line in (tmp_path / "run" / "validate.jsonl").read_text().splitlines()]
    golds = {row["task"]: row for row in found if row["kind"] == "gold"}
    assert len(golds) == 5 and all(row["outcome"] == "passed" for row in golds.values())
    assert {name for name, row in golds.items() if row["assertions"]} == {"example/turned", "example/seconds"}
    assert sum(row["kind"] == "wrong" for row in found) == 4
    assert all(row["outcome"] != "passed" for row in found if row["kind"] in ("wrong", "hollow"))


def test_the_good_tests_of_the_examples_catch_their_wrong_programs(tmp_path: Path) -> None:
    done = program(tmp_path, *VALIDATE, f"data.path={EXAMPLES}", "data.role=tester", "run.dir=run")
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(line) for line in (tmp_path / "run" / "validate.jsonl").read_text().splitlines()]
    assert [(row["task"], row["outcome"]) for row in found if row["kind"] == "gold"] == [
        ("example/packed_runs", "passed")
    ]


def test_references_that_fail_or_draw_are_named_by_file_line_and_key(tmp_path: Path) -> None:
    drawn = DRAWN | {"tests": [{"args": [3], "expected": 3}]} | {"solution": DRAWN["solution"].replace("1e-25", "1")}
    odd = DRAWN["solution"].replace("x + int", "x if int").replace("* 1e-25", "% 2 else None")
    rows = [DRAWN, *(DRAWN | {"id": f"odd/{n}", "solution": odd + f"\n\nN = {n}\n"} for n in range(24))]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, [*rows, drawn | {"id": "own/wrong"}])))
    done = program(tmp_path, *VALIDATE, "data.path=rows.jsonl", "run.dir=run")
    assert done.returncode == 3, done.stdout + done.stderr
    said = done.stdout + done.stderr
    assert "own/wrong: rows.jsonl, line 26, tests: failed (wrong_answer)" in said
    assert "solution: failed (wrong_answer): it does something else when it runs again" in said
    assert "own/drawn: rows" not in said, "its tests see no difference"


@pytest.mark.slow
def test_one_problem_alone_is_trained_on_and_measured(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(json.loads(EXAMPLES.read_text())[:1]))
    words = ["data=problems", "data.path=one.json", "sandbox.workers=1", "evaluation.samples=2"]
    measured = ["environment=reasoning", "evaluation.split=train", "run.dir=measured"]
    done = program(tmp_path, "+stage=evaluate", *words, *measured)
    assert done.returncode == 0, done.stdout + done.stderr
    trained = ["environment=reasoning", "data.held_out=embedded", "evaluation.tasks=2", "algorithm.max_steps=1"]
    small = ["algorithm.prompts_per_step=8", "algorithm.group_size=16", "run.select.times=0", "run.dir=trained"]
    done = program(tmp_path, "+stage=grpo", *words, *trained, *small)
    assert done.returncode == 0, done.stdout + done.stderr
    train = json.loads((tmp_path / "trained" / "manifest.json").read_text())["train"]
    assert train["tasks"] == 1
