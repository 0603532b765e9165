"""The page on the cascade: from DafnyBench to a trained cascade, whole with the embedded model, planned with a large one;
every option it names exists."""

import json
import re
import shlex
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from program import ENVIRONMENT, PROGRAM
from safetensors.torch import save_file

import rlvr_exp
from rlvr_exp.domains.dafny.options import CREDITS, MODES, Cascade
from rlvr_exp.domains.dafny.tasks import DafnyDomain
from rlvr_exp.domains.dafny.tool import Tool
from rlvr_exp.main import main

PAGE = (Path(rlvr_exp.__file__).parent / "docs" / "dafny.md").read_text()
UNPROVED = "method Wrong(n: nat) returns (m: nat)\n  ensures m > n\n{\n  m := n;\n}\n"


def commands(model: str) -> list[list[str]]:
    """The words of the page's commands for a model."""
    block = re.search(rf"<!-- run: {model} -->(.*?)<!-- end -->", PAGE, re.DOTALL)[1]
    return [shlex.split(line.strip())[3:] for line in block.splitlines() if line.strip()]


LARGE = commands("qwen14b")


@pytest.fixture
def trained(bench: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the page's commands are run in, after those that train: the data, and adapters of both roles."""
    monkeypatch.chdir(bench)
    roles = ("writer", "annotator")
    for place in (
        *(f"{role}/checkpoints/best" for role in roles),
        *(f"cascade/checkpoints/best/{role}" for role in roles),
    ):
        folder = bench / "runs" / place
        folder.mkdir(parents=True)
        about = {"base_model_name_or_path": "Qwen/Qwen3-14B", "peft_type": "LORA", "r": 16}
        (folder / "adapter_config.json").write_text(json.dumps(about))
        save_file({"weight": torch.zeros(1)}, folder / "adapter_model.safetensors")
    return bench


@pytest.mark.parametrize("words", LARGE, ids=lambda words: " ".join(words[:2]))
def test_every_command_is_planned(words: list[str], trained: Path, capsys) -> None:
    shutil.rmtree(words[-1].removeprefix("run.dir="), ignore_errors=True)
    before = sorted(trained.rglob("*"))
    assert main([*words, "run.dry=true"]) == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    assert f"stage:       {words[0].removeprefix('+stage=')}" in said and "DafnyBench" in said
    assert sorted(trained.rglob("*")) == before


def test_the_cascade_fits_two_devices(trained: Path, capsys) -> None:
    (words,) = [words for words in LARGE if words[0] == "+stage=cascade" and "runs/cascade" in words[-1]]
    shutil.rmtree(words[-1].removeprefix("run.dir="))
    assert main([*words, "parallel.device=rtx5090", "run.dry=true"]) == 0
    told = capsys.readouterr().out
    assert "TOO MUCH" not in told and "fits" in told


def test_the_page_names_every_mode_credit_and_option() -> None:
    names = {*MODES, *CREDITS, *(f"cascade.{one.name}" for one in fields(Cascade))}
    assert [name for name in sorted(names) if name not in PAGE] == []


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """A folder in DafnyBench's layout: 40 small programs that Dafny proves, and some that it does not."""
    root = tmp_path / "DafnyBench"
    for folder in ("ground_truth", "hints_removed"):
        (root / folder).mkdir(parents=True)
    for task in DafnyDomain(role="writer").splits()["train"][::75]:
        example = task.inputs.example
        (root / "ground_truth" / f"{example.id}.dfy").write_text(example.gold)
        (root / "hints_removed" / f"{example.id}_no_hints.dfy").write_text(example.program(example.body))
    for number in range(8):
        text = UNPROVED.replace("Wrong", f"Wrong{number}").replace("m > n", f"m > n + {number * number}")
        (root / "ground_truth" / f"wrong{number}.dfy").write_text(text)
        (root / "hints_removed" / f"wrong{number}_no_hints.dfy").write_text(text)
    return tmp_path


@pytest.mark.slow
def test_the_way_from_disk_to_a_measured_cascade_is_run_whole(dafny: Tool, bench: Path) -> None:
    stages = [words[0].partition("=")[2] for words in commands("tiny")]
    assert stages == ["validate", "sft", "sft", "cascade", "evaluate"]
    for words in commands("tiny"):
        done = subprocess.run(
            [*PROGRAM, *words], cwd=bench, env=ENVIRONMENT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, " ".join(words) + done.stdout + done.stderr
    left_out = json.loads((bench / "tiny/cascade/manifest.json").read_text())["golds"]["left_out"]
    assert left_out and all("wrong" in name for name in left_out)
    assert json.loads((bench / "tiny/measured/summary.json").read_text())["after"]["pass_at_1"]["n"] > 0
