"""The complete experiments of the page on memory: each composes, its plan fits its devices, and the page has its figures and a
reason for each value."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from page_commands import PACKAGE, ROOT

from rlvr_exp.config.compose import compose
from rlvr_exp.memory.advice import room
from rlvr_exp.memory.phases import estimate, too_large
from rlvr_exp.memory.reading import workload_of
from rlvr_exp.memory.workload import GIB

PAGE = (PACKAGE / "docs" / "memory.md").read_text(encoding="utf-8")
DEVICES = {"two_32gb": (2, 31.3), "one_32gb": (1, 31.3), "laptop": (1, 8)}
"""Processes, and GiB of the device of each."""
SECTION = {"two_32gb": "Two GPUs of 32 GB", "one_32gb": "One GPU of 32 GB", "laptop": "A laptop"}


def leaves(node: dict[str, Any], path: str = "") -> Iterator[str]:
    """`key.path=value` of every value of a YAML, and `group=option` of every choice in its defaults."""
    for key, value in node.items():
        if key == "defaults":
            chosen = [next(iter(entry.items())) for entry in value if entry != "_self_"]
            yield from (f"{group.removeprefix('override /')}={option}" for group, option in chosen)
        elif isinstance(value, dict):
            yield from leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}={value}"


@pytest.mark.parametrize("name", DEVICES)
def test_the_plan_fits_the_devices_and_the_page_has_its_figures(name: str) -> None:
    config = compose(["+stage=grpo", f"+experiment={name}"]).config
    processes, device = DEVICES[name]
    assert (config.parallel.processes, room(config)) == (processes, device)
    phases = estimate(workload_of(config))
    assert too_large(phases, device) is None and "backward" in phases
    totals = {phase: sum(lines.values()) / GIB for phase, lines in phases.items()}
    highest = max(totals, key=lambda phase: totals[phase])
    (row,) = re.findall(rf"^\| `{name}` .*$", PAGE, re.MULTILINE)
    assert f"| {totals[highest]:.1f} of {device:g} GiB" in row and row.endswith(f"| {highest} |")


@pytest.mark.parametrize("name", DEVICES)
def test_the_page_says_why_for_every_value(name: str) -> None:
    text = (ROOT / "conf" / "experiment" / f"{name}.yaml").read_text(encoding="utf-8")
    section = re.split("\n##+ ", PAGE.partition(f"### {SECTION[name]}\n")[2])[0]
    given = list(leaves(yaml.safe_load(text)))
    assert len(given) > 8 and [value for value in given if f"`{value}`" not in section] == []


def test_states_in_full_precision_would_not_fit_one_device() -> None:
    """The page's reason for 8 bits."""
    config = compose(["+stage=grpo", "+experiment=one_32gb", "optimizer=adamw", "optimizer.lr=1e-6"]).config
    assert too_large(estimate(workload_of(config)), 31.3)[0] == "backward"
