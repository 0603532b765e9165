"""What only a GPU can show. Run by launchers/gpu.sh, or `-m gpu`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rlvr_exp.algorithms.packed_layers import choose
from rlvr_exp.algorithms.packing import FLEX, SDPA_PACKED
from rlvr_exp.benchmarks import packing
from rlvr_exp.benchmarks.memory import random_model, required_workload, roll_out
from rlvr_exp.config.compose import compose
from rlvr_exp.rollouts.sampler import sample_groups, score
from rlvr_exp.rollouts.sampling_params import LogitFilters, SamplingParams

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is here")]

LENGTHS = (
    "model.max_prompt_tokens=96",
    "model.max_completion_tokens=64",
    "algorithm.group_size=4",
    "algorithm.max_tokens_per_device=2048",
)
QWEN3 = (
    "model=qwen14b",
    "model.quantization=none",
    "model.adapter.kind=none",
    "optimizer.lr=1e-6",
    "parallel=single",
    "model.architecture.layers=2",
    "model.architecture.hidden=512",
    "model.architecture.heads=8",
    "model.architecture.kv_heads=2",
    "model.architecture.intermediate=1024",
    "model.architecture.vocabulary=4096",
)


def composed(*words: str):
    return compose(["+stage=benchmark", "benchmark=packing", *QWEN3, *LENGTHS, *words]).config


@pytest.mark.parametrize("way", [FLEX, SDPA_PACKED])
def test_packed_rows_have_the_log_probabilities_and_gradients_of_padded_ones(way: str) -> None:
    config = composed()
    apart = packing.agreement(config, required_workload(config), way, "cuda")
    assert max(apart) < packing.ALIKE


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_grouped_queries_are_packed_by_flex_attention(dtype: str) -> None:
    config = composed(f"model.dtype={dtype}")
    workload = required_workload(config)
    found = choose(random_model(config, workload, "cuda"), workload.limit, torch.device("cuda"), getattr(torch, dtype))
    assert found.implementation == FLEX, found.reasons


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_is_recorded_while_sampling_is_what_scoring_says(dtype: str) -> None:
    config = composed(f"model.dtype={dtype}")
    model = random_model(config, required_workload(config), "cuda").eval()
    prompts = [[3, 5, 8, 13], [21, 34, 55, 89, 144]]
    keys = [[("gpu", prompt, sample) for sample in range(4)] for prompt in range(2)]
    drawn = sample_groups(model, prompts, keys, SamplingParams(LogitFilters(), 16, (-1,)))
    recorded = torch.tensor([sample.logprobs for group in drawn for sample in group])
    ids = [[list(sample.ids) for sample in group] for group in drawn]
    assert (score(model, prompts, ids, 1.0) - recorded).abs().max() < 1e-5


@pytest.mark.parametrize("bits", ["8bit", "4bit"])
def test_an_adapter_over_fewer_bits_learns(bits: str) -> None:
    pytest.importorskip("bitsandbytes")
    config = composed("model.dtype=bfloat16", f"model.quantization={bits}", "model.adapter.kind=lora")
    workload = required_workload(config)
    model, samples = random_model(config, workload, "cuda"), packing.samples_of(workload, 0)
    packing.Learner(model, SDPA_PACKED, samples.passes(SDPA_PACKED, workload.limit), "cuda", mixed=True)()
    gradients = [weight.grad for weight in model.parameters() if weight.requires_grad]
    assert all(torch.isfinite(one).all() for one in gradients) and any(one.abs().max() > 0 for one in gradients)
    with torch.inference_mode():
        roll_out(model.eval(), workload)


@pytest.mark.parametrize(
    "words",
    [
        ["+stage=sft"],
        ["+stage=grpo"],
        ["+stage=ppo"],
        ["+stage=grpo", "parallel=ddp", "parallel.share_device=true"],
    ],
    ids=" ".join,
)
def test_a_quick_run_completes(words: list[str], tmp_path: Path) -> None:
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "rlvr_exp", *words, "+experiment=quick", f"run.dir={tmp_path / 'run'}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
