"""launchers/test.sh with a python that only writes down its arguments: which steps run, in which order."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

LAUNCHERS = Path(__file__).parents[2] / "launchers"
LINT = ["ruff check --output-format=concise", "ruff format --check", "mypy"]
POOL = "pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder"
STEPS = {
    "": [*LINT, f"{POOL} --tier=unit", f"{POOL} --tier=rest"],
    "lint": LINT,
    "unit -k seed": [*LINT, "pytest --numprocesses 0 --tier=unit -k seed"],
    "--all": [*LINT, f"{POOL} -m not exact and not gpu"],
    "tests/core -k seed": [f"{POOL} tests/core -k seed"],
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that is set up."""
    root = tmp_path / "a check out"
    shutil.copytree(LAUNCHERS, root / "launchers")
    programs = {
        root / ".venv" / "bin" / "python": f'echo "$*" >>"{tmp_path}/asked"; [[ $* != *"${{FAILS:-none}}"* ]]',
        tmp_path / "bin" / "dafny": "exit 0",
    }
    for program, text in programs.items():
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/usr/bin/env bash\n{text}\n")
        program.chmod(0o755)
    (root / "launchers" / "requirements.txt").write_text("")
    made = f'source "{root}/launchers/setup.sh"; fingerprint >"$stamp"'
    subprocess.run(["bash", "-euc", made], check=True, timeout=60)
    return root


def launched(checkout: Path, words: list[str], fails: str = "none") -> tuple[int, list[str], str]:
    """The exit code, the commands that ran, and what was printed."""
    env = os.environ | {"PATH": f"{checkout.parent / 'bin'}:{os.environ['PATH']}", "FAILS": fails}
    command = ["bash", str(checkout / "launchers" / "test.sh"), *words]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    asked = (checkout.parent / "asked").read_text().splitlines()
    return done.returncode, [line.removeprefix("-m ") for line in asked], done.stdout + done.stderr


@pytest.mark.parametrize("words", STEPS)
def test_style_and_types_come_first(words: str, checkout: Path) -> None:
    code, commands, said = launched(checkout, words.split())
    assert (code, commands) == (0, STEPS[words]), said


@pytest.mark.parametrize(("fails", "ran"), [("ruff check", 1), ("mypy", 3), ("tier=unit", 4), ("tier=rest", 5)])
def test_the_first_failure_stops(fails: str, ran: int, checkout: Path) -> None:
    code, commands, said = launched(checkout, [], fails)
    assert (code, commands) == (1, STEPS[""][:ran])
    assert said.count("=== FAILED") == 1 and said.count("=== passed") == ran - 1
