"""Inputs of a plan: the device that it is made for, this machine by default; on a CPU the lengths of the data."""

from pathlib import Path

import pytest
from checkpoint_samples import checkpoint

from rlvr_exp.config import suited
from rlvr_exp.config.compose import compose
from rlvr_exp.config.parallel import NAMED, Device
from rlvr_exp.core import machine
from rlvr_exp.core.errors import InputError
from rlvr_exp.memory import reading
from rlvr_exp.memory.advice import memory, room
from rlvr_exp.memory.phases import EXAMPLE, estimate
from rlvr_exp.memory.reading import DataLengths, Lengths, workload_of

QWEN = {
    "model_type": "qwen2",
    "num_hidden_layers": 28,
    "hidden_size": 3584,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "intermediate_size": 18944,
    "vocab_size": 152064,
}
CPU, GPU = Device(False, 16.0, False), Device(True, 23.5, True)
DRY = "run.dry=true"


def given(monkeypatch: pytest.MonkeyPatch, here: Device = CPU, free: float = 8.0) -> None:
    for place in (suited, reading):
        monkeypatch.setattr(place, "device", lambda: here)
    monkeypatch.setattr(machine, "available", lambda: int(free * 2**30))
    monkeypatch.setattr(machine, "total", lambda: 16 * 2**30)


def text(*words: str) -> str:
    return "\n".join(memory(compose(["+stage=grpo", DRY, *words]).config))


