"""Training against the real `vllm serve`, which receives the trained weights: the embedded policy in float32 on a CPU."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import servers
from program import ENVIRONMENT, INTERPRETED, metrics_of, run_program

from rlvr_exp.config.model import EMBEDDED_MODELS
from rlvr_exp.core.errors import GUARD
from rlvr_exp.records.rollout_files import read_rollouts, rollout_steps

pytestmark = [pytest.mark.vllm, pytest.mark.slow]
MODELS = {"lora": "tiny_lora", "full": "tiny"}


@pytest.fixture(scope="module", params=["lora", "full"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Any]]:
    """What the server receives, and the server."""
    server = servers.TrainedVLLM(EMBEDDED_MODELS / "tiny", tmp_path_factory.mktemp("served"), request.param)
    yield request.param, server
    server.kill()


@pytest.fixture(scope="module")
def whole(served: tuple[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with lag that nothing disturbs."""
    folder = tmp_path_factory.mktemp("whole")
    done = run_program(folder, *words_of(*served, steps=5), *LAG, "run.dir=whole", timeout=3000)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "whole"


def words_of(weights: str, server: Any, steps: int = 2) -> list[str]:
    words = ["+stage=grpo", "+experiment=quick", f"algorithm.max_steps={steps}", "run.probe.every_steps=1"]
    return [
        *words,
        f"model={MODELS[weights]}",
        "engine=server",
        f"engine.url={server.url}",
        f"engine.weights={weights}",
    ]


def test_the_server_samples_with_the_weights_of_each_update(tmp_path: Path, served: tuple[str, Any]) -> None:
    done = run_program(tmp_path, *words_of(*served), "run.dir=run", timeout=3000)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = metrics_of(tmp_path / "run")
    assert len(rows) == 2 and max(row["sync/probe_gap"] for row in rows) < 1e-4
    assert max(row["sampling/gap"] for row in rows) < 1e-4


LAG = ["algorithm.lag=1", "engine.concurrency=1", "algorithm.prompts_per_step=4", "evaluation.tasks=2"]
LAG += ["evaluation.samples=2", "run.checkpoint.every_steps=1", "run.checkpoint.keep=9"]
MACHINE = ("time/", "system/")


def rows_of(run: Path) -> list[dict]:
    return [{name: value for name, value in row.items() if not name.startswith(MACHINE)} for row in metrics_of(run)]


def rollouts_of(run: Path) -> dict:
    return {step: read_rollouts(path) for step, path in rollout_steps(run).items()}


def check_same(run: Path, whole: Path, weights: str) -> None:
    """The same rows, rollouts and weights."""
    assert rows_of(run) == rows_of(whole) and len(rows_of(whole)) == 5
    assert rollouts_of(run) == rollouts_of(whole)
    last = Path("checkpoints/step_000005") / ("adapter_model.safetensors" if weights == "lora" else "model.safetensors")
    assert (run / last).read_bytes() == (whole / last).read_bytes()


@contextmanager
def started(folder: Path, *words: str) -> Iterator[subprocess.Popen]:
    with (folder / "said.txt").open("w") as log:
        process = subprocess.Popen([*INTERPRETED, *words], cwd=folder, env=ENVIRONMENT, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def wait_for(found: Callable[[], bool], process: subprocess.Popen, folder: Path) -> None:
    while not found():
        assert process.poll() is None, (folder / "said.txt").read_text()
        time.sleep(0.05)


def test_with_lag_the_next_batch_has_the_weights_before_the_update(whole: Path) -> None:
    found = {step: {row.completion.version for row in rows} for step, rows in rollouts_of(whole).items()}
    assert found == {1: {0}, 2: {0}, 3: {1}, 4: {2}, 5: {3}}
    gaps = [row["sampling/gap"] for row in rows_of(whole)]
    assert gaps[0] < 1e-5 and 1e-4 < gaps[-1] < 1  # The first update has a learning rate of 0.


def test_a_killed_run_goes_on_as_if_it_had_not_been_killed(
    tmp_path: Path, served: tuple[str, Any], whole: Path
) -> None:
    with started(tmp_path, *words_of(*served, steps=5), *LAG, "run.dir=run") as process:
        wait_for((tmp_path / "run/checkpoints/step_000002").exists, process, tmp_path)
    assert not (tmp_path / "run/checkpoints/step_000005").exists()
    left = set((tmp_path / "run").glob(".weights_*"))
    done = run_program(tmp_path, "run.resume=run", timeout=3000)
    assert done.returncode == 0, done.stdout + done.stderr
    check_same(tmp_path / "run", whole, served[0])
    assert left and not left & set((tmp_path / "run").glob(".weights_*"))


def test_a_server_that_dies_in_a_step_is_waited_for(tmp_path: Path, served: tuple[str, Any], whole: Path) -> None:
    weights, server = served
    with started(tmp_path, *words_of(*served, steps=5), *LAG, "run.dir=run") as process:
        wait_for(lambda: (tmp_path / "run/checkpoints/step_000002").exists() and server.running(), process, tmp_path)
        server.kill()
        server.start(wait=False)
        assert process.wait(timeout=1500) == 0, (tmp_path / "said.txt").read_text()
    assert "answers again and has received the weights" in (tmp_path / "said.txt").read_text()
    check_same(tmp_path / "run", whole, weights)
    assert not list((tmp_path / "run").glob(".weights_*"))


def test_a_server_that_stays_away_ends_the_run_with_its_checkpoint(tmp_path: Path, served: tuple[str, Any]) -> None:
    words = [*words_of(*served, steps=5), *LAG, "engine.timeout_s=20", "engine.retries=1", "run.dir=run"]
    with started(tmp_path, *words) as process:
        wait_for(lambda: (tmp_path / "run/checkpoints/step_000002").exists() and served[1].running(), process, tmp_path)
        served[1].kill()
        code = process.wait(timeout=600)
    said = (tmp_path / "said.txt").read_text()
    served[1].start()
    assert code == GUARD and "has not come back within 20 s" in said
    assert (
        "The last checkpoint is" in said
        and "checkpoints/step_00000" in said
        and f"run.resume={tmp_path / 'run'}" in said
    )
