"""How a run was produced: manifest.json, and the fingerprint of options, data and initial weights.

The parent writes what it knows into the manifest; a stage adds what only the stage learns. Versions come from package metadata,
so that nothing heavy is imported.

The fingerprint determines the trajectory of a run, and checkpoints contain it. `RESUME_MUTABLE` lists options that may differ
when a run is resumed: where and how often files are written, how the work is distributed, the number of steps, the band that a
person sends a curriculum to, and a study or a chain, whose runs have their own fingerprints. The initial weights are the files that a
policy starts from. They remain in use as the reference policy, as the base of an adapter, as the tokenizer and as the code of
`trust_remote_code`, none of which a checkpoint contains.
"""

import json
import os
import platform
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

import rlvr_exp
from rlvr_exp.config.model import EMBEDDED_MODELS, Model, base, continued
from rlvr_exp.config.needs import WEIGHTS, snapshots
from rlvr_exp.config.roles import starts
from rlvr_exp.config.schema import Config
from rlvr_exp.core import sealed
from rlvr_exp.core.errors import InputProblem
from rlvr_exp.core.files import write_json
from rlvr_exp.core.hashing import checksum, content_hash
from rlvr_exp.core.secrets import masked
from rlvr_exp.records import manifest

NAME = "manifest.json"
PACKAGES = (
    "torch", "transformers", "trl", "accelerate", "peft", "bitsandbytes", "deepspeed", "datasets", "tokenizers", "safetensors",
    "numpy", "hydra-core", "omegaconf",
)  # fmt: skip


def begin(directory: Path, stage: str, seed: int, command: Sequence[str], created: str) -> None:
    """Write the manifest of a run that is about to start.

    Args:
        command: the command line, word by word.
        created: local time, ISO 8601.
    """
    write_json(
        directory / NAME,
        {
            "stage": stage,
            "seed": seed,
            "command": [masked(word) for word in command],
            "created": created,
            "versions": versions(),
            "git": _git(Path(rlvr_exp.__file__).parent),
            "platform": platform.platform(),
            "hardware": hardware(),
        },
    )


def mark_resumed(directory: Path, checkpoint: Path, command: Sequence[str], created: str) -> None:
    """Record the checkpoint and the versions of a resumed run. Earlier entries are kept."""
    entry = {"checkpoint": str(checkpoint), "command": [masked(word) for word in command], "created": created}
    update(directory, versions=versions(), resumed=[*_read(directory).get("resumed", []), entry])


def commands(directory: Path) -> list[list[str]]:
    """The commands that started and resumed the run, in order, with secrets masked."""
    known = _read(directory) if (directory / NAME).is_file() else {}
    return [entry["command"] for entry in (known, *known.get("resumed", ())) if entry.get("command")]


def record_override(directory: Path, band: int, step: int, created: str) -> None:
    """Record the difficulty band that a start of the run sends its curriculum to, and the step after which it does so. -1 (no
    band) is recorded only after an earlier band."""
    earlier = _read(directory).get("overrides", [])
    if band >= 0 or earlier:
        update(directory, overrides=[*earlier, {"band": band, "after_step": step, "created": created}])


def resumed_from(directory: Path) -> Path | None:
    """The checkpoint that the run was resumed from; None for a run that was not resumed."""
    resumed = _read(directory).get("resumed", [])
    return Path(resumed[-1]["checkpoint"]) if resumed else None


def _read(directory: Path) -> dict[str, Any]:
    return json.loads((directory / NAME).read_text(encoding="utf-8"))


def section(directory: Path, name: str) -> dict[str, Any]:
    """A section of the manifest; empty if it is missing."""
    return _read(directory).get(name) or {}


def update(directory: Path, **sections: Any) -> None:
    """Add or replace sections. Only one process of a run calls this."""
    write_json(directory / NAME, _read(directory) | sections)


