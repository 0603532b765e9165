"""What is missing on this machine is told before anything starts, with the way to get it."""

from pathlib import Path

import pytest

from rlvr_exp.config import compose
from rlvr_exp.config.needs import missing

NAME = "Qwen/Qwen3-14B"


def needs(*words: str) -> list[str]:
    return [need.problem.where for need in missing(compose(words).config) if need.problem.where != "model"]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    return tmp_path / "hub" / "models--Qwen--Qwen3-14B" / "snapshots" / "abc"


def checkpoint(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").touch()
    return folder


def test_missing_weights_name_both_remedies(cache: Path) -> None:
    (need,) = missing(compose(["+stage=grpo", "model=qwen14b"]).config)
    assert need.command == f"hf download {NAME}"
    assert need.command in need.problem.remedy and "model.path=" in need.problem.remedy


def test_weights_in_the_cache_are_found(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint(cache)
    assert needs("+stage=grpo", "model=qwen14b") == []
    monkeypatch.setenv("HF_HUB_CACHE", str(cache / "elsewhere"))
    assert needs("+stage=grpo", "model=qwen14b") == ["model.name"]


def test_a_download_that_was_cut_short_is_missing(cache: Path) -> None:
    checkpoint(cache)
    (cache / "model.safetensors").unlink()
    assert needs("+stage=grpo", "model=qwen14b") == ["model.name"]


def test_paths_have_to_exist(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "model")
    assert needs("+stage=grpo", f"model.path={folder}", f"data.path={tmp_path}") == []
    assert needs("+stage=grpo", "model.path=nowhere", "data.path=nowhere") == ["model.path", "data.path"]
    assert needs("+stage=evaluate", f"model.path={folder}", "evaluate.baseline=nowhere") == ["evaluate.baseline"]
    assert needs("+stage=compare", "compare.runs=[nowhere,there]") == ["compare.runs", "compare.runs"]
