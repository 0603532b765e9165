"""Settings for a checkpoint that no preset names: from its files and the machine, each with its reason; what is given by
hand stays, and so does a preset that is named."""

import json
from pathlib import Path
from typing import Any

import pytest
from checkpoint_samples import checkpoint
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.config import suited
from rlvr_exp.config.checkpoint_files import read_facts
from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import load, to_yaml
from rlvr_exp.config.parallel import Device
from rlvr_exp.config.suited import HIGH, IMITATION_HIGH, LOW, usual_rate

CPU, H100, V100 = Device(False, 16.0, False), Device(True, 79.0, True), Device(True, 15.0, False)


def chosen(*words: str, device: Device = CPU) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suited, "device", lambda: device)
        return {".".join(one.path): one.value for one in compose(words).settings}


def test_a_path_alone_takes_every_setting_from_the_checkpoint(tmp_path: Path) -> None:
    found = chosen("+stage=grpo", f"model.path={checkpoint(tmp_path)}")
    assert found == {
        "model.dtype": "float32",
        "model.chat_template": "auto",
        "optimizer.lr": 1e-4,
        "model.max_completion_tokens": 512,
        "model.max_prompt_tokens": 1536,
        "data.prompt.style": "instruct",
        "evaluation.batch_size": 512,
    }
    checked = compose(["+stage=grpo", f"model.path={tmp_path}"])
    assert checked.config.optimizer.lr == 1e-4 and checked.config.data.prompt.style == "instruct"
    assert all(one.why and one.why in checked.tree.origin(one.path) for one in checked.settings)


def test_imitation_takes_its_rate_and_the_length_of_its_sequences(tmp_path: Path) -> None:
    large = checkpoint(tmp_path, 8 * 10**9, 131072)
    found = chosen("+stage=sft", f"model.path={large}", device=H100)
    assert found["optimizer.lr"] == 1e-5 and found["algorithm.max_sequence_tokens"] == 6144 + 1024
    assert found["model.gradient_checkpointing"] and found["model.dtype"] == "bfloat16"
    adapted = chosen("+stage=sft", f"model.path={large}", "model.adapter.kind=lora", device=H100)
    assert adapted["optimizer.lr"] == 1e-4
    assert chosen("+stage=grpo", f"model.path={large}", "model.adapter.kind=lora")["optimizer.lr"] == 2e-5


def test_what_is_given_by_hand_stays(tmp_path: Path) -> None:
    words = ["optimizer.lr=1e-5", "data.prompt.style=bare", "model.dtype=bfloat16", "model.max_completion_tokens=100"]
    checked = compose(["+stage=grpo", f"model.path={checkpoint(tmp_path)}", *words])
    assert checked.config.optimizer.lr == 1e-5 and checked.config.data.prompt.style == "bare"
    assert checked.config.model.dtype == "bfloat16" and checked.config.model.max_completion_tokens == 100
    left = {".".join(one.path) for one in checked.settings}
    assert left == {"model.chat_template", "model.max_prompt_tokens", "evaluation.batch_size"}
    assert checked.config.model.max_prompt_tokens == 2048 - 100


@pytest.mark.parametrize("words", [["model=tiny"], ["model=llama8b"]])
def test_presets_stay_for_who_names_them(tmp_path: Path, words: list[str]) -> None:
    with_path = compose(["+stage=grpo", *words, f"model.path={checkpoint(tmp_path)}"])
    assert (
        with_path.settings == ()
        and with_path.config.optimizer.lr == compose(["+stage=grpo", *words]).config.optimizer.lr
    )


def test_the_embedded_model_keeps_its_preset() -> None:
    assert chosen("+stage=grpo") == chosen("+stage=cascade") == chosen("+stage=sft", "data=dafny") == {}


def test_no_preset_of_the_stage_or_the_data_leaks_into_another_model(tmp_path: Path) -> None:
    config = compose(["+stage=cascade", f"model.path={checkpoint(tmp_path)}"]).config
    assert config.model.max_completion_tokens == 512 and config.optimizer.lr == 1e-4
    assert config.verifier.rlimit == compose(["+stage=cascade"]).config.verifier.rlimit  # The data's, not the model's.


@pytest.mark.parametrize(
    ("device", "parameters", "words", "dtype"),
    [
        (CPU, 10**6, [], "float32"),
        (CPU, 8 * 10**9, [], "bfloat16"),
        (H100, 10**9, [], "float32"),
        (H100, 8 * 10**9, [], "bfloat16"),
        (H100, 10**9, ["model.adapter.kind=lora"], "bfloat16"),
        (V100, 10**8, [], "float32"),
    ],
)
def test_the_type_follows_from_the_device(
    tmp_path, device: Device, parameters: int, words: list[str], dtype: str
) -> None:
    assert (
        chosen("+stage=grpo", f"model.path={checkpoint(tmp_path, parameters)}", *words, device=device)["model.dtype"]
        == dtype
    )


