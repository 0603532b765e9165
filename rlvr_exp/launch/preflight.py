"""Whether a run can start on this machine: its inputs exist, its packages are installed, its directory is free, its baseline was
measured in the same way, and its stores of solutions can be used.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rlvr_exp.config.data import SINGLE_TURN
from rlvr_exp.config.engine import is_server
from rlvr_exp.config.load import build, load
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.config.options import SCHEMAS
from rlvr_exp.config.roles import starts
from rlvr_exp.config.schema import Config, reads
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.launch.data_check import data_problems, domain_of
from rlvr_exp.launch.resume import problem_before
from rlvr_exp.records import manifest
from rlvr_exp.records.rollout_files import evaluation_path
from rlvr_exp.solutions.store import SolutionStore, keeping_of

CHECKED_BY_BUILDING = ("reward", "tracking")
"""Nodes whose objects are light and report problems at construction."""


def preflight_problems(config: Config, fetchable: bool) -> Iterator[InputProblem]:
    """Every problem that prevents the start. `fetchable`: what a command can fetch is no problem yet, as in a plan."""
    yield from missing_problems(config, fetchable)
    if reads(config, "engine") and is_server(config.engine) and not config.engine.url:
        allowed, remedy = "http:// or https://, HOST, up to /v1", "engine.url=http://localhost:8000/v1"
        yield InputProblem("engine.url", "not given", "nothing", allowed, "", remedy)
    for name in CHECKED_BY_BUILDING:
        node = getattr(config, name)
        # A user's own class may import anything; it reports problems when the stage builds it.
        if reads(config, name) and node._target_ in SCHEMAS:
            yield from _problems_of(node)
    yield from data_problems(config)
    yield from baseline_problems(config)
    yield from store_problems(config)
    if problem := problem_before(config):
        yield problem


def missing_problems(config: Config, fetchable: bool) -> Iterator[InputProblem]:
    """What is missing on this machine."""
    return (need.problem for need in missing_artifacts(config) if not (fetchable and need.command))


def _problems_of(node: object) -> tuple[InputProblem, ...]:
    try:
        build(node)
    except InputError as fault:
        return fault.problems
    return ()


BASELINE = "evaluate.baseline"
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
        theirs, ours = _conditions(load(directory / "config.yaml")), _conditions(config)
        differing = {key: value for key, value in ours.items() if theirs.get(key) != value}
        for key, value in differing.items():
            got = f"{theirs.get(key)} there, {value} here"
            yield InputProblem(BASELINE, f"{key} differs", got, remedy=f"{key}={theirs.get(key)}")
        if not differing:
            yield from _baseline_files(directory, config)
    except InputError as fault:
        yield from fault.problems


def _baseline_files(directory: Path, config: Config) -> Iterator[InputProblem]:
    if not evaluation_path(directory, "after").is_file():
        yield InputProblem(BASELINE, "it was not evaluated", str(directory), "a run that has evaluation/after.jsonl.gz")
    if starts(config) or getattr(config.data, "usable", "trust") == "check":
        return  # Which of the tasks are its own is known once golds are proved.
    split, domain = config.evaluation.split, domain_of(config)
    recorded = manifest.section(directory, "data") if (directory / manifest.NAME).is_file() else {}
    known = recorded.get(split, {}).get("fingerprint")
    if known and domain is not None and split in domain.sizes() and known != domain.fingerprint(split):
        what = f"it was evaluated on other tasks: those of {split!r} are not the same"
        yield InputProblem(BASELINE, what, str(directory), "a run on the same data")


def _conditions(config: Config) -> Mapping[str, Any]:
    """All options except the policy that determine the evaluation, flat."""
    nodes = {name: asdict(getattr(config, name)) for name in ("evaluation", "data", "verifier", "sandbox")}
    nodes["environment"] = asdict(config.environment) if config.environment else {"_target_": SINGLE_TURN}
    nodes["model"] = {name: getattr(config.model, name) for name in ("max_prompt_tokens", "max_completion_tokens")}
    flat = {f"{node}.{name}": value for node, values in nodes.items() for name, value in values.items()}
    return {key: value for key, value in flat.items() if key not in NEUTRAL}


def store_problems(config: Config) -> Iterator[InputProblem]:
    """Files that are no stores, of another version, or made to keep otherwise; nothing of what is not there."""
    options = config.solutions
    if options is None:
        return
    keeping = keeping_of(options) if options.action in ("import", "add", "merge") else None
    stores = [("path", options.path, keeping)]
    stores += [("input", options.input, None)] if options.action == "merge" else []
    for name, path, wanted in stores:
        if path and Path(path).exists():
            try:
                SolutionStore(Path(path), wanted, read_only=True, option=f"solutions.{name}").close()
            except InputError as fault:
                yield from fault.problems
