"""The notebooks: valid, small, without outputs, with commands that compose; executed from top to bottom, they leave the files
that their text names."""

import os
import re
import shlex
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest
from commands import processor_seconds
from page_commands import PACKAGE, ROOT

from rlvr_exp.config.compose import compose_lenient

FOLDER = PACKAGE / "docs" / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
COMMAND = re.compile(r"^python -m rlvr_exp (.*?)(?: >.*)?$", re.MULTILINE)
WRITTEN = re.compile(r"%%writefile (\S+)\n(.*)", re.DOTALL)
PROMISED = re.compile(r"`([\w-]+/[\w./-]+\.\w+)`")
MACHINE_PATH = re.compile(r"/(?:home|root|tmp|work|Users|mnt|content)/")
SECONDS = 90
"""Of one core, for all cells of a notebook."""


def read(name: str) -> nbformat.NotebookNode:
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def cells(name: str, kind: str) -> list[str]:
    return [cell.source for cell in read(name).cells if cell.cell_type == kind]


def commands(name: str) -> list[list[str]]:
    """The words of each command line."""
    text = "\n".join(cells(name, "code")).replace("\\\n", " ")
    return [shlex.split(line) for line in COMMAND.findall(text)]


def test_the_five_notebooks_are_linked_from_the_index() -> None:
    index = (PACKAGE / "docs" / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\]\(notebooks/(\w+)\.ipynb\)", index)) == NOTEBOOKS
    assert NOTEBOOKS == ["cascade", "own_data_and_model", "own_verifier", "study", "train_and_read"]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_is_valid_and_stored_without_outputs(name: str) -> None:
    notebook = read(name)
    nbformat.validate(notebook)
    file = FOLDER / f"{name}.ipynb"
    assert file.read_text(encoding="utf-8") == nbformat.writes(notebook) + "\n" and file.stat().st_size < 15_000
    assert not MACHINE_PATH.search(file.read_text(encoding="utf-8"))
    assert not [cell for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")]
    assert "In Colab and Kaggle" in cells(name, "code")[0]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_its_links_lead_somewhere(name: str) -> None:
    links = re.findall(r"\]\(([^)#]+)", "\n".join(cells(name, "markdown")))
    assert links and [link for link in links if not (FOLDER / link).exists()] == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_its_commands_compose(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for file, text in written(name):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    problems = {" ".join(words): compose_lenient(words).problems for words in commands(name)}
    assert len(problems) > 1 and {line: found for line, found in problems.items() if found} == {}


def written(name: str) -> list[tuple[str, str]]:
    """Name and content of the files that cells write."""
    return [found.groups() for found in map(WRITTEN.fullmatch, cells(name, "code")) if found]


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_runs_and_leaves_the_files_of_its_text(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if name == "cascade":
        request.getfixturevalue("dafny")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    before, place = processor_seconds(), {"metadata": {"path": str(tmp_path)}}
    notebook = nbclient.NotebookClient(read(name), timeout=300, resources=place).execute()
    assert processor_seconds() - before < SECONDS
    executed = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in executed)
    assert not [out for cell in executed for out in cell.outputs if out.output_type == "error"]
    assert any("image/svg+xml" in out.get("data", {}) for cell in executed for out in cell.outputs), "a figure"
    promised = PROMISED.findall("\n".join(cells(name, "markdown")))
    assert any(file.endswith(".html") for file in promised)
    assert [file for file in promised if not (tmp_path / file).is_file() or not os.path.getsize(tmp_path / file)] == []
