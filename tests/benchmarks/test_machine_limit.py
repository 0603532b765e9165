"""The limit of the machine: the work of a batch, counted by hand, and the greater of memory and compute time."""

import torch

from rlvr_exp.benchmarks.machine_limit import MachineLimit, SamplingWork, fastest
from rlvr_exp.config.architecture import Architecture
from rlvr_exp.memory.workload import SamplingBatch, Workload

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


def test_a_machine_reads_and_multiplies(monkeypatch):
    monkeypatch.setattr("rlvr_exp.benchmarks.arithmetic.WIDTH", 128)
    monkeypatch.setattr("rlvr_exp.benchmarks.machine_limit.READ", 2**20)
    found = MachineLimit.measured(torch.float32, "cpu")
    assert 1e7 < found.bytes_per_s < 1e13 and 1e7 < found.flop_per_s < 1e14
