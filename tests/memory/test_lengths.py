"""On a CPU the memory plan has the lengths of the data; on a GPU, which a run tries with them, the longest allowed."""

import pytest

from rlvr_exp.config.compose import compose
from rlvr_exp.memory.phases import EXAMPLE, estimate
from rlvr_exp.memory.reading import TASKS, DataLengths, Lengths, workload_of

CPU, GPU = "parallel.device=cpu", "parallel.device=rtx5090"


def test_more_prompts_have_a_shorter_mean_in_their_longest_batch() -> None:
    lengths = Lengths([10] * 90 + [100] * 10, [0] * 100)
    assert lengths.prompt(1) == 100 > lengths.prompt(8) > lengths.prompt(64) > lengths.prompt(100) == 19


def test_the_longest_pass_of_a_batch_counts() -> None:
    lengths = Lengths([10] * 100, [2] * 90 + [90] * 10)
    longest, all_alike = sum(lengths.example(batch=32, size=4)), sum(lengths.example(batch=100, size=100))
    assert longest == 100 and all_alike == pytest.approx(10 + 10.8, abs=1)


def test_training_on_a_cpu_is_planned_with_the_prompts_of_its_data() -> None:
    words = ["+stage=grpo", "model=tiny", "data=arc", "algorithm.prompts_per_step=2"]
    config = compose([*words, CPU]).config
    found, workload = DataLengths(config).of(""), workload_of(config)
    assert found is not None and max(found.prompts) <= config.model.max_prompt_tokens
    assert workload.prompt == found.prompt(2) < config.model.max_prompt_tokens
    assert workload_of(compose([*words, GPU]).config).prompt == config.model.max_prompt_tokens


def test_imitation_on_a_cpu_is_planned_with_its_examples() -> None:
    words = ["+stage=sft", "model=tiny", "data=arc", "algorithm.batch_size=8"]
    on_cpu, on_gpu = (workload_of(compose([*words, device]).config) for device in (CPU, GPU))
    assert on_cpu.tokens < on_gpu.tokens
    assert len(on_cpu.groups) == len(on_gpu.groups) == 8


def test_imitation_is_planned_with_all_demonstrations_of_its_tasks() -> None:
    config = compose(["+stage=sft", "model=tiny", "data=problems", "algorithm.batch_size=8", CPU]).config
    found, workload = DataLengths(config).of("train"), workload_of(config)
    assert found is not None and len(found.prompts) > 2 * TASKS
    assert workload.examples == found.every * (sum(found.prompts) + sum(found.answers))
    assert estimate(workload)["backward"]["examples"] == EXAMPLE * workload.examples


def test_lengths_are_unknown_where_prompts_grow_or_the_tokenizer_is_not_here() -> None:
    assert DataLengths(compose(["+stage=grpo", "model=llama8b", CPU]).config).of("") is None
    assert DataLengths(compose(["+stage=cascade", CPU]).config).of("") is None
