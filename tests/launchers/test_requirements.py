"""The pins: exact, the same for every platform, complete, and what pyproject.toml asks for."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PLATFORM_ONLY = re.compile(r"nvidia|cuda|triton")
"""What torch itself asks for where there is a GPU."""


def pins() -> dict[str, str]:
    lines = (ROOT / "launchers" / "requirements.txt").read_text().splitlines()
    wanted = [line for line in lines if not line.startswith("#")]
    found = {}
    for line in wanted:
        exact = re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.]+)", line)
        assert exact, f"not a plain NAME==VERSION: {line}"
        found[canonicalize_name(exact[1])] = exact[2]
    assert len(found) == len(wanted)
    return found


def test_pins_are_plain_and_for_every_platform() -> None:
    assert not [name for name in pins() if PLATFORM_ONLY.match(name)]


def test_pins_satisfy_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked = project["project"]["dependencies"] + project["project"]["optional-dependencies"]["dev"]
    asked += project["build-system"]["requires"]
    for requirement in map(Requirement, asked):
        assert requirement.specifier.contains(pins()[canonicalize_name(requirement.name)]), requirement


def test_nothing_that_a_pin_needs_is_left_open() -> None:
    held = pins()
    for name in held:
        for requirement in map(Requirement, metadata.requires(name) or []):
            needed = canonicalize_name(requirement.name)
            if PLATFORM_ONLY.match(needed) or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
                continue
            assert needed in held, f"{name} needs {needed}, which is not pinned"


def test_the_environment_holds_the_pins() -> None:
    have = {name: metadata.version(name).split("+")[0] for name in pins()}
    assert have == pins()
