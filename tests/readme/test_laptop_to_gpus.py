"""The commands from a laptop to two GPUs on the page about memory: they compose, and the figures are those of the plan. The rows are
those of the page on extending."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from program import ENVIRONMENT, PROGRAM

import rlvr_exp
from rlvr_exp.config.compose import compose
from rlvr_exp.config.run import planned
from rlvr_exp.domains.code.tasks import Code
from rlvr_exp.memory.phases import estimate
from rlvr_exp.memory.reading import workload_of
from rlvr_exp.memory.workload import GIB

DOCS = Path(rlvr_exp.__file__).parent / "docs"
SECTION = (
    (DOCS / "memory.md")
    .read_text(encoding="utf-8")
    .partition("## From a laptop to two GPUs\n")[2]
    .partition("\n## ")[0]
)
TEXT = " ".join(SECTION.split())
COMMANDS = {
    re.sub(r"\W*run\.dry=true", " plan", one): shlex.split(one)
    for one in re.findall(r"^    python -m rlvr_exp (.*)$", SECTION, re.MULTILINE)
}
PLAN = next(words for words in COMMANDS.values() if "run.dry=true" in words)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (rows,) = re.findall(r"```jsonl\n(.*?)```", (DOCS / "extending.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "toy.jsonl").write_text(rows)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_rows_of_the_page_are_ten_tasks_for_pytest(folder: Path) -> None:
    assert sum(Code(str(folder / "toy.jsonl"), judge="pytest").sizes().values()) == 10


def test_the_commands_of_the_page_compose(folder: Path) -> None:
    found = {name: compose(words).config for name, words in COMMANDS.items() if "run.resume=seven" not in words}
    assert [config.stage for config in found.values()] == [
        "validate",
        "grpo",
        "grpo",
        "prepare",
        "grpo",
        "evaluate",
        "evaluate",
    ]
    assert [config.parallel.processes for config in found.values()] == [1, 2, 1, 1, 2, 1, 1]


def test_the_figures_of_the_page_are_those_of_the_runs(folder: Path) -> None:
    large, small = (
        compose(words).config for words in (PLAN, next(w for w in COMMANDS.values() if "run.dir=small" in w))
    )
    steps, group = large.algorithm, large.algorithm.group_size
    assert f"{steps.max_steps} steps of {steps.prompts_per_step} prompts x {group} answers" in TEXT
    lengths = large.model
    assert f"at most {lengths.max_prompt_tokens} tokens and answers at most {lengths.max_completion_tokens}" in TEXT
    assert f"every {planned(large).every_steps} steps here" in TEXT and not planned(small).every_steps
    assert f"cut at {small.model.max_completion_tokens} tokens" in TEXT and small.model.adapter.kind == "none"


def test_the_plan_fits_and_the_page_has_its_figure(folder: Path) -> None:
    config = compose(PLAN).config
    highest = max(sum(lines.values()) / GIB for lines in estimate(workload_of(config)).values())
    assert config.parallel.device == "rtx5090" and f"{highest:.1f} of 31.3 GiB" in TEXT and highest < 31.3


@pytest.mark.slow
def test_the_commands_for_a_laptop_run_as_they_stand(folder: Path) -> None:
    for words in [words for words in COMMANDS.values() if "+stage=validate" in words or "run.dry=true" in words]:
        done = subprocess.run([*PROGRAM, *words], env=ENVIRONMENT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}{done.stdout}{done.stderr}"
