"""The folders of embedded models hold what loads them, and nothing that a run left."""

import fnmatch

from rlvr_exp.config.model import EMBEDDED_MODELS

FILES = ("config.json", "generation_config.json", "model*.safetensors*", "tokenizer.json", "tokenizer_config.json")


def test_embedded_models_are_weights_and_tokenizers_alone() -> None:
    folders = [path for path in EMBEDDED_MODELS.iterdir() if path.is_dir()]
    names = {f"{folder.name}/{path.name}" for folder in folders for path in folder.iterdir()}
    strangers = {name for name in names if not any(fnmatch.fnmatch(name.split("/")[1], known) for known in FILES)}
    assert len(folders) >= 5 and strangers == set()
