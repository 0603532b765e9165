"""Numbered properties of a GRPO run: one run is inspected, a second one is killed and resumed, a third one solves nothing."""

import csv
import json
import lzma
import subprocess
from collections.abc import Sequence
from itertools import groupby, islice
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from program import ENVIRONMENT, PROGRAM, metrics_of

from rlvr_exp.config.tree import PACKAGE
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.records.rollout_files import read_evaluation, read_rollouts, rollout_steps, to_row

STEPS = 3
WORDS = [
    "+stage=grpo",
    "algorithm.prompts_per_step=4",
    "algorithm.group_size=3",
    "evaluation.tasks=2",
    "evaluation.samples=1",
    "verifier.validate=1",
]
ORDERED = [*WORDS, "curriculum=ordered", f"algorithm.max_steps={STEPS}", "run.checkpoint.every_steps=1"]


def start(words: Sequence[str], folder: Path, **environment: str) -> tuple[int, str]:
    """Exit code and output of a run in `folder/run`."""
    command = [*PROGRAM, *words, f"run.dir={folder / 'run'}"]
    env = {**ENVIRONMENT, **environment}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=600, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first rows of the embedded splits. `train` also has each held-out task under another id."""

    def head(split: str, count: int) -> list[dict[str, Any]]:
        with lzma.open(PACKAGE / "assets" / "arc" / f"{split}.jsonl.xz", "rt") as lines:
            return [json.loads(line) for line in islice(lines, count)]

    folder = tmp_path_factory.mktemp("data")
    splits = {"train": head("train", 40), "dev": head("dev", 8), "test": head("test", 8)}
    splits["train"] += [{**row, "id": f"copy-{row['id']}"} for row in (*splits["dev"], *splits["test"])]
    for split, rows in splits.items():
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture(scope="module")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    code, output = start([*ORDERED, f"data.path={data}"], folder)
    assert code == 0, output
    return folder / "run"


def rollouts(run: Path) -> dict[int, list[dict[str, Any]]]:
    """Rows of each step."""
    return {step: [to_row(one) for one in read_rollouts(path)] for step, path in rollout_steps(run).items()}


@pytest.mark.property(3)
def test_difficulty_never_falls_within_a_batch(run: Path, data: Path) -> None:
    difficulty = {task.id: task.difficulty for task in Arc(path=str(data)).splits()["train"]}
    batches = [[task for task, _ in groupby(row["task"] for row in rows)] for rows in rollouts(run).values()]
    scores = [[difficulty[task] for task in batch] for batch in batches]
    assert len(scores) == STEPS and all(len({*batch}) > 1 for batch in scores)
    assert scores == [sorted(batch) for batch in scores]


@pytest.mark.property(9)
def test_the_last_checkpoint_gives_the_answers_of_the_last_evaluation(run: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = run / "checkpoints" / "latest"
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    greedy = [one for one in map(to_row, read_evaluation(run, "after")) if one["mode"] == "greedy"]
    assert len(greedy) == 2
    for row in greedy:
        prompt = tokenizer(row["prompt"], return_tensors="pt")
        found = model.generate(**prompt, do_sample=False, max_new_tokens=row["tokens"])[0, prompt.input_ids.shape[1] :]
        assert tokenizer.decode(found, skip_special_tokens=True).startswith(row["completion"].rstrip("\n"))


@pytest.mark.property(24)
def test_a_killed_run_continues_bit_for_bit(run: Path, data: Path, tmp_path: Path) -> None:
    import trajectories

    words = [*ORDERED, f"data.path={data}", "run.resume=auto"]
    code, output = start(words, tmp_path, KILL_POINT="backward", KILL_STEP="2")
    assert code != 0 and not (tmp_path / "run" / "evaluation" / "after.json").exists(), output
    code, output = start(words, tmp_path)
    assert code == 0 and "resuming after step 1" in output, output
    assert trajectories.differences(run, tmp_path / "run") == []


@pytest.mark.property(25)
def test_every_metric_of_a_step_is_logged_and_agrees_with_its_rollouts(run: Path) -> None:
    logged = metrics_of(run)
    with open(run / "metrics.csv", newline="") as lines:
        table = [{name: float(cell) for name, cell in row.items() if cell} for row in csv.DictReader(lines)]
    assert table == logged
    steps = rollouts(run)
    assert [row["step"] for row in logged] == [*steps] == [*range(1, STEPS + 1)]
    for row, rows in zip(logged, steps.values(), strict=True):
        expected = {
            "reward/mean": fmean(one["reward"] for one in rows),
            **{f"reward/{term}": fmean(one["terms"][term] for one in rows) for term in rows[0]["terms"]},
            "success/mean": fmean(one["outcome"] == "passed" for one in rows),
            "tokens/completion_mean": fmean(one["tokens"] for one in rows),
            "tokens/completion_max": max(one["tokens"] for one in rows),
            "samples/sampled": len(rows),
        }
        assert {name: row.get(name) for name in expected} == pytest.approx(expected)
        assert {name for name in row if name.startswith("reward/")} == {
            "reward/std",
            *(name for name in expected if name.startswith("reward/")),
        }
        assert row.keys() >= {"loss", "entropy", "kl/old", "grad_norm", "learning_rate", "clip/low", "clip/high"}


@pytest.mark.property(27)
def test_the_band_stays_if_the_rate_equals_the_threshold(data: Path, tmp_path: Path) -> None:
    """Random weights solve nothing, and the threshold is 0."""
    words = ["curriculum=staged", "curriculum.threshold=0", "curriculum.window=2", "model.from_scratch=true"]
    words += ["algorithm.kl_coef=0", "algorithm.max_steps=3", "evaluation.tasks=1", f"data.path={data}"]
    code, output = start([*WORDS, *words, "data.limit=40"], tmp_path)
    assert code == 0, output
    logged = metrics_of(tmp_path / "run")
    assert [row["success/mean"] for row in logged] == [0.0] * 3
    assert [row["curriculum/band"] for row in logged] == [0.0] * 3


@pytest.mark.property(36)
def test_no_copy_of_a_held_out_task_is_trained_on(run: Path, data: Path) -> None:
    """The ordered curriculum would pick some of the copies, since they are among the easiest tasks."""
    train = sorted(Arc(path=str(data)).splits()["train"], key=lambda task: task.difficulty)
    trained = {row["task"] for rows in rollouts(run).values() for row in rows}
    assert any(task.id.startswith("copy-") for task in train[: len(trained)])
    assert len(trained) == 4 * STEPS and not any(task.startswith("copy-") for task in trained)


@pytest.mark.property(36)
def test_measuring_the_tasks_that_are_trained_on_is_refused(data: Path, tmp_path: Path) -> None:
    code, output = start([*ORDERED, f"data.path={data}", "evaluation.split=train"], tmp_path)
    assert code == 2 and "tasks that are trained on are also held out for evaluation" in output, output
