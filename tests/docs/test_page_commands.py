"""Every command line of every page composes, and those that need nothing from outside run; a page that shows Python has a
test that runs it."""

import re
import subprocess
from pathlib import Path

import pytest
from page_commands import COMMANDS, PAGES, single, stands_alone
from program import ENVIRONMENT, PROGRAM
from thinning import thinned

from rlvr_exp.config.compose import compose_lenient

OWN_PARTS = ("environment=review", "hydra.searchpath=")
"""Of parts that a reader writes first: tests/readme/test_adding.py writes them."""
HELD = {
    "checkpoints.md",
    "environments.md",
    "extending.md",
    "inference.md",
    "problems.md",
    "studies.md",
    "verifiers.md",
}
"""Pages with Python blocks, each run by a test of its own (tests/readme; checkpoints.md: tests/stages/test_main_job.py)."""
LIGHT = [(page, command) for page, command in COMMANDS if not any(part in command for part in OWN_PARTS)]
PLACES = re.compile(r" (?:seed|evaluation\.skip|benchmark\.pairs)=\d+")
"""Words that say how often, not what."""
ALONE = list(dict.fromkeys(PLACES.sub("", " ".join(single(one))) for _, one in LIGHT if stands_alone(one)))


def test_every_command_of_a_page_composes() -> None:
    problems = {(page, command): compose_lenient(single(command)).problems for page, command in thinned(LIGHT, 6)}
    assert {shown: found for shown, found in problems.items() if found} == {}


def test_commands_are_found() -> None:
    assert len(LIGHT) > 100 and len(ALONE) > 20


def test_a_page_with_python_has_a_test_that_runs_it() -> None:
    assert {
        page.name for page in PAGES if re.search("^ *```python|^    (?:from|import) ", page.read_text(), re.MULTILINE)
    } == HELD


@pytest.mark.slow
@pytest.mark.parametrize("command", ALONE)
def test_a_command_that_needs_nothing_runs(command: str, tmp_path: Path) -> None:
    words = command.replace("'", "").split()
    smallest = ["benchmark.pairs=20"] if "benchmark=agreement" in words else ["+experiment=quick"]
    done = subprocess.run(
        [*PROGRAM, *dict.fromkeys([*words, *smallest])],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(tmp_path.glob("outputs/*/*/summary.json"))
