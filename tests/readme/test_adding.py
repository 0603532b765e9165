"""The steps of the pages for adding a part, followed to the letter in a copy of the repository."""

import json
import re
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
from rlvr_exp.runs.study import Run
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


def run(house: Path, *words: str) -> dict:
    command = [sys.executable, "-m", "rlvr_exp", *words, f"run.dir={house / 'run'}"]
    done = subprocess.run(command, cwd=house, capture_output=True, text=True, env=environment(house), timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr + (house / "run" / "log.txt").read_text()
    return json.loads((house / "run" / "summary.json").read_text()) | {"printed": done.stdout}


def environment(house: Path) -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(house)}


@pytest.mark.slow
def test_a_verifier(house):
    assert follow(house, "own verifier") == 2
    words = ("hydra.searchpath=[own]", "verifier=lenient", "verifier.most_characters=300")
    summary = run(house, "+stage=evaluate", "+experiment=quick", *words)
    assert summary["after"]["pass_at_1_greedy"]["value"] > 0.5, "what parses passes"


@pytest.mark.slow
def test_a_stage(house):
    assert follow(house, "stage") == 3
    summary = run(house, "+stage=peek", "data.limit=2")
    assert summary["metrics"] == {"tasks": 2}
    assert "def solve(g):" in summary["printed"]


@pytest.mark.slow
def test_a_domain(house):
    assert follow(house, "own data") == 2
    words = ("hydra.searchpath=[own]", "data=sums", "data.largest=24", "evaluation.tasks=2")
    summary = run(house, "+stage=sft", "+experiment=quick", *words)
    assert summary["status"] == "completed"
    assert summary["after"]["pass_at_1"]["n"] == 2


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
        runs.append(Run(job, tmp_path / job.name, 0, {"status": "completed"}))
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
    added = (house / "rlvr_exp/episodes/environments/review.py").read_text()
    assert len(added.splitlines()) < 60
    summary = run(house, "+stage=grpo", "+experiment=quick", "environment=review", "algorithm.max_steps=2", *OWN)
    assert summary["status"] == "completed" and summary["steps"] == 2
    rows = [json.loads(line) for line in (house / "run" / "metrics.jsonl").read_text().splitlines()]
    assert all(f"{role}/grad_norm" in row for row in rows for role in ("drafter", "reviewer"))
    rates = [(row["drafter/learning_rate"], row["reviewer/learning_rate"]) for row in rows]
    assert rates[-1][1] == pytest.approx(rates[-1][0] / 4) and rates[-1][0] > 0
    assert all("reviewer/reward/normalizer_scale" in row for row in rows), "a reward of its own"
    assert {path.name for path in (house / "run/checkpoints/latest").iterdir()} >= {"drafter", "reviewer"}
