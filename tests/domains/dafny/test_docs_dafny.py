"""The commands of the page on Dafny that read data compose without a problem."""

import re
import shlex
from pathlib import Path

import pytest

import rlvr_exp
from rlvr_exp.config.compose import compose

PAGE = (Path(rlvr_exp.__file__).parent / "docs" / "dafny.md").read_text(encoding="utf-8").replace("\\\n", " ")
SHOWN = re.findall(r"^    python -m rlvr_exp (\+stage=[^#\n]*)", PAGE, re.MULTILINE)
COMMANDS = [command for command in SHOWN if re.search(r"(data|prepare)=dafny|\+stage=cascade", command)]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_composes(command: str) -> None:
    config = compose(shlex.split(command)).config
    read = config.data if config.prepare is None else config.prepare
    assert read._target_.startswith("rlvr_exp.domains.dafny.")


def test_the_page_shows_commands() -> None:
    assert len(COMMANDS) >= 7
