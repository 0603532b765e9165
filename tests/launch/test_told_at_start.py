"""What was chosen for a checkpoint, and advice, are printed before the stage starts and stand in the manifest."""

import json
from pathlib import Path

import pytest
from checkpoint_samples import checkpoint

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import INTERRUPTED
from rlvr_exp.launch.execute import execute


def test_settings_and_advice_come_before_the_stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["+stage=evaluate", f"model.path={checkpoint(tmp_path / 'model')}", "evaluation.temperature=0.01"]
    told = []

    def stage(*_: object) -> int:
        told.append(capsys.readouterr().out)
        return INTERRUPTED

    execute(compose(words), ["python"], tmp_path / "run", stage)
    settings = {one["option"]: one for one in json.loads((tmp_path / "run" / "manifest.json").read_text())["settings"]}
    assert "chosen: data.prompt.style=instruct: a model with a chat template" in told[0]
    assert "advice: evaluation.temperature=0.01 is meant by hardly anyone" in told[0]
    assert settings["data.prompt.style"]["value"] == "instruct" and settings["model.dtype"]["why"]
    (advice,) = json.loads((tmp_path / "run" / "manifest.json").read_text())["advice"]
    assert advice.startswith("evaluation.temperature=0.01")