def hardware() -> dict[str, Any]:
    """Cores that this process may use, and the machine's memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"machine": platform.machine(), "cores": len(os.sched_getaffinity(0)), "memory_gb": round(memory / 2**30, 1)}


def versions() -> dict[str, str | None]:
    """Versions of the package, of Python and of the package's dependencies; None for those that are not installed."""
    own = {"rlvr_exp": rlvr_exp.__version__, "python": platform.python_version()}
    return own | {name: _version(name) for name in PACKAGES}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git(folder: Path) -> dict[str, Any] | None:
    """Commit of the checkout that the package runs from; None outside of a checkout."""
    commit = _git_output(folder, "rev-parse", "HEAD")
    # A package installed somewhere inside another repository is not part of it.
    if commit is None or _git_output(folder, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    return {"commit": commit, "dirty": bool(_git_output(folder, "status", "--porcelain", "--untracked-files=no"))}


def _git_output(folder: Path, *arguments: str) -> str | None:
    try:
        command = ["git", "-C", str(folder), *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None


RESUME_MUTABLE = (
    "run", "tracking", "cache", "study", "chain", "executor", "sandbox.workers", "verifier.validate", "verifier.pool", "verifier.address", "evaluation.batch_size",
    "evaluation.remember", "engine.memory_share", "engine.url", "engine.api_key_env", "engine.concurrency", "engine.timeout_s",
    "engine.retries", "engine.backoff_s", "curriculum.override", "algorithm.max_steps",
    "algorithm.rollout_batch_size", "algorithm.max_tokens_per_device", "parallel.threads", "parallel.timeout_s",
    "parallel.node", "parallel.address", "parallel.port", "parallel.device", "parallel.device_memory_gib",
)  # fmt: skip
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
    """The options that must not differ, from the resolved configuration in config.yaml. Secrets stay masked."""
    return {key: value for key, value in flat(values).items() if not is_resume_mutable(key)}


def is_resume_mutable(key: str) -> bool:
    key = re.sub(r"^roles\.\w+\.(?=engine\.)", "", key)  # a role's own server is one as well
    return any(key == free or key.startswith(f"{free}.") for free in RESUME_MUTABLE)


def run_fingerprint(directory: Path) -> dict[str, Any]:
    """The record of a run in the manifests of its checkpoints, from the files of the run directory or of a rank's folder."""
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


OTHERS = ("*.json", "*.py", "*.jinja", "*.model", "merges.txt", "vocab.txt")
"""Configurations, tokenizers and code."""
VALUE = ("value/*.safetensors",)
"""The value head of PPO."""
ABOUT = (sealed.NAME, "state.json", "trainer_state.json", "training_args.json")
"""Files about the run that wrote the folder. They do not belong to the policy."""


def initial_weights(config: Config) -> dict[str, str]:
    """SHA-256 of each file of the policies that a run starts with, by `model/NAME`, `adapter/NAME`, `tokenizer/NAME` and
    `ROLE/NAME`, of roles with a model node of their own `ROLE/model/NAME`.

    Reads all weights once; files that this process has already checked are not read a second time.
    """
    found = _of_model(config.model)
    for role, own in config.roles.items():
        if own.model is not None and own.model != config.model:
            found |= {f"{role}/{name}": value for name, value in _of_model(own.model).items()}
    return found | _of_folders({role: folder for role, folder in starts(config).items() if folder}, config.model)


def _of_model(model: Model) -> dict[str, str]:
    folders = {"model": _base(model), "adapter": continued(model), "tokenizer": model.tokenizer}
    return _of_folders({part: folder for part, folder in folders.items() if folder}, model)


def _of_folders(folders: Mapping[str, str | Path], model: Model) -> dict[str, str]:
    weights = () if model.from_scratch else (*WEIGHTS, *VALUE)
    return {
        f"{part}/{path.relative_to(folder).as_posix()}": checksum(path)
        for part, folder in folders.items()
        for path in _files(Path(folder), (*OTHERS, *weights))
    }


def changed_initial_weights(theirs: Mapping[str, str], ours: Mapping[str, str]) -> Iterator[InputProblem]:
    """Files of the initial weights that differ from those that the run started with, one problem each."""
    remedy = "bring the start model back that the run was started with, or a new run.dir"
    for name in sorted(theirs.keys() | ours.keys()):
        there, here = theirs.get(name, "no such file"), ours.get(name, "no such file")
        if there != here:
            yield InputProblem("model", f"the start model's {name} holds something else", here, there, "", remedy)


def _base(model: Model) -> Path | None:
    """The folder of the weights below any adapter; None if it is missing, which is reported before a run starts."""
    named = base(model)
    folders = (Path(named), *_of_hub(named)) if named else (EMBEDDED_MODELS / model.embedded,)
    return next((folder for folder in folders if folder.is_dir()), None)


def _of_hub(name: str) -> Iterator[Path]:
    """The snapshot in the hub's cache for a name: the revision in `refs/main`."""
    for folder in snapshots(name):
        main = folder.parents[1] / "refs" / "main"
        if main.is_file() and main.read_text(encoding="utf-8").strip() == folder.name:
            yield folder


def _files(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    found = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    return sorted(path for path in found if path.name not in ABOUT)
