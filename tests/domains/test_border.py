"""The border of core and domains: the program works without the folder of any domain."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rlvr_exp
from rlvr_exp.core.domains import domains

ROOT = Path(rlvr_exp.__file__).parents[1]
OTHER = {"arc": "+stage=grpo data=problems model=tiny_solver"}
"""A run of another domain, for each domain that is deleted; for all others `+stage=grpo`, which is a run of ARC."""
SMALL = "+experiment=quick algorithm.max_steps=1 evaluation.tasks=2 evaluation.samples=1 cache.enabled=false verifier.validate=1"
SMALL += " algorithm.entropy_coef=1e-6"  # Every group is learned from.


def without(name: str, target: Path) -> None:
    """Copy the package and its configuration to a folder, without a domain and the YAML that names its classes."""
    assets = ROOT / "rlvr_exp" / "assets"
    shutil.copytree(
        ROOT / "rlvr_exp", target / "rlvr_exp", ignore=shutil.ignore_patterns("__pycache__", "assets", "docs")
    )
    (target / "rlvr_exp" / "assets").symlink_to(assets)
    shutil.copytree(ROOT / "conf", target / "conf")
    shutil.rmtree(target / "rlvr_exp" / "domains" / name)
    own = [path for path in (target / "conf").rglob("*.yaml") if f"rlvr_exp.domains.{name}." in path.read_text()]
    assert own
    for path in own:
        path.unlink()


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.slow] * (one != "arc")) for one in domains()])
def test_the_program_works_without_a_domain(name: str, tmp_path: Path) -> None:
    without(name, tmp_path / "copy")
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "copy")}
    for words in (["--help"], [*OTHER.get(name, "+stage=grpo").split(), *SMALL.split(), "run.dir=run"]):
        command = [sys.executable, "-m", "rlvr_exp", *words]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "run" / "report.html").is_file()
    assert (
        str(tmp_path / "copy")
        in subprocess.run(
            [sys.executable, "-c", "import rlvr_exp; print(rlvr_exp.__file__)"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
