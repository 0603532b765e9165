"""A folder whose model cannot be loaded is refused by its files alone, before anything starts and in a plan."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rlvr_exp.config.checkpoint_files import INDEX
from rlvr_exp.config.compose import compose
from rlvr_exp.config.model import EMBEDDED_MODELS
from rlvr_exp.launch.preflight import preflight_problems

FIRST = "model-00001-of-00002.safetensors"


def cut(folder: Path) -> None:
    (folder / FIRST).write_bytes((folder / FIRST).read_bytes()[:100_000])


def foreign(folder: Path) -> None:
    (folder / FIRST).write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n")


def without_tokenizer(folder: Path) -> None:
    for path in folder.glob("tokenizer*"):
        path.unlink()


def large_tokenizer(folder: Path) -> None:
    values = json.loads((folder / "tokenizer.json").read_text())
    values["added_tokens"].append({**values["added_tokens"][0], "id": 1200, "content": "<more>"})
    (folder / "tokenizer.json").write_text(json.dumps(values))


MISTAKES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "cut": (cut, FIRST, "cut short: 100000 bytes of 1842728"),
    "foreign": (foreign, FIRST, "no safetensors file"),
    "empty": (lambda folder: (folder / FIRST).write_bytes(b""), FIRST, "no safetensors file"),
    "missing": (lambda folder: (folder / FIRST).unlink(), FIRST, f"{INDEX} names it"),
    "config": (lambda folder: (folder / "config.json").write_text("{"), "config.json", "no JSON object"),
    "tokenizer": (without_tokenizer, "", "no tokenizer is there"),
    "large": (large_tokenizer, "ids up to 1200, 1024 rows", "larger than the embedding"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_plan_refuses_what_cannot_be_loaded(tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(EMBEDDED_MODELS / "tiny", tmp_path / "model"))
    config = compose(["+stage=grpo", f"model.path={folder}"]).config
    assert list(preflight_problems(config, fetchable=True)) == []
    spoil, got, what = MISTAKES[name]
    spoil(folder)
    (problem,) = preflight_problems(config, fetchable=True)
    assert problem.where == "model.path" and what in problem.what and got in problem.got and problem.remedy


def test_a_template_that_is_not_there_is_known_before(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(EMBEDDED_MODELS / "tiny", tmp_path / "model"))
    config = compose(["+stage=grpo", f"model.path={folder}", "model.chat_template=always"]).config
    (problem,) = preflight_problems(config, fetchable=True)
    assert problem.where == "model.chat_template"
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    assert list(preflight_problems(config, fetchable=True)) == []
