"""Artifacts missing on this machine are reported before anything starts, with the way to get them."""

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from rlvr_exp.config.compose import compose
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny.options import build_command
from rlvr_exp.domains.dafny.package import INSTALL

NAME = "Qwen/Qwen3-14B"


def needs(*words: str) -> list[str]:
    return [need.problem.where for need in missing_artifacts(compose(words).config) if need.problem.where != "model"]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    return tmp_path / "hub" / "models--Qwen--Qwen3-14B" / "snapshots" / "abc"


def checkpoint(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("{}")
    (folder / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    return folder


def test_missing_weights_name_both_remedies(cache: Path) -> None:
    (need,) = missing_artifacts(compose(["+stage=grpo", "model=qwen14b"]).config)
    assert need.command == (
        f"python -m rlvr_exp +stage=prepare prepare=hub prepare.name={NAME} prepare.output=downloads/Qwen3-14B, "
        "then model.path=downloads/Qwen3-14B"
    )
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


def test_a_folder_of_roles_says_how_each_is_named(tmp_path: Path) -> None:
    for role in ("solver", "drafter"):
        checkpoint(tmp_path / role)
    (need,) = missing_artifacts(compose(["+stage=grpo", f"model.path={tmp_path}"]).config)
    assert need.problem.what.endswith(": drafter, solver")
    assert f"roles.solver.model.path={tmp_path / 'solver'}" in need.problem.remedy


def test_paths_have_to_exist(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "model")
    assert needs("+stage=grpo", f"model.path={folder}", f"data.path={tmp_path}") == []
    assert needs("+stage=grpo", "model.path=nowhere", "data.path=nowhere") == ["model.path", "data.path"]
    assert needs("+stage=evaluate", f"model.path={folder}", "evaluate.baseline=nowhere") == ["evaluate.baseline"]
    assert needs("+stage=compare", "compare.runs=[nowhere,there]") == ["compare.runs", "compare.runs"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "verify.input: not given"),
        (["verify.input=nowhere.jsonl"], "verify.input: not there"),
        (["verify.input={0}"], "verify.input: not a regular file"),
        (["verify.input={0}/in.jsonl", "verify.output={0}"], "verify.output: not a regular file"),
        (["verify.input={0}/in.jsonl", "verify.output={0}/in.jsonl/out.jsonl"], "verify.output: cannot be written"),
        (["verify.input={0}/in.jsonl", "verify.output={0}/new/out.jsonl"], ""),
        (["verify.input=samples"], ""),
    ],
)
def test_files_of_a_verification(words: list[str], told: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").touch()
    found = missing_artifacts(compose(["+stage=verify", *(word.format(tmp_path) for word in words)]).config)
    assert [str(need.problem).splitlines()[0] for need in found] == [told] * bool(told)


@pytest.mark.parametrize("output", ["{0}/in.jsonl", "{0}/below/../in.jsonl", "{0}/out.jsonl.gz"])
def test_the_output_of_a_verification_is_a_plain_file_of_its_own(output: str, tmp_path: Path) -> None:
    words = ["+stage=verify", f"verify.input={tmp_path}/in.jsonl", f"verify.output={output.format(tmp_path)}"]
    with pytest.raises(InputError, match="verify.output: is "):
        compose(words)


def test_an_optimizers_package_comes_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlvr_exp.config.needs.find_spec", lambda name: None)
    (need,) = missing_artifacts(compose(["+stage=grpo", "optimizer=adamw_8bit"]).config)
    assert need.command == "pip install bitsandbytes" and "optimizer=adamw" in need.problem.remedy


@pytest.mark.parametrize(
    ("words", "commands"),
    [
        (["+stage=grpo", "data=dafny"], [INSTALL]),
        (["+stage=verify", "verifier=dafny", "verify.input=samples"], [INSTALL]),
        (
            ["+stage=verify", "verifier=dafny", "verifier.image=dafny:4", "verify.input=samples"],
            [build_command("dafny:4")],
        ),
        (["+stage=infer", "data=dafny", "infer.verify=false", "infer.input=-"], []),
        (["+stage=grpo"], []),
    ],
)
def test_dafny_is_needed_where_it_judges(
    words: list[str], commands: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("rlvr_exp.domains.dafny.options.shutil.which", lambda name: None)
    monkeypatch.setattr("rlvr_exp.domains.dafny.package.distribution", none)
    assert [need.command for need in missing_artifacts(compose(words).config)] == commands


def test_a_run_s_folder_or_a_best_step_that_it_has_not_names_the_checkpoint_that_is_there(tmp_path: Path) -> None:
    links = tmp_path / "run" / "checkpoints"
    checkpoint(links / "latest")

    def nearest(path: Path) -> str:
        (need,) = missing_artifacts(compose(["+stage=evaluate", f"model.path={path}"]).config)
        return need.problem.suggestion

    assert nearest(links / "best") == nearest(tmp_path / "run") == str(links / "latest")
    checkpoint(links / "best")
    assert nearest(tmp_path / "run") == str(links / "best") and nearest(tmp_path) == ""


@pytest.mark.parametrize(
    "words",
    [
        ["+stage=validate", "data=code", "data.path={}/mien.jsonl"],
        ["+stage=infer", "infer.input={}/mien.jsonl"],
        ["+stage=compare", "compare.runs=[{}/mien.jsonl,{}]"],
        ["+stage=evaluate", "model.path={}/mien.jsonl"],
    ],
)
def test_a_path_with_a_typo_comes_with_the_path_that_is_near(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").touch()
    found = missing_artifacts(compose([word.format(tmp_path, tmp_path) for word in words]).config)
    assert found[0].problem.suggestion == str(tmp_path / "mine.jsonl")
