"""+stage=ppo through its command: a quick run with a penalty in the reward and a replay, and its files."""

import json
import math
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from program import ENVIRONMENT, PROGRAM

from rlvr_exp.records.rollout_files import read_rollouts, rollout_steps

SMALL = ["evaluation.tasks=2", "evaluation.samples=2", "model.max_completion_tokens=16"]
OPTIONS = ["algorithm.kl_coef=0.01", "algorithm.replay_steps=2", "algorithm.replay_prompts=2"]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("ppo")
    words = [*PROGRAM, "+stage=ppo", "+experiment=quick", *SMALL, *OPTIONS, "run.dir=run"]
    done = subprocess.run(words, cwd=place, env=ENVIRONMENT, capture_output=True, text=True, timeout=600)
    log = place / "run" / "log.txt"
    assert done.returncode == 0, done.stdout + done.stderr + (log.read_text() if log.exists() else "")
    return place / "run"


def rows_of(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_every_update_tells_its_losses_clips_and_distances(run):
    rows = rows_of(run)
    assert [row["step"] for row in rows] == [1, 2, 3, 4]
    wanted = {"policy/loss", "value/loss", "clip/low", "clip/high", "value/clipped", "kl/old", "grad_norm", "loss"}
    for row in rows:
        assert wanted <= set(row) and all(math.isfinite(row[name]) for name in wanted)
    sampled = [row for row in rows if "samples/sampled" in row]
    assert [row["step"] for row in sampled] == [1, 3], "two updates on each batch"
    for row in sampled:
        assert row["samples/trained"] + row["samples/no_verdict"] == row["samples/sampled"] == 32
        assert {"value/explained_variance", "kl", "entropy", "replay/groups"} <= set(row)
    assert [row["replay/groups"] for row in sampled] == [0, 2] and "replay/weight" not in sampled[0]
    assert 0 < sampled[1]["replay/weight"] <= 1


def test_rollouts_hold_the_advantages_that_were_learned_with(run):
    files = rollout_steps(run)
    assert list(files) == [1, 3]
    first = read_rollouts(files[1])
    by_reward = sorted((one.reward, one.advantage) for one in first if one.advantage is not None)
    assert len({advantage for _, advantage in by_reward}) > 1
    assert all(a[1] <= b[1] + 0.2 for a, b in pairwise(by_reward)), "at first V is 0 everywhere"


def test_a_checkpoint_is_the_plain_policy_with_the_value_and_the_replay_beside_it(run):
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM

    latest = run / "checkpoints" / "latest"
    _, loading = AutoModelForCausalLM.from_pretrained(latest, output_loading_info=True)
    assert not any(loading.values()), loading
    value = load_file(latest / "value" / "value.safetensors")
    assert set(value) == {"output.weight", "output.bias"} and value["output.weight"].abs().sum() > 0
    kept = json.loads((latest / "state.json").read_text())["replay"]["batches"]
    assert [len(batch) for batch in kept] == [8, 8]
    assert "value/value.safetensors" in json.loads((latest / "checkpoint.json").read_text())["sha256"]
