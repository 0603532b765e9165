"""+stage=infer environment=edits: an action, the text that it makes, the next, until `done`; served by an endpoint that knows how."""

import json
import subprocess
from pathlib import Path

import pytest
from endpoint import Endpoint, serving
from program import ENVIRONMENT, PROGRAM
from thinning import thinned

pytest.importorskip("ast_grep_py")
COMMAND = [*PROGRAM, "+stage=infer", "data=edits", "environment=edits", "sandbox.workers=1"]
ROWS = [
    {"id": "two", "instruction": "Make x 3 and y 4.", "before": "x = 1\ny = 2\n", "after": "x = 3\ny = 4\n", "split": "test"},
    {"id": "lost", "instruction": "Make x 5.", "before": "x = 9\n", "after": "x = 5\n", "split": "test"},
]  # fmt: skip


def answer(prompt: str, seed: object) -> str:
    """Of the first row a rule at a time, then `done`; of the second what is no action."""
    if "x = 9" in prompt:
        return "I cannot."
    for old, new in (("x = 1", "x = 3"), ("y = 2", "y = 4")):
        if f"{old}\n" in prompt:
            return f"```json\n{json.dumps({'pattern': old, 'rewrite': new})}\n```"
    return "```json\ndone\n```"


def program(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], cwd=place, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)


def test_the_answer_is_what_all_steps_have_made(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    words = ["data.path=rows.jsonl", "data.prompt.style=instruct", "run.dir=run", "infer.output=out.jsonl"]
    with serving(Endpoint(text=answer)) as endpoint:
        done = program(tmp_path, *words, "engine=server", f"engine.url={endpoint.url}")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["id"]: row for row in map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())}
    two, lost = rows["two"], rows["lost"]
    assert (two["outcome"], two["edited"], two["program"], two["attempt"]) == ("passed", "x = 3\ny = 4\n", "done", 3)
    assert [(one["attempt"], one["outcome"]) for one in two["earlier"]] == [(1, "failed"), (2, "passed")]
    assert "x = 1" in two["earlier"][0]["text"] and "y = 2" in two["earlier"][1]["text"]
    assert (lost["outcome"], lost["bucket"], lost["edited"], lost["earlier"]) == ("failed", "parse", None, [])


@pytest.mark.slow
def test_the_embedded_policy_takes_as_many_steps_as_it_may(tmp_path: Path) -> None:
    done = program(tmp_path, "infer.tasks=4", "environment.steps=2", "infer.split=dev", "run.dir=run")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in (tmp_path / "run" / "answers.jsonl").read_text().splitlines()]
    assert len(rows) == 4 and all(len(row["earlier"]) == row["attempt"] - 1 < 2 for row in rows)
    assert any(row["edited"] for row in rows)


@pytest.mark.parametrize(
    ("words", "told"),
    thinned(
        [
            (["infer.max_attempts=2"], "infer.max_attempts: has no meaning for edits in steps"),
            (["infer.verify=false"], "infer.verify: has no meaning"),
            (["infer.decoding=beam"], "infer.decoding: edits in steps are sampled or greedy"),
            (["environment=retry"], "environment: answers have one turn"),
        ]
    ),
)
def test_what_has_no_meaning_in_steps_is_refused(words: list[str], told: str, tmp_path: Path) -> None:
    done = program(tmp_path, *words, "run.dir=run")
    assert done.returncode == 2 and told in done.stdout + done.stderr, done.stdout + done.stderr
