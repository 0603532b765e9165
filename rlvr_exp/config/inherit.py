"""Stages that read an earlier run inherit its options, and so does a run that is resumed by its directory alone: its own
config.yaml is overridden by the words of the command line.

`+stage=rescore rescore.run=DIR sandbox.cpu_s=4` verifies as DIR did, except for the limit; `run.resume=DIR
algorithm.max_steps=400` resumes DIR with all of its options but that one. A group that the words choose
(`verifier=pytest`) is taken as chosen, with nothing of the run's.
"""

import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from hydra.core.override_parser.types import Override

from rlvr_exp.config.run import AUTO
from rlvr_exp.config.stages import STAGES
from rlvr_exp.config.tree import Tree
from rlvr_exp.core.errors import InputProblem


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
    return _lay(tree, Path(named[-1]), ("seed", *inherited), choices) if inherited and named else []


def resumed_run(values: Sequence[Override]) -> tuple[str, list[InputProblem]]:
    """The stage of the run that `run.resume`, or `run.dir` with run.resume=auto, names; or that no run is there, which
    run.resume=auto may find."""
    directory = _resumed(values)
    stage = _read(directory / "config.yaml").get("stage") if directory else None
    if isinstance(stage, str) and stage in STAGES:
        return stage, []
    if directory is None or any(value.key_or_group == "run.resume" and value.value() == AUTO for value in values):
        return "", []
    near = next((str(above) for above in directory.parents[:2] if (above / "config.yaml").is_file()), "")
    allowed = "a run directory, with config.yaml and checkpoints/"
    return "", [InputProblem("run.resume", "no run is there", str(directory), allowed, near)]


def inherit_resumed(tree: Tree, choices: Collection[Override], values: Sequence[Override]) -> list[Path]:
    """Put all nodes of the run that is resumed in the place of the stage's own; as `inherit_run_config`."""
    directory = _resumed(values)
    if directory is None:
        return []
    folders = _lay(tree, directory, sorted(_read(directory / "config.yaml").keys() - {"stage"}), choices)
    tree.put(("run", "dir"), "", str(directory))  # It is named by the words, wherever it was written.
    return folders


def _resumed(values: Sequence[Override]) -> Path | None:
    given = {value.key_or_group: str(value.value()) for value in values}
    resume = given.get("run.resume", "")
    named = given.get("run.dir", "") if resume == AUTO else resume
    return Path(named) if named else None


def _lay(tree: Tree, run: Path, names: Collection[str], choices: Collection[Override]) -> list[Path]:
    path = run / "config.yaml"
    given = _read(path)
    chosen = {choice.key_or_group for choice in choices}
    for name in names:
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
