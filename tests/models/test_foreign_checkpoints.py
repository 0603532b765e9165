"""What the files of a folder do not show is refused where it is loaded: never a traceback, never random weights."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from small_models import loaded, written

from rlvr_exp.core.errors import InputError


def test_weights_that_are_missing_do_not_become_random(tmp_path: Path) -> None:
    file = written(tmp_path) / "model.safetensors"
    weights = {name: value for name, value in load_file(file).items() if "layers.1.mlp" not in name}
    save_file(weights, file, {"format": "pt"})
    with pytest.raises(InputError, match=r"missing\n.*layers\.1\.mlp\.down_proj"):
        loaded(tmp_path)


def test_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    config = json.loads((written(tmp_path) / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "intermediate_size": 100}))
    with pytest.raises(InputError, match="cannot be loaded"):
        loaded(tmp_path)


@pytest.mark.parametrize("kind", ["no_such_architecture", "t5"])
def test_what_is_no_causal_language_model_is_refused(tmp_path: Path, kind: str) -> None:
    config = json.loads((written(tmp_path) / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "model_type": kind}))
    with pytest.raises(InputError, match="cannot be loaded"):
        loaded(tmp_path)


def test_damaged_weights_without_a_header_are_refused(tmp_path: Path) -> None:
    (written(tmp_path) / "model.safetensors").unlink()
    torch.save({"weight": torch.ones(3)}, tmp_path / "pytorch_model.bin")
    (tmp_path / "pytorch_model.bin").write_bytes((tmp_path / "pytorch_model.bin").read_bytes()[:300])
    with pytest.raises(InputError, match="cannot be loaded"):
        loaded(tmp_path)


def test_a_tokenizer_has_to_fit_the_embedding(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="larger than the embedding"):
        loaded(written(tmp_path, vocabulary=512))


def test_a_template_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no chat template"):
        loaded(written(tmp_path), chat_template="always")
