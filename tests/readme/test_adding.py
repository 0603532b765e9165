"""The steps of the pages for adding a part, followed to the letter in a copy of the repository."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.core.errors import InputError
from rlvr_exp.episodes.types import Completion, TokenCount
from rlvr_exp.runs.record import write_record
from rlvr_exp.runs.study import JobRun
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.verifiers.base import Verdict

ROOT = Path(__file__).parents[2]
STEP = re.compile(r"^\d\. [^`\n]*?(at the end of )?`([\w/.]+)`\n\n```\w+\n(.*?)```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def house(tmp_path: Path) -> Path:
    for name in ("conf", "rlvr_exp"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def follow(house: Path, what: str, page: str = "rlvr_exp/docs/extending.md") -> int:
    """Follow the steps; returns their number."""
    text = re.search(rf"<!-- steps: {what} -->(.*?)<!-- end -->", (ROOT / page).read_text(), re.DOTALL)[1]
    steps = STEP.findall(text)
    for append, name, block in steps:
        path = house / name
        assert path.exists() == bool(append), f"{name}: the page says {'append' if append else 'new file'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((path.read_text() + "\n\n" if append else "") + block)
    return len(steps)


def program(house: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rlvr_exp", *words]
    return subprocess.run(command, cwd=house, capture_output=True, text=True, env=environment(house), timeout=600)


def run(house: Path, *words: str) -> dict:
    done = program(house, *words, f"run.dir={house / 'run'}")
    assert done.returncode == 0, done.stdout + done.stderr + (house / "run" / "log.txt").read_text()
    return json.loads((house / "run" / "summary.json").read_text()) | {"printed": done.stdout}


def environment(house: Path) -> dict[str, str]:
    import os

    copied = (house / "rlvr_exp").is_dir()
    return {**os.environ, "PYTHONPATH": str(house if copied else ROOT), "OMP_NUM_THREADS": "1"}


@pytest.mark.slow
def test_a_stage(tmp_path):
    assert follow(tmp_path, "stage") == 4
    summary = run(tmp_path, "+stage=peek", "hydra.searchpath=[own]", "data.limit=2")
    assert summary["metrics"] == {"tasks": 2}
    assert "def solve(g):" in summary["printed"]


def test_a_domain_trains_and_answers(tmp_path):
    """The two commands of the page, in a folder outside the package."""
    assert follow(tmp_path, "domain") == 9
    section = (ROOT / "rlvr_exp/docs/extending.md").read_text().partition("## Domain\n")[2]
    commands = re.findall(r"^    python -m rlvr_exp (.*?)(?=^    python|\n\n)", section, re.MULTILINE | re.DOTALL)
    train, infer = commands[:2]
    train, infer = (shlex.split(words.replace("\\\n", " ")) for words in (train, infer))
    refused = program(tmp_path, *train, "data.least=500")
    assert refused.returncode == 2 and "data.least: no answer is long enough" in refused.stderr, refused.stderr
    words = [*train, "algorithm.max_steps=1", "evaluation.samples=2"]
    for given in (words, infer):
        done = program(tmp_path, *given)
        assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "RUN" / "summary.json").read_text())
    assert (summary["status"], summary["steps"], summary["after"]["pass_at_1"]["n"]) == ("completed", 1, 4)
    (step,) = map(json.loads, (tmp_path / "RUN" / "metrics.jsonl").read_text().splitlines())
    assert 0 < step["reward/mean"] <= 1
    answers = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert [answer["id"][:7] for answer in answers] == ["letter_"] * 4
    assert all(answer["attempts"] == 1 + (len(answer["earlier"]) > 0) for answer in answers)
    assert {answer["outcome"] for answer in answers if answer["attempts"] == 2} <= {"passed", "failed"}
    assert max(answer["attempts"] for answer in answers) == 2, "failed answers are followed by a second one"


def test_a_reward_term(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert follow(tmp_path, "reward term") == 2
    words = ["+stage=grpo", f"hydra.searchpath=[{tmp_path / 'own'}]", "reward=few_lines"]
    reward = build(compose([*words, "reward.terms.few_lines.most=10"]).config.reward)
    task = Task("t", "f", 0.0, None, None)
    judged = [("a = 1\n", None), ("a = 1\n" * 6, None), ("a = 1\n", "wrong_answer")]
    answers = [
        Completion(
            task, 0, TokenCount(9, False), text, Candidate(text), Verdict("failed" if bucket else "passed", bucket)
        )
        for text, bucket in judged
    ]
    paid = [each.terms["few_lines"] for each in reward(answers)]
    assert paid == pytest.approx([0.1, 0.05, 0.0])
    with pytest.raises(InputError, match=r"reward.terms.few_lines.most"):
        compose([*words, "reward.terms.few_lines.most=0"])


def test_a_study(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert follow(tmp_path, "study", "rlvr_exp/docs/studies.md") == 2
    words = ["+stage=study", f"hydra.searchpath=[{tmp_path / 'own'}]", "study=rates", "study.rates=[0.1,0.2]"]
    study = build(compose(words).config.study)
    jobs = study.jobs()
    assert [job.name for job in jobs] == [f"lr_{rate}_seed{seed}" for rate in (0.1, 0.2) for seed in (0, 1)]
    assert jobs[-1].words == ("+stage=grpo", "optimizer.lr=0.2", "seed=1")
    runs = []
    for job in jobs:
        (tmp_path / job.name).mkdir()
        row = {"step": 1, "entropy": 0.5 if "0.2" in job.name else 0.75}
        (tmp_path / job.name / "metrics.jsonl").write_text(json.dumps(row) + "\n")
        runs.append(JobRun(job, tmp_path / job.name, 0, {"status": "completed"}))
    found = study.summarise(runs)
    assert found.answer == ["Entropy is lowest with lr_0.2."]
    assert write_record(tmp_path, "study", [], runs, found).startswith(found.answer[0])
    assert (tmp_path / "entropy.png").is_file() and "lr_0.1" in (tmp_path / "entropy.csv").read_text()
    with pytest.raises(InputError, match=r"study.rates"):
        compose([*words, "study.rates=[x]"])


OWN = ("optimizer.lr=8e-4", "roles.reviewer.optimizer.lr=2e-4", "roles.reviewer.reward=normalized")


@pytest.mark.slow
def test_an_environment(house):
    """Two roles, two turns, in fewer than 60 lines; each may have options of its own."""
    assert follow(house, "environment", "rlvr_exp/docs/environments.md") == 3
    added = (house / "rlvr_exp/episodes/review.py").read_text()
    assert len(added.splitlines()) < 60
    summary = run(house, "+stage=grpo", "+experiment=quick", "environment=review", "algorithm.max_steps=2", *OWN)
    assert summary["status"] == "completed" and summary["steps"] == 2
    rows = [json.loads(line) for line in (house / "run" / "metrics.jsonl").read_text().splitlines()]
    assert all(f"{role}/grad_norm" in row for row in rows for role in ("drafter", "reviewer"))
    rates = [(row["drafter/learning_rate"], row["reviewer/learning_rate"]) for row in rows]
    assert rates[-1][1] == pytest.approx(rates[-1][0] / 4) and rates[-1][0] > 0
    assert all("reviewer/reward/normalizer_scale" in row for row in rows), "a reward of its own"
    assert {path.name for path in (house / "run/checkpoints/latest").iterdir()} >= {"drafter", "reviewer"}
    paths = [f"roles.{role}.model.path={house}/run/checkpoints/latest/{role}" for role in ("drafter", "reviewer")]
    drawing = ["infer.decoding=sample", "infer.samples=2", "infer.tasks=3", f"infer.output={house}/answers.jsonl"]
    done = program(house, "+stage=infer", "environment=review", *paths, *drawing, "run.dir=answers")
    assert done.returncode == 0, done.stdout + done.stderr
    answers = [json.loads(line) for line in (house / "answers.jsonl").read_text().splitlines()]
    assert len(answers) == 3 and all(one["attempts"] == 1 + len(one["earlier"]) for one in answers)
    assert all(one["attempts"] == 2 for one in answers if one["outcome"] == "failed"), "failed drafts are reviewed"
