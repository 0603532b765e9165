"""The memory estimate of the dry plan: from the shape alone, with what does not fit and what would."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from rlvr_exp.config.architecture import Architecture, read_architecture
from rlvr_exp.config.compose import compose
from rlvr_exp.config.model import EMBEDDED_MODELS
from rlvr_exp.core.errors import InputError
from rlvr_exp.launch.inference_inputs import answered_tasks
from rlvr_exp.memory import counts
from rlvr_exp.memory.advice import memory, nearest, room
from rlvr_exp.memory.phases import estimate, highest, table
from rlvr_exp.memory.plan import plan
from rlvr_exp.memory.reading import shape_of, workload_of
from rlvr_exp.memory.workload import GIB, Workload

GPU = "parallel.device=rtx5090"


def workload(*words: str) -> Workload:
    found = workload_of(compose(["+stage=grpo", GPU, *words]).config)
    assert found is not None
    return found


def said(*words: str) -> str:
    return "\n".join(memory(compose(["+stage=grpo", GPU, *words]).config))


def total(given: Workload, phase: str) -> float:
    return sum(estimate(given)[phase].values()) / GIB


@pytest.mark.parametrize(
    ("model", "parameters"),
    [("qwen14b", 14_768_307_200), ("llama8b", 8_030_261_248), ("qwen_coder_1_5b", 1_543_714_304)],
)
def test_presets_have_the_published_number_of_parameters(model: str, parameters: int) -> None:
    assert workload(f"model={model}").shape.parameters == parameters


@pytest.mark.heavy
@pytest.mark.parametrize("model", ["qwen14b", "llama8b", "qwen_coder_1_5b", "tiny"])
def test_named_parameters_add_up(model: str) -> None:
    shape = workload(f"model={model}").shape
    assert sum(size for _, size in shape.named()) == shape.parameters


def test_what_is_frozen_has_no_gradient() -> None:
    given = workload("model=qwen_coder_1_5b", "model.freeze=['model.layers.[0-9].*','model.embed_tokens.*']")
    assert counts.trained(given) == given.shape.parameters - given.frozen
    layers = 10 * (given.shape.layer_matrices + given.shape.layer_vectors)
    assert given.frozen == layers + given.shape.vocabulary * given.shape.hidden


def test_a_checkpoints_own_file_comes_before_the_preset(tmp_path: Path) -> None:
    tiny, dtype = read_architecture(EMBEDDED_MODELS / "tiny")
    assert (tiny.layers, tiny.parameters, dtype) == (5, 1_115_840, "bfloat16")
    (tmp_path / "config.json").write_text((EMBEDDED_MODELS / "tiny" / "config.json").read_text())
    config = compose(["+stage=grpo", "model=qwen14b", f"model.path={tmp_path}"]).config
    assert shape_of(config.model) == (tiny, "bfloat16")
    (tmp_path / "config.json").write_text('{"model_type": "mamba"}')
    assert read_architecture(tmp_path)[0] == Architecture()
    (tmp_path / "config.json").write_text("[]")
    assert "unknown" in said("model=tiny", f"model.path={tmp_path}")


def test_a_shape_is_given_whole() -> None:
    with pytest.raises(InputError, match="all of its options or none"):
        compose(["+stage=grpo", "model.architecture.layers=2"])
    with pytest.raises(InputError, match="kv_heads"):
        compose(["+stage=grpo", "model=qwen14b", "model.architecture.kv_heads=7"])


def test_the_14b_preset_fits_two_cards_and_the_other_plan_is_shown_as_it_is() -> None:
    text = said("model=qwen14b")
    assert "zero2" in text and "4bit" in text and "TOO MUCH" not in text
    assert "41.3 GiB" in text and "does not fit into 31.3" in text and "tokens/s" in text


def test_the_first_line_that_does_not_fit_is_named_with_settings_that_do() -> None:
    text = said("model=qwen14b_lora")
    assert "does not fit: rollout" in text and "largest line is gathered weights" in text
    assert "would fit with: parallel=zero2 model.quantization=4bit" in text


@pytest.mark.parametrize(
    "words",
    [
        ["model=llama8b", "evaluation.batch_size=512"],
        ["model=qwen14b", "model.gradient_checkpointing=false"],
        ["model=qwen_coder_1_5b", "parallel.device_memory_gib=12"],
        ["model=qwen14b", "model.quantization=none", "model.adapter.kind=none", "parallel=single"],
    ],
)
def test_settings_that_would_fit_do(words: list[str]) -> None:
    config = compose(["+stage=grpo", GPU, *words]).config
    found = nearest(workload(*words), room(config))
    assert found
    for changed in found:
        assert "TOO MUCH" not in said(*words, *changed.split()), changed


def test_what_cannot_fit_says_so() -> None:
    assert "nothing near would fit" in said("model=qwen14b", "parallel.device_memory_gib=4")


def test_bytes_of_weights_by_type() -> None:
    whole = counts.weights(workload("model=qwen14b_lora"))
    assert whole == 2 * 14_768_307_200
    four, eight = (counts.weights(workload("model=qwen14b", f"model.quantization={bits}")) for bits in ("4bit", "8bit"))
    assert 0.33 < four / whole < 0.34 and 0.55 < eight / whole < 0.56


def test_partitioning_divides_what_it_says() -> None:
    one, two = workload("model=llama8b"), workload("model=llama8b", "parallel=zero2")
    assert counts.gradients(two) == counts.gradients(one) / 4, "half of them, in half the bytes"
    assert counts.shard(two) == counts.weights(one)
    assert counts.shard(workload("model=llama8b", "parallel=zero3")) == counts.weights(one) / 2
    assert counts.states(workload("model=llama8b", "parallel=zero3_offload")) == 0


def test_optimizers_by_the_memory_of_their_states() -> None:
    model = ["model=qwen_coder_1_5b"]
    size = {
        name: counts.states(workload(*model, f"optimizer={name}"))
        for name in ("adamw", "adamw_8bit", "sgd", "adafactor", "muon")
    }
    parameters = 1_543_714_304
    assert size["adamw"] == 8 * parameters and size["sgd"] == 4 * parameters
    assert size["adamw_8bit"] == pytest.approx(2 * parameters * (1 + 4 / 256))
    assert size["adafactor"] < 0.01 * size["adamw"] and size["sgd"] < size["muon"] < size["adamw"]
    assert counts.states(workload(*model, "optimizer=sgd", "optimizer.momentum=0")) == 0


def test_a_value_of_its_own_is_a_second_network() -> None:
    words = ["+stage=ppo", "model=qwen_coder_1_5b", "algorithm.kl_coef=0"]
    shared, own = (
        workload_of(compose([*words, f"algorithm.value_trunk={trunk}"]).config) for trunk in ("shared", "own")
    )
    assert shared and own
    assert counts.trained(own) == 2 * counts.trained(shared) and counts.value_network(own) == counts.weights(shared)
    assert total(own, "backward") > 1.5 * total(shared, "backward")


def test_longer_lengths_hold_more_and_checkpointing_less() -> None:
    base = workload("model=llama8b")
    assert counts.cache(base) == 4 * (6144 + 8 * 1024) * 2 * 32 * 8 * 128 * 2
    kept = workload("model=llama8b", "model.gradient_checkpointing=false")
    assert total(kept, "backward") > 2 * total(base, "backward") and total(kept, "rollout") == total(base, "rollout")


def test_a_run_without_an_update_has_no_update_in_its_plan() -> None:
    text = "\n".join(memory(compose(["+stage=evaluate", "model=llama8b"]).config))
    assert "rollout" in text and "backward" not in text


def test_stock_computes_each_completion_with_its_prompt() -> None:
    ours = workload("model=qwen_coder_1_5b", "model.max_prompt_tokens=512", "algorithm.prompts_per_step=1")
    assert ours.tokens == 512 - 1 + 8 * 1024 and ours.of_stock.tokens == 8 * (512 - 1 + 1024)
    two = workload("model=qwen_coder_1_5b", "model.max_prompt_tokens=512", "algorithm.prompts_per_step=2").of_stock
    assert two.tokens == ours.of_stock.tokens, "8 of 16 rows fit into a pass of 16,384 tokens"


def test_the_plan_of_a_comparison_has_the_peak_of_both_sides() -> None:
    words = ["+stage=benchmark", "benchmark=training", "algorithm.prompts_per_step=1", "parallel.device=cpu"]
    found = "\n".join(memory(compose(words).config))
    ours, stock = map(float, re.findall(r"this trainer takes ([\d.]+) GiB and trl.GRPOTrainer ([\d.]+)", found)[0])
    assert 0 < ours <= stock


def test_a_plan_within_a_tenth_of_the_memory_is_tight():
    found = estimate(workload("model=tiny"))
    peak = max(sum(lines.values()) for lines in found.values()) / GIB
    for room_gib, verdict in ((peak * 1.2, "fits"), (peak * 1.05, "tight"), (peak * 0.95, "TOO MUCH")):
        rows = list(table(found, room_gib))
        assert any(verdict in row.split("GiB")[1] for row in rows if row.startswith("of ")), verdict
        assert any(row.startswith("tight: ") for row in rows) == (verdict == "tight")


def test_adapters_on_a_cpu_include_blocks_that_the_allocator_leaves_empty(monkeypatch: pytest.MonkeyPatch):
    words = ["+stage=grpo", "model=tiny", "parallel.device=cpu", "model.adapter.kind=lora"]
    given = workload_of(compose(words).config)
    before = highest(given)
    monkeypatch.setattr("rlvr_exp.memory.phases.HOLES", 0.0)
    assert before > 1.02 * highest(given)


SEVEN = ["model=qwen_coder_7b", "parallel=single", "parallel.device=rtx5090"]


def settings(*words: str) -> list[str]:
    config = compose([*words, *SEVEN]).config
    workload = workload_of(config)
    assert workload is not None
    return nearest(workload, room(config))


def rows(folder: Path, count: int) -> Path:
    path = folder / "rows.jsonl"
    lines = ({"id": f"t{n}", "prompt": f"Write f{n}.", "tests": [f"assert f{n}() == {n}"]} for n in range(count))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["+stage=infer", "infer.batch_size=512"], "infer.batch_size"),
        (["+stage=collect", "data=edits", "collect.batch_size=512"], "collect.batch_size"),
        (["+stage=evaluate", "evaluation.batch_size=4096"], "evaluation.batch_size"),
    ],
)
def test_the_advice_names_an_option_that_the_stage_reads(words: list[str], option: str) -> None:
    found = settings(*words)
    assert found[0].startswith(f"{option}=")
    for changed in found:
        kept = [word for word in words if not changed.startswith(word.partition("=")[0] + "=")]
        assert "TOO MUCH" not in "\n".join(memory(compose([*kept, *SEVEN, *changed.split()]).config))


def test_rollouts_with_their_own_batch_are_reduced_by_their_own_option() -> None:
    found = settings("+stage=grpo", "algorithm.prompts_per_step=64", "algorithm.rollout_batch_size=512")
    assert any("algorithm.rollout_batch_size=" in one and "evaluation" not in one for one in found), found


@pytest.mark.parametrize("stage", ["infer", "collect"])
def test_a_presets_batch_bounds_every_stage(stage: str) -> None:
    data = ["data=edits"] if stage == "collect" else []
    sizes = [
        getattr(compose([f"+stage={stage}", *data, *words]).config, stage).batch_size
        for words in ([], ["model=qwen_coder_7b"], ["model=qwen_coder_7b", f"{stage}.batch_size=100"])
    ]
    assert sizes == [64, 32, 100]


def test_no_more_tasks_are_planned_than_there_are(tmp_path: Path) -> None:
    path = rows(tmp_path, 20)
    own = ["+stage=infer", "data=code", f"data.path={path}", *SEVEN]
    given = ["+stage=infer", f"infer.input={path}", *SEVEN]
    config = compose(own).config
    assert answered_tasks(config) == 2 and "2 tasks at once" in plan(config, [])
    assert workload_of(config).sampling_batch.groups == 2
    assert [answered_tasks(compose([*given, *more]).config) for more in ([], ["infer.tasks=3"])] == [20, 3]
    assert answered_tasks(compose([*given, "infer.ids=[t1,t2]"]).config) == 2
    assert answered_tasks(compose(["+stage=infer", "infer.input=-"]).config) == 0
    assert answered_tasks(compose(["+stage=grpo", "data=code", f"data.path={path}"]).config) == 0


def test_vllm_takes_its_share_of_a_rollout_and_sleeps_while_the_policy_trains() -> None:
    own, given = workload("model=qwen14b"), workload("model=qwen14b", "engine=vllm", "engine.memory_share=0.5")
    lines, share = estimate(given), 0.5 * 31.3
    assert lines["rollout"]["vLLM"] / GIB == pytest.approx(share + 1.0)
    assert "KV cache" not in lines["rollout"]
    assert total(given, "backward") == pytest.approx(total(own, "backward") + 1.0)
    text = said("model=qwen14b", "engine=vllm", "engine.memory_share=0.5")
    assert (
        "vLLM: 15.7 GiB during rollouts, of which its weights take 9." in text and "completions of the longest" in text
    )


@pytest.mark.parametrize("preset", ["one_32gb", "two_32gb"])
def test_presets_fit_with_vllm_and_its_default_share(preset: str) -> None:
    text = said(f"+experiment={preset}", "engine=vllm")
    assert "TOO MUCH" not in text and "would fit with" not in text and "of the longest length at the same time" in text


def test_what_vllm_refuses_is_not_offered() -> None:
    text = said("+experiment=two_32gb", "engine=vllm", "model=qwen_coder_7b")
    assert "would fit with: model.quantization=4bit" in text
    assert "zero3" not in text and "8bit" not in text.split("does not fit", 1)[1]


def test_a_server_samples_on_other_devices() -> None:
    words = ["engine=server", "engine.url=http://host/v1", "engine.weights=lora"]
    words += ["model=qwen14b", "parallel=single"]
    own, given = workload(*words[3:]), workload(*words)
    assert "KV cache" not in estimate(given)["rollout"] and total(given, "rollout") < total(own, "rollout")
    assert total(given, "backward") <= total(own, "backward")


def test_a_share_below_vllms_weights_is_refused_with_one_that_is_enough() -> None:
    text = said("model=qwen14b", "engine=vllm", "engine.memory_share=0.3")
    assert "it does not start below" in text and "would fit with: engine.memory_share=0.4" in text


def test_vllm_on_a_cpu_does_not_sleep() -> None:
    given = replace(workload("engine=vllm"), cpu=True)
    lines = estimate(given)
    assert lines["backward"]["vLLM"] == lines["rollout"]["vLLM"] > given.shape.parameters * 4
    assert not lines["rollout"].get("packed weights")


def test_roles_of_one_shape_share_vllms_model() -> None:
    config = compose(["+stage=adversarial", GPU, "engine=vllm"]).config
    given = workload_of(config)
    assert given is not None and given.models == 2 and given.vllm is not None and given.vllm.models == 1
