"""Our sampler against the library's, and the limits of the machine: operations counted by hand and by torch."""

from pathlib import Path

import pytest
import torch
from functions import measured
from torch.utils.flop_counter import FlopCounterMode
from transformers import LlamaConfig, LlamaForCausalLM

from rlvr_exp.algorithms.logprobs import score
from rlvr_exp.algorithms.packing import packed
from rlvr_exp.algorithms.training_batch import TrainingBatch, pad_left, pad_right
from rlvr_exp.benchmarks.machine_limit import MachineLimit, SamplingWork, fastest, update_flops
from rlvr_exp.benchmarks.memory import random_model, required_workload
from rlvr_exp.benchmarks.sampling import generate
from rlvr_exp.config.architecture import Architecture
from rlvr_exp.config.compose import compose
from rlvr_exp.memory.workload import SamplingBatch, Workload

SMALL = (
    "model.max_prompt_tokens=6",
    "model.max_completion_tokens=4",
    "algorithm.group_size=3",
    "algorithm.prompts_per_step=2",
    "evaluation.samples=3",
    "evaluation.batch_size=6",
    "benchmark.rounds=2",
)


def test_the_library_draws_every_completion_at_the_longest_length() -> None:
    config = compose(["+stage=benchmark", "benchmark=sampling", *SMALL]).config
    workload = required_workload(config)
    drawn = generate(random_model(config, workload, "cpu").eval(), workload.sampling_batch)
    assert drawn.shape == (2 * 3, 6 + 4)


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure the machine with small matrices and little memory."""
    monkeypatch.setattr("rlvr_exp.benchmarks.machine_limit.SIDE", 128)
    monkeypatch.setattr("rlvr_exp.benchmarks.machine_limit.READ", 2**20)


@pytest.mark.usefixtures("small_limits")
def test_both_are_timed_and_their_memory_is_told(tmp_path: Path) -> None:
    text, metrics = measured(tmp_path, "sampling", *SMALL)
    assert text.startswith("2 prompts of 6 tokens x 3 completions of 4") and text.count("GiB") == 2
    assert "share of the limit: ours" in text and 0 < metrics["share_of_limit/ours"] < 2
    assert metrics["faster"] > 0 and metrics["per_s/ours"] > 0 and metrics["per_s/generate"] > 0


SHAPE = Architecture(2, 8, 2, 1, 4, 16, 32, True)
LAYER = 8 * 8 + 2 * 4 * 8 + 8 * 8 + 3 * 8 * 16


def work(groups: int, size: int, prompt: int, completion: int) -> SamplingWork:
    batch = SamplingBatch(groups, size, prompt, completion)
    return SamplingWork.of(Workload(SHAPE, "float32", prompt, completion, size, 1000, groups, batch))


def test_one_token_of_a_prompt_costs_the_layers_and_the_head_once():
    found = work(1, 1, 2, 1)
    assert found.flop == 2 * (2 * LAYER * 2 + 32 * 8) + 4 * 2 * 2 * 4 * 2
    assert found.bytes == 4 * (2 * LAYER + 32 * 8 + 2 * 2 * 4 * (2 + 0.5))


def test_further_completions_share_the_prompt_and_the_reads_of_the_weights():
    one, eight = work(1, 1, 10, 20), work(1, 8, 10, 20)
    assert 4 < eight.flop / one.flop < 8
    assert eight.bytes < 2 * one.bytes


def test_the_limit_is_the_greater_of_memory_and_compute_time():
    of = SamplingWork(flop=300.0, bytes=100.0)
    assert MachineLimit(10.0, 100.0).seconds(of) == 10.0
    assert MachineLimit(100.0, 100.0).seconds(of) == 3.0
    assert fastest([MachineLimit(1.0, 5.0), MachineLimit(2.0, 4.0)]) == MachineLimit(2.0, 5.0)


@pytest.mark.usefixtures("small_limits")
def test_a_machine_reads_and_multiplies():
    found = MachineLimit.measured(torch.float32, "cpu")
    assert 1e7 < found.bytes_per_s < 1e13 and 1e7 < found.flop_per_s < 1e14


PROMPTS = [[3] * 9, [4] * 5]
LENGTHS = [6, 8, 3, 7]


def model() -> LlamaForCausalLM:
    shape = dict(vocab_size=50, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4)
    return LlamaForCausalLM(LlamaConfig(**shape, num_key_value_heads=2, tie_word_embeddings=True))


def batch(advantages: list[float]) -> TrainingBatch:
    prompt_ids, prompt_mask = pad_left([prompt for prompt in PROMPTS for _ in range(2)], 0)
    ids, mask = pad_right([[5] * length for length in LENGTHS], 0)
    return TrainingBatch(
        prompt_ids=prompt_ids,
        prompt_mask=prompt_mask,
        completion_ids=ids,
        completion_mask=mask,
        sampling_logprobs=torch.zeros(ids.shape),
        advantages=torch.tensor(advantages)[:, None] * mask,
        weights=mask / mask.sum(),
        sizes=(2, 2),
        group_ids=torch.tensor([0, 0, 1, 1]),
    )


def test_products_are_counted_as_torch_counts_them():
    made, prompts = model(), [prompt for prompt in PROMPTS for _ in range(2)]
    rows = packed(prompts, [[5] * length for length in LENGTHS], [0, 0, 1, 1], 8)
    with FlopCounterMode(display=False) as counted:
        score(made, rows, 1.0, fused=False).logprobs.sum().backward()
    found = {str(name): count for name, count in counted.get_flop_counts()["Global"].items()}
    products = sum(count for name, count in found.items() if name in ("aten.mm", "aten.addmm"))
    pairs = sum(p * p / 2 + p * (a + b) + (a * a + b * b) / 2 for p, a, b in ((8, 6, 8), (4, 3, 7)))
    attention = 3 * 2 * (2 * made.config.num_hidden_layers * made.config.hidden_size) * pairs
    assert update_flops(made, batch([1, -1, 1, -1])) == pytest.approx(products + attention)


def test_samples_without_a_gradient_need_no_operations():
    made = model()
    assert update_flops(made, batch([0, 0, 0, 0])) == 0
    whole, half = update_flops(made, batch([1, 1, 1, 1])), update_flops(made, batch([1, 1, 0, 0]))
    assert 0.5 * whole < half < whole
    assert update_flops(made, batch([1, 1, 0, 0]), reference=True) > 4 / 3 * half
    made.requires_grad_(False)
    assert update_flops(made, batch([1, 1, 1, 1])) == pytest.approx(2 / 3 * whole, rel=0.05)
