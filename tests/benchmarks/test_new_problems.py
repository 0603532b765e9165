"""benchmark=new_problems: counts by the definition, no sample twice, and a killed run ends with the same bytes."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from program import ENVIRONMENT, INTERPRETED, PROGRAM, json_rows

from rlvr_exp.benchmarks.new_problems import Attempts, NewProblems
from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError
from rlvr_exp.tasks.base import Task

TASKS = [Task(f"task {number}", "f", 0.0, inputs=None, problem=None) for number in range(6)]
BASE = {"task 0": {3}, "task 1": {8, 20}, "task 2": {150}, "task 3": set(), "task 4": {0}, "task 5": set()}
TRAINED = {"task 0": {0}, "task 1": {7}, "task 2": {1}, "task 3": {2}, "task 4": set(), "task 5": set()}
"""The samples that pass."""


class Guesser:
    """Passes at known samples; sample 5 has no verdict."""

    def __init__(self, passing):
        self.passing, self.asked = passing, []

    def __call__(self, asked):
        self.asked += [(task.id, index) for task, index in asked]
        return [self._completion(task, index) for task, index in asked]

    def _completion(self, task, index):
        outcome = "no_verdict" if index == 5 else "passed" if index in self.passing[task.id] else "failed"
        return SimpleNamespace(verdict=SimpleNamespace(outcome=outcome), correct=outcome == "passed")


def attempts(path: Path, guesser: Guesser, batch_size: int = 100) -> Attempts:
    return Attempts(path, {"weights": "w"}, guesser, batch_size)


def silent(*_) -> None: ...


def test_solved_tasks_are_left_out_and_nothing_is_sampled_twice(tmp_path):
    guesser = Guesser(BASE)
    with attempts(tmp_path / "base.jsonl", guesser) as base:
        base.sample(TASKS, 8, silent)
        assert len(guesser.asked) == 8 * len(TASKS) == base.completions and base.no_verdict == len(TASKS)
        base.sample(TASKS[1:4], 200, silent)
    # Task 1 ends with the round of its first success, task 2 with that of 150, task 3 with the last sample.
    sampled = [max(index for name, index in guesser.asked if name == task.id) + 1 for task in TASKS]
    assert sampled == [8, 64, 192, 200, 8, 8] and len(set(guesser.asked)) == len(guesser.asked) == sum(sampled)
    again = Guesser(BASE)
    with attempts(tmp_path / "base.jsonl", again) as base:
        base.sample(TASKS[1:4], 200, silent)
        assert base.completions == sum(sampled) and not again.asked
        assert [base.solved(TASKS[2], samples) for samples in (150, 151)] == [False, True]


def test_a_file_cut_in_the_middle_of_a_row_ends_with_the_same_bytes(tmp_path):
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    for path in (one, other):
        with attempts(path, Guesser(BASE), batch_size=64) as base:
            base.sample(TASKS, 200, silent)
    other.write_bytes(other.read_bytes()[: len(one.read_bytes()) // 2])
    with attempts(other, Guesser(BASE), batch_size=64) as base:
        base.sample(TASKS, 200, silent)
    assert other.read_bytes() == one.read_bytes()


def test_tasks_are_counted_by_who_solves_them(tmp_path):
    bench = NewProblems(trained=[], base_samples=200)
    with (
        attempts(tmp_path / "base.jsonl", Guesser(BASE)) as base,
        attempts(tmp_path / "trained.jsonl", Guesser(TRAINED)) as trained,
    ):
        base.sample(TASKS, 200, silent)
        trained.sample(TASKS, 8, silent)
        found = bench.counts(TASKS, base, trained, 8)
        # Task 1 needs the base's ninth sample, task 2 its 151st, and only the trained policy solves task 3.
        assert found == {"solved": 4, "within": 1, "later": 2, "new": 1, "lost": 1}
        assert bench.counts(TASKS, base, trained, 1) == {"solved": 1, "within": 0, "later": 1, "new": 0, "lost": 1}
    page = bench.page(len(TASKS), 2, 8, {"grpo": found, "ppo": found})
    assert "| grpo | 4 (66.7%," in page and len(page.splitlines()) < 25


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["benchmark.trained=[nowhere]"], "benchmark.trained"),
        (["benchmark.base_samples=8"], "evaluation.samples"),
        (["engine=vllm"], "engine"),
    ],
)
def test_what_cannot_be_compared_is_refused(words, where):
    with pytest.raises(InputError) as refused:
        compose(["+stage=benchmark", "benchmark=new_problems", *words])
    assert where in [problem.where for problem in refused.value.problems]


SMALL = ["+stage=benchmark", "benchmark=new_problems", "evaluation.tasks=12", "evaluation.samples=4"]
SMALL += ["benchmark.base_samples=40", "evaluation.batch_size=8", "verifier.validate=0", "sandbox.workers=1"]


@pytest.mark.slow
def test_a_killed_run_continues_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    def program(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*words], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=600)

    whole = program(*PROGRAM, *SMALL, "benchmark.state=whole", "run.dir=a")
    assert whole.returncode == 0, whole.stdout + whole.stderr
    words = [*INTERPRETED, *SMALL, "benchmark.state=killed", "cache.enabled=false"]
    first = subprocess.Popen(
        [*words, "run.dir=b"], cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.DEVNULL, start_new_session=True
    )
    (expected,) = (tmp_path / "whole").glob("*.jsonl")
    out, limit = tmp_path / "killed" / expected.name, time.monotonic() + 300
    while time.monotonic() < limit and not (out.exists() and out.read_bytes().count(b"\n") > 2):
        time.sleep(0.01)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    assert 2 < out.read_bytes().count(b"\n") < len(json_rows(expected))
    done = program(*words, "run.dir=c")
    assert done.returncode == 0, done.stdout + done.stderr
    assert out.read_bytes() == expected.read_bytes()
    figures = [json.loads((tmp_path / run / "benchmark.json").read_text()) for run in ("a", "c")]
    assert figures[0] == figures[1] and figures[0]["tasks"] == 12
