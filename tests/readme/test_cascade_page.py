"""The page on the cascade: every command from DafnyBench to a trained cascade is planned, every option it names exists."""

import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest

from rlvr_exp.config.cascade import CREDITS, MODES, Cascade
from rlvr_exp.main import main

PAGE = (Path(__file__).parents[2] / "rlvr_exp" / "docs" / "cascade.md").read_text()
COMMANDS = [
    shlex.split(line.strip())[3:]
    for line in re.search(r"<!-- run: qwen14b -->(.*?)<!-- end -->", PAGE, re.DOTALL)[1].splitlines()
    if line.strip()
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:2]))
def test_every_command_is_planned(words: list[str], tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*words, "run.dry=true"]) == 0
    said = capsys.readouterr().out
    assert f"stage:       {words[0].removeprefix('+stage=')}" in said and "DafnyBench" in said
    assert not list(tmp_path.iterdir())


def test_the_cascade_fits_two_devices(capsys) -> None:
    (words,) = [words for words in COMMANDS if words[0] == "+stage=cascade" and "runs/cascade" in words[-1]]
    assert main([*words, "run.dry=true"]) == 0
    told = capsys.readouterr().out
    assert "TOO MUCH" not in told and "fits" in told


def test_the_page_names_every_mode_credit_and_option() -> None:
    names = {*MODES, *CREDITS, *(f"cascade.{one.name}" for one in fields(Cascade))}
    assert [name for name in sorted(names) if name not in PAGE] == []
