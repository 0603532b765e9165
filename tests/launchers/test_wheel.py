"""The wheel: all that a run reads is in it, at the place where the installed package looks."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def tracked(folder: str) -> set[str]:
    """The files that belong to the project, known to git or about to be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", folder]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout: no list of the project's files")
    return {name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()}


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-I", "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--quiet", "--wheel-dir", str(folder), str(ROOT)], check=True)
    (built,) = folder.glob("rlvr_exp-*.whl")
    with zipfile.ZipFile(built) as archive:
        entry_points = next(name for name in archive.namelist() if name.endswith("entry_points.txt"))
        assert b"rlvr-exp = rlvr_exp.main:main" in archive.read(entry_points)
        return set(archive.namelist())


def test_package_with_docs_and_assets_is_in_the_wheel(names: set[str]) -> None:
    assert tracked("rlvr_exp") <= names


def test_conf_lies_inside_the_package(names: set[str]) -> None:
    conf = {f"rlvr_exp/{name}" for name in tracked("conf")}
    assert conf and conf <= names


def test_nothing_else_is_in_the_wheel(names: set[str]) -> None:
    assert {name.split("/")[0].split("-")[0] for name in names} == {"rlvr_exp"}
    assert not [name for name in names if name.endswith(".pyc")]
