"""Whether a run can be compared with a baseline: before anything is evaluated."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rlvr_exp.config.environment import SINGLE_TURN
from rlvr_exp.config.load import load as load_config
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.launch.data_check import domain_of
from rlvr_exp.records import manifest
from rlvr_exp.records.rollout_files import evaluation_path

WHERE = "evaluate.baseline"
NEUTRAL = (
    *("evaluation.batch_size", "evaluation.remember", "sandbox.workers", "verifier.validate"),
    *("evaluation.vote", "evaluation.excess_code", "evaluation.bits"),
    *("data.mix", "data.reorder", "data.resample"),
)
"""Options that change no result that both runs have: how fast an evaluation is, what else is counted of the same answers,
what was trained on."""


def baseline_problems(config: Config) -> Iterator[InputProblem]:
    """Why the baseline was measured in another way, so that a difference would not be the policy's; nothing where its run is
    not there."""
    directory = Path(config.evaluate.baseline) if config.evaluate is not None and config.evaluate.baseline else None
    if directory is None or not (directory / "config.yaml").is_file():
        return
    try:
        theirs, ours = _conditions(load_config(directory / "config.yaml")), _conditions(config)
        differing = {key: value for key, value in ours.items() if theirs.get(key) != value}
        for key, value in differing.items():
            got = f"{theirs.get(key)} there, {value} here"
            yield InputProblem(WHERE, f"{key} differs", got, remedy=f"{key}={theirs.get(key)}")
        if not differing:
            yield from _of_files(directory, config)
    except InputError as fault:
        yield from fault.problems


def _of_files(directory: Path, config: Config) -> Iterator[InputProblem]:
    if not evaluation_path(directory, "after").is_file():
        yield InputProblem(WHERE, "it was not evaluated", str(directory), "a run that has evaluation/after.jsonl.gz")
    if (config.evaluate and config.evaluate.cascade) or getattr(config.data, "usable", "trust") == "check":
        return  # Which of the tasks are its own is known once golds are proved.
    split, domain = config.evaluation.split, domain_of(config)
    recorded = manifest.section(directory, "data") if (directory / manifest.NAME).is_file() else {}
    known = recorded.get(split, {}).get("fingerprint")
    if known and domain is not None and split in domain.sizes() and known != domain.fingerprint(split):
        what = f"it was evaluated on other tasks: those of {split!r} are not the same"
        yield InputProblem(WHERE, what, str(directory), "a run on the same data")


def _conditions(config: Config) -> Mapping[str, Any]:
    """All options except the policy that determine the evaluation, flat."""
    nodes = {name: asdict(getattr(config, name)) for name in ("evaluation", "data", "verifier", "sandbox")}
    nodes["environment"] = asdict(config.environment) if config.environment else {"_target_": SINGLE_TURN}
    nodes["model"] = {name: getattr(config.model, name) for name in ("max_prompt_tokens", "max_completion_tokens")}
    flat = {f"{node}.{name}": value for node, values in nodes.items() for name, value in values.items()}
    return {key: value for key, value in flat.items() if key not in NEUTRAL}
