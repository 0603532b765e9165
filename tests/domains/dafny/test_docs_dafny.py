"""The commands that the page on Dafny's roles shows compose without a problem, options and all."""

import re
import shlex
from pathlib import Path

import pytest

import rlvr_exp
from rlvr_exp.config.compose import compose

PAGE = (Path(rlvr_exp.__file__).parent / "docs" / "dafny_roles.md").read_text(encoding="utf-8").replace("\\\n", " ")
COMMANDS = re.findall(r"^    python -m rlvr_exp (\+stage=[^#\n]*)", PAGE, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_composes(command: str) -> None:
    config = compose(shlex.split(command)).config
    read = config.data if config.prepare is None else config.prepare
    assert read._target_.startswith("rlvr_exp.domains.dafny.")


def test_the_page_shows_commands() -> None:
    assert len(COMMANDS) >= 7
