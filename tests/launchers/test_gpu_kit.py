"""The kit for a machine with a GPU: its pieces are commands that compose, its results are kept and gone on from."""

import json
import subprocess
import sys
from pathlib import Path

import gpu_kit
import gpu_pack
import pytest

from rlvr_exp.config.compose import compose

LAUNCHERS = Path(__file__).parents[2] / "launchers"


@pytest.mark.parametrize("rehearse", [False, True])
def test_every_piece_is_a_command_that_composes(rehearse: bool, tmp_path: Path) -> None:
    for name, piece in gpu_kit.pieces().items():
        words = piece.command(name, tmp_path, rehearse)[3:]
        assert piece.limit_s <= 540
        if piece.words[0] != "pytest":
            assert compose(words).config.run.dir == str(tmp_path / name)


@pytest.mark.slow
def test_a_piece_leaves_its_result_and_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    words = ["--rehearse", "--results", str(tmp_path)]
    assert gpu_kit.main([*words, "quantization"]) == 0
    kept = tmp_path / "rehearsal" / "gpu.json"
    outcome = json.loads(kept.read_text())["pieces"]["quantization"]
    assert outcome["status"] == "passed" and outcome["metrics"]["bytes/4bit"] < outcome["metrics"]["bytes/bfloat16"]
    assert "## quantization: passed" in (tmp_path / "rehearsal" / "gpu.md").read_text()
    capsys.readouterr()
    gpu_kit.main([*words, "--seconds", "1"])
    again = capsys.readouterr().out
    assert "quantization" not in again and again.count("left for another call") == len(gpu_kit.pieces()) - 1


def test_what_is_absent_is_skipped_by_name(tmp_path: Path) -> None:
    outcome = gpu_kit.run("x", gpu_kit.Piece("", ("+stage=verify",), needs=("no_such_module",)), tmp_path, False)
    assert outcome == {"status": "skipped", "text": "absent: no_such_module"}


def test_a_piece_that_fails_or_takes_too_long_says_so(tmp_path: Path) -> None:
    failed = gpu_kit.run("x", gpu_kit.Piece("", ("+stage=nothing",)), tmp_path, False)
    assert failed["status"] == "failed" and "nothing" in failed["text"]
    late = gpu_kit.run("y", gpu_kit.Piece("", ("+stage=grpo",), limit_s=0), tmp_path, False)
    assert late["status"] == "timeout"


def test_a_pack_has_what_is_lacking_and_no_more(tmp_path: Path) -> None:
    names = gpu_pack.needed(["trl", "hydra-core"], "3.12")
    assert {"trl", "omegaconf", "antlr4-python3-runtime", "datasets"} <= names
    assert not names & {"torch", "wandb", "deepspeed", "ruff", "mypy", "bitsandbytes"}
    listed = tmp_path / "list"
    listed.write_text("Package    Version\n---------- -------\nNumPy      2.4.6\ndatasets   5.2.0\nrich\n")
    there = gpu_pack.had(listed)
    assert there == {"numpy": "2.4.6", "datasets": "5.2.0", "rich": ""}
    assert not {"numpy", "datasets", "rich"} & set(gpu_pack.lacking(names, there, []))


def test_pure_packages_are_copied_whole_and_can_be_imported(tmp_path: Path) -> None:
    listed, folder = tmp_path / "list", tmp_path / "pack"
    everything = gpu_pack.needed([name for name in gpu_pack.pins() if not gpu_pack.LEFT.search(name)], "3.12")
    listed.write_text("\n".join(sorted(everything - {"omegaconf", "antlr4-python3-runtime"})))
    words = ["pack", "--python", "3.12", "--have", str(listed), "--into", str(folder)]
    assert subprocess.run([sys.executable, str(LAUNCHERS / "gpu_kit.py"), *words]).returncode == 0
    code = "import omegaconf, antlr4; print(omegaconf.__file__, antlr4.__file__)"
    shown = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(folder / "needed")}, capture_output=True, text=True
    )
    assert shown.stdout.count(str(folder)) == 2