def test_without_a_template_a_text_is_continued(tmp_path: Path) -> None:
    problems = chosen("+stage=grpo", "data=problems", f"model.path={checkpoint(tmp_path)}")
    assert problems["data.prompt.style"] == "instruct"
    assert chosen("+stage=grpo", f"model.path={checkpoint(tmp_path, template=False)}")["data.prompt.style"] == "bare"
    words = checkpoint(tmp_path / "words")
    told = chosen("+stage=grpo", f"model.path={tmp_path}", f"model.tokenizer={words}")
    assert told["data.prompt.style"] == "instruct"


def test_memory_bounds_what_is_sampled_at_once(tmp_path: Path) -> None:
    wide = checkpoint(tmp_path, 7 * 10**9, 32768, num_hidden_layers=32, hidden_size=4096, num_attention_heads=32)
    found = chosen("+stage=evaluate", f"model.path={wide}", device=H100)
    assert found["evaluation.batch_size"] in (16, 32) and found["model.max_prompt_tokens"] == 6144
    less = chosen("+stage=evaluate", f"model.path={wide}", device=Device(True, 20.0, True))
    assert less["model.max_prompt_tokens"] < 6144 and less["evaluation.batch_size"] == 8


def test_a_role_with_a_checkpoint_of_its_own_has_its_own_settings(tmp_path: Path) -> None:
    config = compose(["+stage=cascade", f"roles.writer.model.path={checkpoint(tmp_path)}"]).config
    assert config.roles["writer"].model.max_completion_tokens == 512 and config.roles["writer"].optimizer.lr == 1e-4
    assert config.model.max_completion_tokens == 112


def test_a_checkpoint_of_ours_goes_on_as_it_was_trained(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "checkpoints" / "step_000010")
    options = {
        "model.max_completion_tokens": 64,
        "model.chat_template": "always",
        "data._target_": "rlvr_exp.domains.arc.tasks.Arc",
    }
    (folder / "checkpoint.json").write_text(json.dumps({"config": options | {"data.prompt.style": "bare"}}))
    found = chosen("+stage=evaluate", f"model.path={folder}")
    assert found["model.max_completion_tokens"] == 64 and found["model.chat_template"] == "always"
    assert found["data.prompt.style"] == "bare"
    assert chosen("+stage=sft", f"model.path={folder}", "data=dafny")["data.prompt.style"] == "instruct"


def test_files_that_cannot_be_read_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[]")
    (tmp_path / "model.safetensors").write_bytes(b"12")
    assert read_facts(tmp_path, tmp_path, tmp_path).context == 0
    assert chosen("+stage=grpo", f"model.path={tmp_path / 'gone'}")["optimizer.lr"] == LOW


def test_thoughts_have_half_of_the_context(tmp_path: Path) -> None:
    found = chosen("+stage=infer", f"model.path={checkpoint(tmp_path, context=4096)}", "model.thinking=true")
    assert found["model.max_completion_tokens"] == 2048 and found["model.max_prompt_tokens"] == 2048


def test_a_hub_name_is_treated_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert chosen("+stage=grpo", "model.name=some/model")["optimizer.lr"] == LOW
    checkpoint(tmp_path / "models--some--model" / "snapshots" / "abc")
    found = chosen("+stage=grpo", "model.name=some/model")
    assert found["optimizer.lr"] == 1e-4 and found["data.prompt.style"] == "instruct"


def test_what_was_chosen_is_what_the_child_loads(tmp_path: Path) -> None:
    checked = compose(["+stage=grpo", f"model.path={checkpoint(tmp_path / 'model')}"])
    (tmp_path / "config.yaml").write_text(to_yaml(checked))
    assert load(tmp_path / "config.yaml") == checked.config


@given(st.integers(1, 10**12), st.integers(1, 10**12), st.booleans(), st.booleans())
def test_a_larger_model_never_has_the_larger_rate(one: int, other: int, imitates: bool, adapter: bool) -> None:
    small, large = sorted((one, other))
    assert usual_rate(small, imitates, adapter) >= usual_rate(large, imitates, adapter) >= LOW
    assert usual_rate(small, imitates, False) <= (IMITATION_HIGH if imitates else HIGH) and usual_rate(
        small, imitates, True
    ) > usual_rate(small, imitates, False)


@pytest.mark.parametrize("at", ["", "model.path="])
def test_a_packaged_model_takes_the_rate_of_the_stage_and_worded_prompts(tmp_path: Path, at: str) -> None:
    """Its preset cannot know either; a checkpoint trained from it is treated alike."""
    words = ["model=smollm2", *([f"{at}{checkpoint(tmp_path, 134_515_008, 8192)}"] if at else [])]
    assert chosen("+stage=grpo", *words) == {"optimizer.lr": 1.1e-5, "data.prompt.style": "instruct"}
    imitated = chosen("+stage=sft", *words)
    assert imitated["optimizer.lr"] == 1.1e-4 and imitated["algorithm.max_sequence_tokens"] == 1024 + 256
    assert chosen("+stage=grpo", *words, "optimizer.lr=1e-6") == {"data.prompt.style": "instruct"}
    assert "optimizer.lr" not in chosen("+stage=evaluate", *words)
