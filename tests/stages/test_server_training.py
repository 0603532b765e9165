"""Training against the real `vllm serve`, which receives the trained weights: the embedded policy in float32 on a CPU."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import servers
from program import ENVIRONMENT, INTERPRETED, metrics_of, run_program

from rlvr_exp.config.model import EMBEDDED_MODELS
from rlvr_exp.records.rollout_files import read_rollouts, rollout_steps

pytestmark = [pytest.mark.vllm, pytest.mark.slow]
MODELS = {"lora": "tiny_lora", "full": "tiny"}


@pytest.fixture(scope="module", params=["lora", "full"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """What the server receives, and its address."""
    server = servers.TrainedVLLM(EMBEDDED_MODELS / "tiny", tmp_path_factory.mktemp("served"), request.param)
    yield request.param, server.url
    server.kill()


def words_of(weights: str, url: str, steps: int = 2) -> list[str]:
    words = ["+stage=grpo", "+experiment=quick", f"algorithm.max_steps={steps}", "run.probe.every_steps=1"]
    return [*words, f"model={MODELS[weights]}", "engine=server", f"engine.url={url}", f"engine.weights={weights}"]


def test_the_server_samples_with_the_weights_of_each_update(tmp_path: Path, served: tuple[str, str]) -> None:
    done = run_program(tmp_path, *words_of(*served), "run.dir=run", timeout=3000)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = metrics_of(tmp_path / "run")
    assert len(rows) == 2 and max(row["sync/probe_gap"] for row in rows) < 1e-4
    assert max(row["sampling/gap"] for row in rows) < 1e-4


def versions(run: Path) -> list[tuple[int, set[int]]]:
    """By step, the versions of the weights that sampled its completions."""
    return [
        (step, {row.completion.version for row in read_rollouts(path)}) for step, path in rollout_steps(run).items()
    ]


LAG = ["algorithm.lag=1", "engine.concurrency=1", "algorithm.prompts_per_step=4", "evaluation.tasks=2"]
LAG += ["evaluation.samples=2", "run.checkpoint.every_steps=1", "run.checkpoint.keep=9"]
MACHINE = ("time/", "system/")


def rows_of(run: Path) -> list[dict]:
    return [{name: value for name, value in row.items() if not name.startswith(MACHINE)} for row in metrics_of(run)]


def test_with_lag_a_killed_run_goes_on_as_if_it_had_not_been_killed(tmp_path: Path, served: tuple[str, str]) -> None:
    words = [*words_of(*served, steps=5), *LAG]
    done = run_program(tmp_path, *words, "run.dir=whole", timeout=3000)
    assert done.returncode == 0, done.stdout + done.stderr
    with (tmp_path / "killed.txt").open("w") as log:
        killed = subprocess.Popen([*INTERPRETED, *words, "run.dir=parts"], cwd=tmp_path, env=ENVIRONMENT, stderr=log)
        while not (tmp_path / "parts/checkpoints/step_000002").exists():
            assert killed.poll() is None, (tmp_path / "killed.txt").read_text()
            time.sleep(0.1)
        killed.kill()
        killed.wait()
    assert not (tmp_path / "parts/checkpoints/step_000005").exists()
    done = run_program(tmp_path, "run.resume=parts", timeout=3000)
    assert done.returncode == 0, done.stdout + done.stderr
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert rows_of(whole) == rows_of(parts) and len(rows_of(whole)) == 5
    files = {step: read_rollouts(path) for step, path in rollout_steps(whole).items()}
    assert files == {step: read_rollouts(path) for step, path in rollout_steps(parts).items()}
    versions = {step: {row.completion.version for row in rows} for step, rows in files.items()}
    assert versions == {1: {0}, 2: {0}, 3: {1}, 4: {2}, 5: {3}}
    last = Path("checkpoints/step_000005") / (
        "adapter_model.safetensors" if served[0] == "lora" else "model.safetensors"
    )
    assert (whole / last).read_bytes() == (parts / last).read_bytes()
