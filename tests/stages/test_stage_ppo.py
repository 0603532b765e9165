"""+stage=ppo through its command: a quick run with a penalty in the reward and a replay, and its files."""

import json
import math
import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from program import ENVIRONMENT, PROGRAM, metrics_of

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


def test_every_update_tells_its_losses_clips_and_distances(run):
    rows = metrics_of(run)
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


STEPS, PROMPTS, SIZE = 4, 4, 4


@pytest.fixture(scope="module")
def dapo(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("dapo")
    sizes = {
        "max_steps": STEPS,
        "prompts_per_step": PROMPTS,
        "group_size": SIZE,
        "rollout_steps": 2,
        "resample_budget": 3,
    }
    words = ["+stage=grpo", "+experiment=quick", "algorithm=dapo", *(f"algorithm.{k}={v}" for k, v in sizes.items())]
    command = [*PROGRAM, *words, "evaluation.tasks=4", "verifier.validate=2", "run.dir=run"]
    done = subprocess.run(command, cwd=place, env=ENVIRONMENT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return place / "run"


@pytest.mark.slow
def test_the_books_of_every_step_add_up_to_what_its_rollouts_hold(dapo):
    rows = metrics_of(dapo)
    assert [row["step"] for row in rows] == list(range(1, STEPS + 1))
    for row, path in zip(rows, rollout_steps(dapo).values(), strict=True):
        parts = [row[f"samples/{part}"] for part in ("trained", "filtered", "pending", "no_verdict")]
        assert sum(parts) == row["samples/sampled"]
        samples = read_rollouts(path)
        fates = Counter(one.fate for one in samples)
        assert fates["trained"] == row["samples/trained"] == sum(one.advantage is not None for one in samples)
        assert sum(one.waited == 0 for one in samples) == row["samples/sampled"]


@pytest.mark.slow
def test_groups_that_wait_are_trained_on_later(dapo):
    waited = [one for path in rollout_steps(dapo).values() for one in read_rollouts(path) if one.waited]
    assert waited and {one.fate for one in waited} <= {"trained", "no_verdict"}
    put_by = sum(row["samples/pending"] for row in metrics_of(dapo))
    state = json.loads((dapo / "checkpoints" / "latest" / "state.json").read_text())["collector"]
    assert put_by == SIZE * len(state["waiting"])


@pytest.mark.slow
def test_every_row_has_the_figures_of_an_update(dapo):
    for row in metrics_of(dapo):
        assert {"entropy", "grad_norm", "grad_norm/after", "clip/low", "clip/high", "kl/old", "loss"} <= set(row)
    # The first step's learning rate is 0; the last one is the second of its batch.
    assert metrics_of(dapo)[-1]["kl/old"] > 1e-8 > abs(metrics_of(dapo)[0]["kl/old"])
