"""Stages that read an earlier run inherit its options: its own config.yaml is overridden by the words of the
command line.

`+stage=rescore rescore.run=DIR sandbox.cpu_s=4` verifies as DIR did, except for the limit. A group that the words
choose (`verifier=pytest`) is taken as chosen, with nothing of the run's.
"""

import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from hydra.core.override_parser.types import Override

from rlvr_exp.config.stages import STAGES
from rlvr_exp.config.tree import Tree


def inherit_run_config(tree: Tree, choices: Collection[Override], values: Sequence[Override]) -> list[Path]:
    """Put the run's nodes in the place of the groups' first options; nothing where there is no such run.

    Args:
        choices: groups chosen on the command line; they stay.
        values: the overrides that are not applied yet, among them the name of the run.

    Returns:
        Folders with the run's own classes, which can be imported now.
    """
    stage = str(tree.values.get("stage"))
    named = [str(value.value()) for value in values if value.key_or_group == f"{stage}.run"]
    inherited = STAGES[stage].inherits if stage in STAGES else ()
    if not inherited or not named:
        return []
    path = Path(named[-1]) / "config.yaml"
    given = _read(path)
    chosen = {choice.key_or_group for choice in choices}
    for name in ("seed", *inherited):
        if name in given and name not in chosen:
            if name in tree.values:
                tree.remove((name,))
            tree.put((name,), given[name], str(path))
    folders = [str(folder) for folder in (given.get("run") or {}).get("searchpath") or ()]
    sys.path += [folder for folder in folders if folder not in sys.path]
    return [Path(folder) for folder in folders]


def _read(path: Path) -> Mapping[str, Any]:
    """Empty where it cannot be read, which rlvr_exp.config.needs reports."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return found if isinstance(found, dict) else {}
