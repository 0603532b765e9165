"""Measurements before training that runs share: equal weights on equal tasks, drawn and judged alike, are measured once.

A run finds one by a hash of all that decides its samples, in the folder that `evaluation.remember` names.
"""

from pathlib import Path

from rlvr_exp.core.hashing import content_hash
from rlvr_exp.records.fingerprint import run_fingerprint
from rlvr_exp.records.rollout_files import EvalSample, evaluation_path, read_evaluation, write_evaluation

LEARNING = ("stage", "reward", "algorithm", "optimizer", "scheduler", "schedule", "curriculum")
"""Nodes that decide how a policy learns, and nothing that it answers before it has."""


def measurement(folder: str, run_dir: Path, split: str) -> Path:
    """Where a run's measurement before training is, or would be, in the folder of those remembered.

    Args:
        run_dir: with its configuration, and the fingerprints of its data and initial weights in its manifest.
    """
    run = run_fingerprint(run_dir)
    options = {key: value for key, value in run["config"].items() if key.partition(".")[0] not in LEARNING}
    return Path(folder) / content_hash([options, run["data"][split], run["start"], run["versions"]])


def recall(place: Path) -> list[EvalSample] | None:
    """None where nothing is there yet."""
    return read_evaluation(place, "before") if evaluation_path(place, "before").exists() else None


def remember(place: Path, scored: list[EvalSample]) -> None:
    write_evaluation(place, "before", scored)
