"""Combinations with adapters and quantized weights that cannot work are reported before anything is loaded; advice on
rates."""

import json
from pathlib import Path

import pytest

from rlvr_exp.config.compose import compose, compose_lenient
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.config.suited import advice

LORA = "model.adapter.kind=lora"


def refused(*words: str) -> list[str]:
    return [problem.where for problem in compose_lenient(words).problems]


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    """An adapter's folder as far as it can be read without loading it; its base is not on this machine."""
    said = {"r": 8, "lora_alpha": 16, "use_dora": False, "lora_dropout": 0.0, "target_modules": ["q_proj", "v_proj"]}
    said["base_model_name_or_path"] = "/nowhere/base"
    (tmp_path / "adapter_config.json").write_text(json.dumps(said))
    (tmp_path / "adapter_model.safetensors").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["model.quantization=4bit"], "model.quantization"),
        (["model.adapter.rank=8"], "model.adapter.kind"),
        ([LORA, "model.from_scratch=true"], "model.from_scratch"),
        ([LORA, "model.freeze=[model.norm.*]"], "model.freeze"),
        ([LORA, "model.adapter.targets=[q_proj,lm_head]"], "model.adapter.targets"),
        ([LORA, "algorithm.kl_coef=0.1", "algorithm.reference_sync_steps=5"], "algorithm.reference_sync_steps"),
        (["model.adapter.kind=dora", "model.quantization=8bit"], "model.quantization"),
        (["algorithm.trl.gradient_checkpointing=true"], "algorithm.trl.gradient_checkpointing"),
    ],
)
def test_what_cannot_work_is_refused(words: list[str], where: str) -> None:
    assert where in refused("+stage=grpo", *words)


def test_random_weights_are_not_quantized() -> None:
    assert refused("+stage=grpo", "model.from_scratch=true", "model.quantization=8bit", LORA) == [
        "model.from_scratch",
        "model.quantization",
    ]


@pytest.mark.parametrize(
    "words",
    [
        ["+stage=grpo", "model.quantization=4bit", LORA],
        ["+stage=evaluate", "model.quantization=8bit"],
        ["+stage=sft", LORA],
    ],
)
def test_what_can_work_is_taken(words: list[str]) -> None:
    assert refused(*words) == []


@pytest.mark.parametrize("place", ["model.path={}", "model.adapter.path={}"])
def test_an_adapter_that_goes_on_keeps_its_form(adapter: Path, place: str) -> None:
    words = ["+stage=grpo", place.format(adapter)]
    assert (
        refused(*words) == refused(*words, "model.adapter.rank=8", LORA, "model.adapter.targets=[v_proj,q_proj]") == []
    )
    assert refused(*words, "model.adapter.rank=16", "model.adapter.kind=dora", "model.adapter.targets=[o_proj]") == [
        "model.adapter.kind",
        "model.adapter.rank",
        "model.adapter.targets",
    ]
    assert refused(*words, "model.quantization=4bit") == []


def test_an_adapter_of_another_kind_is_refused(adapter: Path) -> None:
    said = json.loads((adapter / "adapter_config.json").read_text())
    (adapter / "adapter_config.json").write_text(json.dumps(said | {"peft_type": "IA3"}))
    assert refused("+stage=evaluate", f"model.path={adapter}") == ["model.adapter.path"]


def test_other_bits_than_those_of_training_are_told(adapter: Path) -> None:
    (adapter / "base.json").write_text(json.dumps({"quantization": "4bit"}))
    words = ["+stage=evaluate", f"model.path={adapter}"]
    assert "model.quantization=4bit" in advice(compose(words).config)[0]
    assert advice(compose([*words, "model.quantization=4bit"]).config) == []


def test_two_adapters_at_once_are_refused(adapter: Path) -> None:
    assert refused("+stage=grpo", f"model.path={adapter}", f"model.adapter.path={adapter}") == ["model.adapter.path"]


def test_a_missing_base_is_told_with_the_way_to_name_another(adapter: Path, tmp_path: Path) -> None:
    (need,) = missing_artifacts(compose(["+stage=evaluate", f"model.path={adapter}"]).config)
    assert (
        need.problem.got == "/nowhere/base" and f"model.path=BASE model.adapter.path={adapter}" in need.problem.remedy
    )
    assert missing_artifacts(compose(["+stage=evaluate", f"model.adapter.path={adapter}"]).config) == []
    (lost,) = missing_artifacts(compose(["+stage=evaluate", f"model.adapter.path={tmp_path / 'gone'}"]).config)
    assert lost.problem.where == "model.adapter.path"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["+stage=grpo", LORA, "optimizer.lr=1e-6"], True),
        (["+stage=grpo", LORA, "optimizer.lr=2e-5"], False),
        (["+stage=sft", LORA, "optimizer.lr=1e-5"], True),
        (["+stage=grpo", "optimizer.lr=1e-6"], False),
    ],
)
def test_an_adapter_at_the_rate_of_full_training_is_advised_on(words: list[str], told: bool) -> None:
    assert any("optimizer.lr" in text for text in advice(compose(words).config)) == told


def test_dropout_in_reinforcement_learning_is_advised_on() -> None:
    words = [LORA, "model.adapter.dropout=0.1"]
    assert advice(compose(["+stage=grpo", *words]).config) and not advice(compose(["+stage=sft", *words]).config)
