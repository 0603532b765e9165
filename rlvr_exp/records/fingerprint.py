"""The fingerprint of a run: options, data and initial weights, which determine its trajectory. Checkpoints carry it.

`RESUME_MUTABLE` lists what may differ when a run is resumed: where and how often files are written, how the work is
distributed, the number of steps, the band that a person sends a curriculum to, and a study, whose runs have fingerprints of
their own. Never imports torch.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from rlvr_exp.core.errors import InputProblem
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.records import manifest

RESUME_MUTABLE = (
    "run",
    "tracking",
    "cache",
    "study",
    "executor",
    "sandbox.workers",
    "verifier.validate",
    "evaluation.batch_size",
    "evaluation.remember",
    "engine.memory_share",
    "engine.drafts",
    "curriculum.override",
    "algorithm.max_steps",
    "algorithm.rollout_batch_size",
    "algorithm.max_tokens_per_device",
    "parallel.threads",
    "parallel.timeout_s",
    "parallel.node",
    "parallel.address",
    "parallel.port",
    "parallel.device",
    "parallel.device_memory_gib",
    "parallel.link_gb_s",
)
"""Options, or complete nodes of options, that may differ."""
MAX_STEPS = "algorithm.max_steps"


def flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Leaves of nested values by their dotted paths; an empty mapping is a leaf."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        path = f"{above}{key}"
        found |= flat(value, f"{path}.") if isinstance(value, Mapping) and value else {path: value}
    return found


def trajectory_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """The options that must not differ, from a resolved configuration as in config.yaml; secrets stay masked."""
    return {key: value for key, value in flat(values).items() if not is_resume_mutable(key)}


def is_resume_mutable(key: str) -> bool:
    return any(key == free or key.startswith(f"{free}.") for free in RESUME_MUTABLE)


def run_fingerprint(directory: Path) -> dict[str, Any]:
    """What a checkpoint's manifest records about its run, from the files of the run directory (or of a rank's own
    folder)."""
    config = yaml.safe_load((directory / "config.yaml").read_text(encoding="utf-8"))
    written = json.loads((directory / manifest.NAME).read_text(encoding="utf-8"))
    options, data = trajectory_options(config), {name: part["fingerprint"] for name, part in written["data"].items()}
    return {
        "run": content_hash([options, data, written["start"]]),
        "stage": config["stage"],
        "max_steps": flat(config).get(MAX_STEPS),
        "versions": written["versions"],
        "config": options,
        "data": data,
        "start": written["start"],
    }


def differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[InputProblem]:
    """Options that determine the trajectory and differ from those of the checkpoint."""
    for key in sorted(theirs.keys() | ours.keys()):
        there, here = (side.get(key, "not an option") for side in (theirs, ours))
        if there != here:
            remedy = f"{key}={there}, or a new run.dir"
            yield InputProblem(key, "differs from that of the run to resume", str(here), str(there), "", remedy)


def changed_data(theirs: Mapping[str, str], ours: Mapping[str, str]) -> Iterator[InputProblem]:
    """Splits whose tasks differ from those of the checkpoint."""
    remedy = "bring the data back that the run was started with, or a new run.dir"
    for name in sorted(theirs.keys() | ours.keys()):
        there, here = theirs.get(name, "no such split"), ours.get(name, "no such split")
        if there != here:
            yield InputProblem("data", f"split {name!r} holds other tasks", f"fingerprint {here}", there, "", remedy)