@pytest.mark.parametrize("name", ["rtx5090", "a100_80gb", "h200"])
def test_a_plan_on_a_laptop_is_that_of_the_named_devices(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A 7 B model with an adapter on two devices: today float32, 207 GiB."""
    path = checkpoint(tmp_path, 7_615_616_512, 32768, **QWEN)
    words = [
        "+stage=grpo",
        f"model.path={path}",
        "parallel=zero2",
        "model.adapter.kind=lora",
        f"parallel.device={name}",
        DRY,
    ]
    given(monkeypatch)
    planned = compose(words)
    given(monkeypatch, NAMED[name])
    there = compose([word for word in words if not word.startswith("parallel.device")])
    assert planned.settings == there.settings
    assert planned.config.model.dtype == "bfloat16"
    given(monkeypatch)
    assert workload_of(planned.config).width == 2 and not workload_of(planned.config).cpu
    assert room(planned.config) == NAMED[name].memory_gib
    assert "TOO MUCH" not in text(*words[1:]) and f"2 devices ({name})" in text(*words[1:])


def test_a_device_without_bfloat16_is_planned_in_float32(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, GPU)
    words = [f"model.path={checkpoint(tmp_path, **QWEN)}", DRY]
    assert compose(["+stage=evaluate", "parallel.device=t4", *words]).config.model.dtype == "float32"
    assert compose(["+stage=evaluate", *words]).config.model.dtype == "bfloat16"


def test_a_run_takes_the_device_of_its_machine_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch)
    words = ["+stage=grpo", f"model.path={checkpoint(tmp_path)}", "parallel.device=rtx5090"]
    config = compose(words).config
    assert config.model.dtype == "float32"
    assert any("the plan is for rtx5090" in line for line in suited.advice(config))
    assert not any("rtx5090" in line for line in suited.advice(compose([*words, DRY]).config))
    given(monkeypatch, GPU)
    assert any("23.5 GiB, fewer than the 31.3 of rtx5090" in line for line in suited.advice(config))
    given(monkeypatch, NAMED["rtx5090"])
    assert not any("rtx5090" in line for line in suited.advice(config))


def test_an_unknown_device_is_refused_with_the_list() -> None:
    with pytest.raises(InputError, match="rtx5090.*l40s"):
        compose(["+stage=grpo", "parallel.device=rtx6090"])


def test_a_memory_alone_is_that_of_a_gpu_and_a_part_of_a_named_one(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch)
    alone = compose(["+stage=grpo", "model=llama8b", "parallel.device_memory_gib=47"]).config
    assert room(alone) == 47 and not workload_of(alone).cpu
    part = compose(["+stage=grpo", "parallel.device=h100_80gb", "parallel.device_memory_gib=39.5"]).config
    assert room(part) == 39.5
    cpu = compose(["+stage=grpo", "parallel.device=cpu", "parallel.device_memory_gib=8"]).config
    assert room(cpu) == 8 and workload_of(cpu).cpu


def test_without_a_device_a_plan_compares_with_what_is_free_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, free=8.0)
    found = text("model=qwen_coder_1_5b", "optimizer=adamw_8bit")
    assert "this machine, 8.0 of 16.0 GiB are free" in found and "of 8 GiB" in found and "TOO MUCH" in found
    assert "TOO MUCH" not in text("model=tiny", "algorithm.max_tokens_per_device=4096")
    given(monkeypatch, free=0.5)
    assert "TOO MUCH" in text("model=tiny", "algorithm.max_tokens_per_device=4096")


def test_processes_on_a_cpu_share_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, free=8.0)
    config = compose(["+stage=grpo", "parallel=ddp", "parallel.processes=4"]).config
    assert room(config) == 2 and "shared by 4 processes" in text("parallel=ddp", "parallel.processes=4")


def test_a_gpu_of_this_machine_is_compared_with(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, GPU)
    assert "of 23.5 GiB" in text("model=llama8b") and "memory of the device:" in text("model=llama8b")


ON_CPU, ON_GPU = "parallel.device=cpu", "parallel.device=rtx5090"


def test_more_prompts_have_a_shorter_mean_in_their_longest_batch() -> None:
    lengths = Lengths([10] * 90 + [100] * 10, [0] * 100)
    assert lengths.prompt(1) == 100 > lengths.prompt(8) > lengths.prompt(64) > lengths.prompt(100) == 19


def test_the_longest_pass_of_a_batch_counts() -> None:
    lengths = Lengths([10] * 100, [2] * 90 + [90] * 10)
    longest, all_alike = sum(lengths.example(batch=32, size=4)), sum(lengths.example(batch=100, size=100))
    assert longest == 100 and all_alike == pytest.approx(10 + 10.8, abs=1)


def test_training_on_a_cpu_is_planned_with_the_prompts_of_its_data() -> None:
    words = ["+stage=grpo", "model=tiny", "data=arc", "algorithm.prompts_per_step=2"]
    config = compose([*words, ON_CPU]).config
    found, workload = DataLengths(config).of(""), workload_of(config)
    assert found is not None and max(found.prompts) <= config.model.max_prompt_tokens
    assert workload.prompt == found.prompt(2) < config.model.max_prompt_tokens
    assert workload_of(compose([*words, ON_GPU]).config).prompt == config.model.max_prompt_tokens


def test_imitation_on_a_cpu_is_planned_with_its_examples() -> None:
    words = ["+stage=sft", "model=tiny", "data=arc", "algorithm.batch_size=8"]
    on_cpu, on_gpu = (workload_of(compose([*words, device]).config) for device in (ON_CPU, ON_GPU))
    assert on_cpu.tokens < on_gpu.tokens
    assert len(on_cpu.groups) == len(on_gpu.groups) == 8


def test_imitation_is_planned_with_all_demonstrations_of_its_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "TASKS", 100)
    config = compose(
        ["+stage=sft", "model=tiny", "data=problems", "data.limit=200", "algorithm.batch_size=8", ON_CPU]
    ).config
    found, workload = DataLengths(config).of("train"), workload_of(config)
    assert found is not None and len(found.prompts) > 2 * 100
    assert workload.examples == found.every * (sum(found.prompts) + sum(found.answers))
    assert estimate(workload)["backward"]["examples"] == EXAMPLE * workload.examples


def test_lengths_are_unknown_where_prompts_grow_or_the_tokenizer_is_not_here() -> None:
    assert DataLengths(compose(["+stage=grpo", "model=llama8b", ON_CPU]).config).of("") is None
    assert DataLengths(compose(["+stage=cascade", ON_CPU]).config).of("") is None
