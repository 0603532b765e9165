"""The problems of the page on extending: its rows are a data set, and its commands run unchanged."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from program import ENVIRONMENT, PROGRAM

import rlvr_exp
from rlvr_exp.domains.code.tasks import Code

PAGE = (Path(rlvr_exp.__file__).parent / "docs" / "extending.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    python -m rlvr_exp (.*toy\.jsonl.*)$", PAGE, re.MULTILINE)


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    (rows,) = re.findall(r"```jsonl\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "toy.jsonl").write_text(rows)
    return tmp_path


def test_the_rows_of_the_page_have_the_splits_that_it_names(toy: Path) -> None:
    sizes = Code(str(toy / "toy.jsonl"), judge="python_io").sizes()
    assert ", ".join(f"{name} {count}" for name, count in sizes.items()) in PAGE


@pytest.mark.slow
def test_the_commands_of_the_page_run_as_they_stand(toy: Path) -> None:
    assert [re.search(r"stage=(\w+)", one)[1] for one in COMMANDS] == "validate grpo sft grpo evaluate infer".split()
    for command in COMMANDS:
        done = subprocess.run(
            [*PROGRAM, *shlex.split(command)], cwd=toy, env=ENVIRONMENT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, command + done.stdout + done.stderr
    assert list(toy.glob("outputs/*/*_infer/answers.jsonl"))
