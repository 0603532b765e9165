"""Training against the real `vllm serve`, which receives the trained weights: the embedded policy in float32 on a CPU."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import servers
from program import metrics_of, run_program

from rlvr_exp.config.model import EMBEDDED_MODELS

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
