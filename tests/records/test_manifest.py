"""The manifest: files that identify the initial weights, and bands that starts of a run sent its curriculum to."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from rlvr_exp.config.model import EMBEDDED_MODELS, Adapter, Model
from rlvr_exp.config.roles import Role
from rlvr_exp.records import manifest
from rlvr_exp.records.manifest import changed_initial_weights, initial_weights

TOP = {"model/config.json", "model/generation_config.json", "model/tokenizer.json", "model/tokenizer_config.json"}
WEIGHTS = {"model/model-00001-of-00002.safetensors", "model/model-00002-of-00002.safetensors"}
INDEX = "model/model.safetensors.index.json"


def files(model: Model, **roles: str) -> dict[str, str]:
    cascade = SimpleNamespace(**{"writer": "", "annotator": ""} | roles)
    return initial_weights(SimpleNamespace(model=model, cascade=cascade, roles={}))


@pytest.fixture
def start(tmp_path: Path) -> Path:
    return shutil.copytree(EMBEDDED_MODELS / "tiny", tmp_path / "start")


@pytest.fixture
def adapter(tmp_path: Path, start: Path) -> Path:
    folder = tmp_path / "adapter"
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(start), "r": 4}))
    (folder / "adapter_model.safetensors").write_bytes(b"small")
    return folder


def test_the_embedded_model_is_its_files() -> None:
    assert set(files(Model())) == TOP | WEIGHTS | {INDEX}
    assert set(files(Model(from_scratch=True))) == TOP | {INDEX}


def test_an_adapter_counts_with_its_base(start: Path, adapter: Path) -> None:
    own = {"adapter/adapter_config.json", "adapter/adapter_model.safetensors"}
    for model in (Model(path=str(adapter)), Model(path=str(start), adapter=Adapter(path=str(adapter)))):
        assert set(files(model)) == TOP | WEIGHTS | {INDEX} | own


def test_a_role_counts_with_the_folder_that_it_starts_from(adapter: Path) -> None:
    assert set(files(Model(), writer=str(adapter))) - set(files(Model())) == {
        "writer/adapter_config.json",
        "writer/adapter_model.safetensors",
    }


def test_a_role_counts_with_its_own_model_node() -> None:
    own = {"tester": Role(model=Model(embedded="tiny_solver")), "solver": Role(model=Model())}
    found = initial_weights(SimpleNamespace(model=Model(), roles=own, cascade=SimpleNamespace(writer="", annotator="")))
    assert {name.split("/")[0] for name in found} == {"model", "tester"}
    assert found["tester/model/tokenizer.json"] != found["model/tokenizer.json"]


def test_a_name_of_the_hub_is_the_snapshot_that_is_loaded(start: Path, tmp_path: Path, monkeypatch) -> None:
    cache = tmp_path / "hub" / "models--maker--model"
    for commit in ("older", "newer"):
        shutil.copytree(start, cache / "snapshots" / commit)
    (cache / "snapshots" / "older" / "config.json").write_text("{}")
    (cache / "refs").mkdir()
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    found = []
    for commit in ("older", "newer"):
        (cache / "refs" / "main").write_text(commit)
        found.append(files(Model(name="maker/model")))
    assert [problem.what for problem in changed_initial_weights(*found)] == [
        "the start model's model/config.json holds something else"
    ]


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("model-00001-of-00002.safetensors", True),
        ("tokenizer.json", True),
        ("value/value.safetensors", True),
        ("modeling_own.py", True),
        ("README.md", False),
        ("checkpoint.json", False),
        ("state.json", False),
        ("training/optimizer.pt", False),
    ],
)
def test_what_makes_the_policy_counts_and_what_tells_of_it_does_not(start: Path, name: str, counts: bool) -> None:
    before = files(Model(path=str(start)))
    (start / name).parent.mkdir(exist_ok=True)
    (start / name).write_bytes(b"something else")
    changed = [problem.what for problem in changed_initial_weights(before, files(Model(path=str(start))))]
    assert bool(changed) == counts and all(f"model/{name} " in what for what in changed)


@pytest.mark.heavy
def test_each_start_that_names_a_band_or_follows_one_is_recorded(tmp_path: Path) -> None:
    manifest.begin(tmp_path, "grpo", 0, [], "now")
    manifest.record_override(tmp_path, -1, 0, "now")
    assert "overrides" not in json.loads((tmp_path / manifest.NAME).read_text()), "nothing was ever overridden"
    for band, step in ((2, 4), (-1, 8), (1, 6)):
        manifest.record_override(tmp_path, band, step, "now")
    assert manifest.section(tmp_path, "overrides")[1] == {"band": -1, "after_step": 8, "created": "now"}
