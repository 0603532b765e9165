"""+stage=distill through its command: another model teaches a policy, and what is refused."""

import subprocess
from pathlib import Path

import pytest
from program import ENVIRONMENT, PROGRAM, metrics_of

SMALL = ["+experiment=quick", "evaluation.tasks=2", "evaluation.samples=2", "model.max_completion_tokens=16"]


def program(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, "+stage=distill", *SMALL, *words]
    return subprocess.run(command, cwd=place, env=ENVIRONMENT, capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("distill")
    student = ["model.from_scratch=true", "optimizer.lr=3e-3", "algorithm.max_steps=12", "scheduler=constant"]
    done = program(place, *student, "algorithm.alpha=0", "roles.teacher.model.embedded=tiny", "run.dir=run")
    log = place / "run" / "log.txt"
    assert done.returncode == 0, done.stdout + done.stderr + (log.read_text() if log.exists() else "")
    return place / "run"


def test_the_student_comes_closer_to_its_teacher_on_its_own_tokens(run):
    rows = metrics_of(run)
    assert len(rows) == 12 and {row["distill/taught"] for row in rows} == {1.0}
    assert rows[-1]["distill/divergence"] < 0.7 * rows[0]["distill/divergence"]


def test_the_teacher_computes_in_the_type_of_its_own_weights(tmp_path):
    types = ["model.dtype=bfloat16", "roles.teacher.model.dtype=float32"]
    words = ["model.adapter.kind=lora", "roles.teacher.model.embedded=tiny", "algorithm.max_steps=1", "run.dir=run"]
    done = program(tmp_path, *types, *words)
    assert done.returncode == 0, done.stdout + done.stderr + (tmp_path / "run" / "log.txt").read_text()
    (row,) = metrics_of(tmp_path / "run")
    assert row["distill/taught"] == 1.0 and 0 < row["distill/divergence"] < 0.1, "they differ by rounding alone"


def test_a_run_without_a_teacher_is_refused(tmp_path):
    done = program(tmp_path, "run.dir=run")
    assert done.returncode == 2 and "there is no teacher" in done.stdout + done.stderr
    assert not (tmp_path / "run").exists()


def test_a_teacher_takes_a_model_alone(tmp_path):
    done = program(tmp_path, "roles.teacher.model.embedded=tiny", "roles.teacher.reward=binary", "run.dir=run")
    assert done.returncode == 2 and "a teacher does not learn" in done.stdout + done.stderr


def test_a_teacher_with_another_tokenizer_is_refused_in_words(tmp_path):
    done = program(tmp_path, "roles.teacher.model.embedded=tiny_edits", "run.dir=run")
    said = done.stdout + done.stderr
    assert done.returncode == 2 and "the teacher has another tokenizer" in said and "tokens differ, such as" in said
