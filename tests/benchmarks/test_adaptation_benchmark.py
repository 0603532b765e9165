"""benchmark=adaptation: plain rounds end by the budget or by success, and the report counts both sides in pairs."""

from pathlib import Path

import pytest

from rlvr_exp.benchmarks.adaptation import ADAPTED, PLAIN, PLAIN_ROUND, PlainRounds, Tried, figures, page
from rlvr_exp.config.compose import compose
from rlvr_exp.config.model import Model
from rlvr_exp.config.stage_options import Infer
from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.inference import Engine, load
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext
from rlvr_exp.stages import benchmark
from rlvr_exp.verifiers.python_io import PythonIO

SIDES = {
    ADAPTED: [Tried(1, True, True, 128, 1.0), Tried(2, False, True, 256, 3.0), Tried(0, False, False, 512, 5.0)],
    PLAIN: [Tried(1, True, True, 256, 1.0), Tried(0, False, False, 512, 5.0), Tried(0, False, False, 512, 6.0)],
}


def test_the_figures_count_tasks_by_side() -> None:
    found = figures(10, SIDES)
    assert found["tasks"] == 10 and found["unsolved"] == 3
    assert [found[f"adaptation/{name}"] for name in ("solved_with_1", "solved_with_2", "passed")] == [1, 2, 1]
    assert found["plain_samples/solved_with_2"] == 1 and found["adaptation/seconds"] == 3.0


def test_the_report_has_a_paired_difference() -> None:
    text = page(10, SIDES)
    assert "| adaptation | 1 | 2 | 1 | 299 | 3.00 |" in text and "| plain samples | 1 | 1 | 1 | 427 | 4.00 |" in text
    assert "Adaptation gains +33.3 points with two answers (95% CI -110.1 to 176.8)." in text


@pytest.mark.parametrize(("seconds", "rounds"), [(0.0, 1), (60.0, 3)])
def test_plain_rounds_end_with_their_seconds_and_learn_nothing(seconds: float, rounds: int) -> None:
    task = Arc().splits()["test_unseen"][0]
    options = Infer(decoding="sample", samples=24, vote=2, adapt_rounds=3)
    with PythonIO(Sandbox(workers=1)) as verifier:
        engine = Engine(load().policy, options, Model(), verifier, Arc())
        engine.adaptation = PlainRounds(engine.policy, verifier, seconds)
        assert not engine.solve(task).passed
    assert engine.adaptation.last.samples == 8 * rounds and not engine.adaptation.last.passed


def test_options_that_cannot_work_are_refused() -> None:
    with pytest.raises(InputError, match="benchmark.samples: each round draws at least one"):
        compose(["+stage=benchmark", "benchmark=adaptation", "benchmark.samples=7"])


@pytest.mark.slow
def test_both_sides_work_on_the_unsolved_tasks(tmp_path: Path) -> None:
    words = ["benchmark.samples=16", "benchmark.rounds=2", "evaluation.split=test_unseen", "evaluation.tasks=3"]
    manifest.begin(tmp_path, "benchmark", 0, [], "")
    config = compose(["+stage=benchmark", "benchmark=adaptation", *words, "sandbox.workers=1"]).config
    found = benchmark.run(config, RunContext(tmp_path, lambda event: None)).metrics
    assert 1 <= found["unsolved"] <= found["tasks"] == 3
    assert found["adaptation/samples"] <= 16 and found["plain_samples/samples"] >= PLAIN_ROUND
    assert "| plain samples |" in (tmp_path / "benchmark.md").read_text()
