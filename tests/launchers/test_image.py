"""The image of the project: its files, and a quick run inside it if an engine here holds the image."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from rlvr_exp.core.errors import InputError
from rlvr_exp.sandbox.tools import Image, find_image

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "launchers" / "Dockerfile"
NAME = os.environ.get("RLVR_IMAGE", "rlvr_exp")


def test_the_development_container_is_a_stage_of_the_image() -> None:
    build = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())["build"]
    assert (ROOT / ".devcontainer" / build["dockerfile"]).resolve() == DOCKERFILE
    assert build["target"] in re.findall(r"(?m)^FROM \S+ AS (\w+)$", DOCKERFILE.read_text())


def test_the_environment_is_installed_from_files_that_the_image_has_before_the_others() -> None:
    before = DOCKERFILE.read_text().partition("COPY . .")[0]
    copied = re.findall(r"(?m)^COPY (.+) \S+$", before)[0].split()
    assert copied == ["launchers/requirements.txt", "launchers/setup.sh"] and "setup.sh; setup" in before
    assert {".git", ".venv", "outputs"} <= set((ROOT / ".dockerignore").read_text().split())


@pytest.fixture(scope="module")
def image() -> Image:
    try:
        return find_image(NAME, f"podman build -t {NAME} -f launchers/Dockerfile .")
    except InputError as fault:
        pytest.skip(f"NO IMAGE {NAME}: no run is tried in it; {fault}")


@pytest.mark.slow
@pytest.mark.parametrize("user", [0, 4711])
def test_the_quick_run_trains_inside_as_root_and_as_another_user(image: Image, user: int, tmp_path: Path) -> None:
    (tmp_path / "outputs").mkdir()
    os.chmod(tmp_path / "outputs", 0o1777)
    own = ["--rm", "--network=none", f"--user={user}:{user}", f"--volume={tmp_path}/outputs:/runs/outputs"]
    words = ["+stage=grpo", "+experiment=[demo,quick]", "run.dir=outputs/quick"]
    subprocess.run([image.engine, "run", *own, image.id, *words], check=True, timeout=900)
    run = tmp_path / "outputs" / "quick"
    assert json.loads((run / "summary.json").read_text())["status"] == "completed"
    assert run.stat().st_uid == user
    level = json.loads((run / "manifest.json").read_text())["verifier"]["isolation"]["level"]
    assert level in (("namespaces", "process") if user else ("namespaces", "user"))
