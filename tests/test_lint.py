"""The rules of pyproject.toml for style and types hold."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "command",
    ["ruff check --no-cache --output-format=concise", "ruff format --check --no-cache", "mypy --cache-dir=/dev/null"],
)
def test_the_tool_finds_nothing(command: str) -> None:
    words = [sys.executable, "-m", *command.split()]
    found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
