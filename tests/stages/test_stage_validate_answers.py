"""+stage=validate on a policy's answers: the same verdicts as where they were given, without the policy."""

import json
import subprocess
from pathlib import Path

import pytest
from program import ENVIRONMENT, PROGRAM
from thinning import thinned

pytest.importorskip("ast_grep_py")


def program(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, *words, "data=edits", "sandbox.workers=1"]
    return subprocess.run(command, cwd=place, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_answers_are_judged_and_measured_as_where_they_were_given(tmp_path: Path) -> None:
    given = program(tmp_path, "+stage=infer", "infer.split=dev", "infer.tasks=12", "infer.output=a.jsonl", "run.dir=a")
    assert given.returncode == 0, given.stdout + given.stderr
    done = program(tmp_path, "+stage=validate", "validate.split=dev", "validate.answers=a.jsonl", "run.dir=b")
    assert done.returncode == 0, done.stdout + done.stderr
    answers = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    rows = [json.loads(line) for line in (tmp_path / "b" / "validate.jsonl").read_text().splitlines()]
    given_ones = [(one["id"], one["outcome"], one["bucket"]) for one in answers]
    assert given_ones == [(one["task"], one["outcome"], one["bucket"]) for one in rows] and len(rows) == 12
    assert {"parses", "valid", "field_similarity"} <= {name for one in rows for name in one["measures"]}
    summary = json.loads((tmp_path / "b" / "summary.json").read_text())
    passed = sum(one["outcome"] == "passed" for one in rows)
    assert summary["after"]["answers_passed"]["value"] == pytest.approx(passed / 12)
    assert summary["metrics"].get("verdict/passed", 0) == passed and "measure/parses" in summary["metrics"]
    assert "| answers_passed |" in (tmp_path / "b" / "validate.md").read_text()
    assert "answers_passed" in (tmp_path / "b" / "report.html").read_text()


@pytest.mark.slow
def test_what_was_cut_or_never_given_fails_as_such(tmp_path: Path) -> None:
    rows = [{"id": "dev-00001", "text": "x", "truncated": True}, {"id": "dev-00002", "text": None}]
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    done = program(tmp_path, "+stage=validate", "validate.answers=a.jsonl", "run.dir=b")
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(line) for line in (tmp_path / "b" / "validate.jsonl").read_text().splitlines()]
    assert [one["bucket"] for one in found] == ["truncated", "prompt_too_long"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "told"),
    thinned(
        [
            ('{"id": "nobody", "text": "x"}', "line 1: names no task of this data"),
            ('{"id": "dev-00001"}', "line 1: no answer"),
            ("{", "line 1: no answer"),
            ("", "has no answer"),
            (None, "validate.answers"),
        ]
    ),
)
def test_a_file_without_answers_to_these_tasks_is_refused(text: str | None, told: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "a.jsonl").write_text(text)
    done = program(tmp_path, "+stage=validate", "validate.answers=a.jsonl", "run.dir=b")
    assert done.returncode == 2 and told in done.stdout + done.stderr, done.stdout + done.stderr
