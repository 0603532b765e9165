"""conf/README.md: every group has its line, and what a line names is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_group_is_explained_and_every_path_exists() -> None:
    page = (ROOT / "conf" / "README.md").read_text()
    groups = {folder.name for folder in (ROOT / "conf").iterdir() if folder.is_dir()}
    assert set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE)) == groups
    named = set(re.findall(r"`(rlvr_exp/[a-z_/]+(?:\.py)?)`", page)) - {"rlvr_exp/conf"}
    assert len(named) > len(groups) / 2 and not [name for name in named if not (ROOT / name).exists()]
