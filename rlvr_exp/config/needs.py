"""Artifacts of a configuration that may be missing on this machine: weights, data, other runs. Looks, never fetches."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from rlvr_exp.config.algorithm import AdamW8bit
from rlvr_exp.config.benchmark import OfShape
from rlvr_exp.config.checkpoint_files import checkpoint_problems
from rlvr_exp.config.engine import is_server, is_vllm
from rlvr_exp.config.model import (
    EMBEDDED_MODELS,
    Model,
    base,
    install_command,
    is_adapter,
    is_converted,
    package_problem,
)
from rlvr_exp.config.names import near_path
from rlvr_exp.config.parallel import SHARDING, device, planned
from rlvr_exp.config.roles import starts_missing, team_of_run
from rlvr_exp.config.schema import STAGE_GROUPS, Config, reads
from rlvr_exp.config.solutions import LOOKS, NEEDED, Solutions
from rlvr_exp.config.stage_options import SAMPLES, STDIN, Infer, Report, Verify
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.sealed import check_if_ours

HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")
"""OWNER/MODEL, which may be a relative path too."""
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


@dataclass(frozen=True)
class MissingArtifact:
    """Something missing."""

    problem: InputProblem
    command: str
    """What supplies it, so that a plan goes on without it: a command, or another machine; empty: only the user can."""


def missing_artifacts(config: Config) -> list[MissingArtifact]:
    """All missing artifacts, for the stage of the configuration."""
    return list(_missing_artifacts(config))


def _missing_artifacts(config: Config) -> Iterator[MissingArtifact]:
    if loads_weights(config):
        yield from weights_missing(config.model)
        for role, own in config.roles.items():
            for need in weights_missing(own.model) if own.model and own.model != config.model else ():
                yield replace(need, problem=replace(need.problem, where=f"roles.{role}.{need.problem.where}"))
    yield from _engine_missing(config)
    if reads(config, "data") and config.data.path and not Path(config.data.path).exists():
        yield _missing_data(config.data.path)
    if reads(config, "optimizer") and isinstance(config.optimizer, AdamW8bit) and find_spec("bitsandbytes") is None:
        command = "pip install bitsandbytes"
        remedy = f"{command}, or optimizer=adamw"
        yield MissingArtifact(
            InputProblem("optimizer", "bitsandbytes is not installed", "adamw_8bit", "", "", remedy), command
        )
    if config.parallel.strategy in SHARDING and find_spec("deepspeed") is None:
        command = "pip install 'rlvr_exp[deepspeed]'"
        what, remedy = "needs the package deepspeed", f"{command}, or parallel=ddp"
        yield MissingArtifact(InputProblem("parallel.strategy", what, "not installed", "", "", remedy), command)
    judges = reads(config, "verifier") and (config.infer is None or config.infer.verify)
    if judges and (missing := getattr(config.verifier, "missing", None)):  # A user's own schema may lack it.
        yield from (MissingArtifact(problem, command) for problem, command in missing())
    for problem in starts_missing(config):
        yield MissingArtifact(problem, "")
    if config.prepare is not None and (absent := _not_installed(*config.prepare.packages)):
        command = f"pip install 'rlvr_exp[{config.prepare.extra}]'"
        yield MissingArtifact(InputProblem("prepare", "packages are missing", absent, "", "", command), command)
    if config.evaluate is not None and config.evaluate.baseline:
        yield from _run("evaluate.baseline", config.evaluate.baseline)
    if config.verify is not None:
        yield from _rows(config.verify)
    if config.infer is not None:
        yield from _questions(config.infer)
    for name in STAGE_GROUPS:
        if (path := getattr(getattr(config, name), "path", "")) and not Path(path).exists():
            allowed = "an existing folder or file"
            yield MissingArtifact(
                InputProblem(f"{name}.path", "not there", path, allowed, near_path(path), "correct the path"), ""
            )
    if (other := getattr(config.benchmark, "other", "")) and not Path(other).is_dir():
        allowed = "the folder of a checkpoint"
        yield MissingArtifact(
            InputProblem("benchmark.other", "not there", other, allowed, near_path(other), "correct the path"), ""
        )
    if missing := getattr(config.benchmark, "missing", None):  # A user's own schema may lack it.
        yield from (MissingArtifact(problem, command) for problem, command in missing())
    if config.rescore is not None:
        yield from _rollouts("rescore.run", config.rescore.run)
        yield from _output("rescore.output", config.rescore.output)
    if config.solutions is not None:
        yield from _solutions(config.solutions)
    for run in config.compare.runs if config.compare is not None else ():
        yield from _run("compare.runs", run)
    if config.report is not None:
        yield from _missing_runs(config.report)


def _engine_missing(config: Config) -> Iterator[MissingArtifact]:
    if not reads(config, "engine"):
        return
    if is_server(config.engine):
        if find_spec("openai") is None:
            command = "pip install 'rlvr_exp[serve]'"
            remedy = f"{command}, or engine=local"
            yield MissingArtifact(
                InputProblem("engine", "the package openai is not installed", "server", "", "", remedy), command
            )
        if (name := config.engine.api_key_env) and not os.environ.get(name):
            remedy = f"export {name}=KEY, or drop it for a server without keys"
            yield MissingArtifact(
                InputProblem("engine.api_key_env", "the variable is not set", name, "", "", remedy), ""
            )
    if is_vllm(config.engine):
        if find_spec("vllm") is None:
            command = "pip install 'vllm>=0.31,<0.32'"
            remedy = f"{command}, or engine=local"
            yield MissingArtifact(
                InputProblem("engine", "the package vllm is not installed", "vllm", "", "", remedy), command
            )
        parallel = config.parallel
        here = planned(device(), parallel.device, parallel.device_memory_gib) if config.run.dry else device()
        if not here.cuda:
            what, allowed = "vLLM samples on the GPU that trains, and there is none", "a CUDA device"
            yield MissingArtifact(
                InputProblem("engine", what, "vllm", allowed, "", "engine=local"), "run it on a machine with a GPU"
            )


def _missing_data(path: str) -> MissingArtifact:
    remedy = "correct the path, or leave it out for the embedded tasks"
    if HUB_NAME.fullmatch(path):
        remedy += "; a set of the hub: load_dataset(NAME).save_to_disk(FOLDER) by the package datasets first"
    allowed = "an existing folder or file"
    return MissingArtifact(InputProblem("data.path", "not there", path, allowed, near_path(path), remedy), "")


def _missing_runs(report: Report) -> Iterator[MissingArtifact]:
    if report.run:
        yield from _run("report.run", report.run)
    else:
        yield MissingArtifact(
            InputProblem("report.run", "not given", "nothing", "a run directory", "", "report.run=DIR"), ""
        )
    for run in report.beside:
        yield from _run("report.beside", run)


def _not_installed(*names: str) -> str:
    return ", ".join(name for name in names if find_spec(name) is None)


def loads_weights(config: Config) -> bool:
    """Whether the weights of the `model` node are loaded from the start."""
    elsewhere = reads(config, "engine") and is_server(config.engine)
    without = isinstance(config.benchmark, OfShape) or getattr(config.prepare, "tokenizer_alone", False)
    return reads(config, "model") and not elsewhere and not without


def _rows(verify: Verify) -> Iterator[MissingArtifact]:
    if not verify.input:
        remedy = "verify.input=FILE.jsonl, or verify.input=samples to try it out"
        yield MissingArtifact(
            InputProblem("verify.input", "not given", "nothing", "a file of JSON lines", "", remedy), ""
        )
    elif verify.input != SAMPLES:
        yield from _input("verify.input", verify.input)
    yield from _output("verify.output", verify.output)


def _questions(infer: Infer) -> Iterator[MissingArtifact]:
    if infer.input and infer.input != STDIN:
        yield from _input("infer.input", infer.input)
    yield from _output("infer.output", infer.output)
    yield from formatter_missing(infer)


def formatter_missing(infer: Infer) -> Iterator[MissingArtifact]:
    """The formatter of programs, where the option requests it."""
    if infer.format and find_spec("ruff") is None:
        command = "pip install ruff"
        remedy = f"{command}, or infer.format=false"
        yield MissingArtifact(InputProblem("infer.format", "ruff is not installed", "true", "", "", remedy), command)


def _solutions(options: Solutions) -> Iterator[MissingArtifact]:
    name = NEEDED[options.action]
    if not getattr(options, name):
        allowed = {"path": "a store of solutions", "run": "a run directory", "input": "a file"}[name]
        problem = InputProblem(f"solutions.{name}", "not given", "nothing", allowed, "", f"solutions.{name}=PATH")
        yield MissingArtifact(problem, "")
    elif options.action in LOOKS and not Path(options.path).exists():
        where, allowed = "solutions.path", "a store of solutions"
        yield MissingArtifact(
            InputProblem(where, "not there", options.path, allowed, near_path(options.path), "correct the path"), ""
        )
    if options.input:
        yield from _input("solutions.input", options.input)
    if options.run:
        yield from _rollouts("solutions.run", options.run)
    folder = Path(options.output)
    if (
        options.form == "sft"
        and options.output
        and folder.exists()
        and not (folder.is_dir() and not any(folder.iterdir()))
    ):
        what, allowed = "holds something", "a new or empty folder"
        yield MissingArtifact(InputProblem("solutions.output", what, options.output, allowed), "")
    elif options.form == "jsonl":
        yield from _output("solutions.output", options.output)


def _input(where: str, given: str) -> Iterator[MissingArtifact]:
    if not Path(given).is_file():
        what = "not a regular file" if Path(given).exists() else "not there"
        allowed = "a file of JSON lines"
        yield MissingArtifact(InputProblem(where, what, given, allowed, near_path(given), "correct the path"), "")


def _output(where: str, given: str) -> Iterator[MissingArtifact]:
    """`given`: empty for the run directory's own file."""
    if given and Path(given).exists() and not Path(given).is_file():
        yield MissingArtifact(InputProblem(where, "not a regular file", given, "a file, new or of this input"), "")
    elif given and not _can_be_written(Path(given)):
        remedy = "choose a folder that can be written"
        yield MissingArtifact(InputProblem(where, "cannot be written", given, "", "", remedy), "")


def _can_be_written(path: Path) -> bool:
    """Whether a file exists and is writable, or can be created with its missing folders."""
    above = next(folder for folder in path.absolute().parents if folder.exists())
    own = not path.exists() or os.access(path, os.W_OK)
    return own and above.is_dir() and os.access(above, os.W_OK | os.X_OK)


def _rollouts(where: str, directory: str) -> Iterator[MissingArtifact]:
    if not directory:
        yield MissingArtifact(InputProblem(where, "not given", "nothing", "a run directory", "", f"{where}=DIR"), "")
    elif not (Path(directory) / "config.yaml").is_file():
        yield from _run(where, directory)
    elif team := team_of_run(directory):
        name = team.name
        what = f"the answers of a {name} stand on one another"
        allowed = f"a run of one policy; +stage=evaluate evaluate.{name}=CHECKPOINT evaluates a {name}"
        yield MissingArtifact(InputProblem(where, what, directory, allowed), "")
    elif not any((Path(directory) / "rollouts").glob("step_*.jsonl.gz")):
        allowed = "a run directory with rollouts/, as +stage=grpo and +stage=ppo write them"
        yield MissingArtifact(InputProblem(where, "the run holds no rollouts", directory, allowed), "")


def _run(where: str, directory: str) -> Iterator[MissingArtifact]:
    if not (Path(directory) / "config.yaml").is_file():
        yield MissingArtifact(
            InputProblem(
                where, "no run is there", directory, "a run directory, with a config.yaml", near_path(directory)
            ),
            "",
        )


def weights_missing(model: Model) -> Iterator[MissingArtifact]:
    """Weights of a model that are not on this machine, or not as they were written."""
    if model.package and not model.path and not is_converted(model.package):  # The run converts them first.
        if problem := package_problem(model.package):
            yield MissingArtifact(problem, install_command(model.package))
        return
    for folder in filter(None, (model.path, model.adapter.path)):
        try:
            check_if_ours(folder)
        except InputError as fault:
            yield from (MissingArtifact(problem, "") for problem in fault.problems)
            return
    if model.quantization != "none" and find_spec("bitsandbytes") is None:
        command = "pip install bitsandbytes"
        what, remedy = "bitsandbytes is not installed", f"{command}, or model.quantization=none"
        yield MissingArtifact(InputProblem("model.quantization", what, model.quantization, "", "", remedy), command)
    if model.adapter.path and not _is_adapter(Path(model.adapter.path)):
        allowed = "a folder with adapter_config.json and adapter_model.safetensors"
        what = "no adapter is there"
        yield MissingArtifact(
            InputProblem(
                "model.adapter.path",
                what,
                model.adapter.path,
                allowed,
                near_path(model.adapter.path),
                "correct the path",
            ),
            "",
        )
    if weights := weights_folder(model):
        yield from (MissingArtifact(problem, "") for problem in checkpoint_problems(model, weights))
    if is_adapter(model.path):
        yield from _adapter_and_base(model)
    elif model.path and not _is_checkpoint(Path(model.path), model.from_scratch):
        yield from _without_weights(model)
    elif model.package and not model.path:
        return
    elif model.name and not model.path and not model.random_weights:
        if not any(_is_checkpoint(folder, model.from_scratch) for folder in snapshots(model.name)):
            command = f"hf download {model.name}"
            remedy = f"{command}, or model.path=DIR for a local checkpoint"
            if not HUB_NAME.fullmatch(model.name):
                command, remedy = "", f"OWNER/MODEL of the hub, or model.path={model.name} for a local checkpoint"
            yield MissingArtifact(
                InputProblem("model.name", "the weights are not on this machine", model.name, "", "", remedy), command
            )
    elif model.is_embedded and not _is_checkpoint(EMBEDDED_MODELS / model.embedded, model.from_scratch):
        remedy = "reinstall rlvr_exp, or model.path=DIR for a local checkpoint"
        place = EMBEDDED_MODELS / model.embedded
        yield MissingArtifact(InputProblem("model", "the embedded model is missing", str(place), "", "", remedy), "")


def weights_folder(model: Model) -> Path | None:
    """The folder on this machine that holds the weights, below any adapter; None where there is none."""
    return next((folder for folder in _folders(model) if _is_checkpoint(folder, model.from_scratch)), None)


def config_folder(model: Model) -> Path | None:
    """The folder on this machine that describes the model below any adapter: with its weights, or its config.json alone,
    from which a run can be planned."""
    described = (folder for folder in _folders(model) if _is_checkpoint(folder, True))
    return weights_folder(model) or next(described, None)


def _folders(model: Model) -> list[Path]:
    """Where the model below any adapter may be."""
    if model.is_embedded:
        return [EMBEDDED_MODELS / model.embedded]
    return [Path(named), *snapshots(named)] if (named := base(model)) else []


def _without_weights(model: Model) -> Iterator[MissingArtifact]:
    """A folder without weights: a plan needs no more than its config.json and tokenizer."""
    folder = Path(model.path)
    if not _is_checkpoint(folder, True):
        yield MissingArtifact(_no_checkpoint(model), "")
        return
    yield from (MissingArtifact(problem, "") for problem in checkpoint_problems(model, folder))
    command = f"hf download OWNER/MODEL --local-dir {model.path}"
    what, allowed = "the weights are missing", ", ".join(WEIGHTS)
    yield MissingArtifact(InputProblem("model.path", what, model.path, allowed, "", command), command)


def _no_checkpoint(model: Model) -> InputProblem:
    there = Path(model.path)
    allowed = "a folder with config.json and weights (safetensors), or with an adapter"
    of_roles = [one.name for one in sorted(there.glob("*")) if _is_checkpoint(one, False) or _is_adapter(one)]
    if of_roles:
        what = f"it holds a checkpoint for each role: {', '.join(of_roles)}"
        remedy = " ".join(f"roles.{role}.model.path={there / role}" for role in of_roles)
        remedy = f"{remedy} with their environment, or model.path={there / of_roles[0]} for one of them"
        return InputProblem("model.path", what, model.path, allowed, "", remedy)
    remedy = "correct the path, or leave it out and choose model=NAME"
    if there.suffix == ".gguf":
        remedy = f"convert it first: +stage=prepare prepare=gguf prepare.path={there} prepare.output=DIR, then model.path=DIR"
    if HUB_NAME.fullmatch(model.path) and not there.parent.exists():
        remedy = f"model.name={model.path} for a model of the hub, or correct the path"
    return InputProblem("model.path", "no checkpoint is there", model.path, allowed, _nearby(model), remedy)


def _nearby(model: Model) -> str:
    """A checkpoint of the run that was meant: the run's own folder was named, or its best step and none was selected; else a
    folder with a similar name."""
    named = Path(model.path)
    links = [named / "checkpoints" / "best", named / "checkpoints" / "latest", named.with_name("latest")]
    found = (link for link in links if link.parent.name == "checkpoints" and _is_checkpoint(link, model.from_scratch))
    return str(next(found, "")) or near_path(model.path)


def _adapter_and_base(model: Model) -> Iterator[MissingArtifact]:
    """An adapter's folder in the place of a checkpoint: its own weights, and the base that it names."""
    if not _is_adapter(Path(model.path)):
        yield MissingArtifact(
            InputProblem("model.path", "an adapter without weights", model.path, "adapter_model.safetensors"), ""
        )
    named = base(model)
    if not any(_is_checkpoint(folder, False) for folder in (Path(named), *snapshots(named))):
        command = "" if Path(named).is_absolute() else f"hf download {named}"
        where_else = f"model.path=BASE model.adapter.path={model.path}"
        what = "the base of this adapter is not on this machine"
        remedy = f"{command}, or {where_else}" if command else where_else
        yield MissingArtifact(InputProblem("model.path", what, named or "none is named", "", "", remedy), command)


def _is_adapter(folder: Path) -> bool:
    return is_adapter(str(folder)) and any(folder.glob("adapter_model.*"))


def _is_checkpoint(folder: Path, architecture_only: bool) -> bool:
    if not (folder / "config.json").is_file():
        return False
    return architecture_only or any(path for pattern in WEIGHTS for path in folder.glob(pattern))


def snapshots(name: str) -> Iterator[Path]:
    """Folders of the hub's cache that may hold the model."""
    cache = os.environ.get("HF_HUB_CACHE") or os.path.join(_hub_home(), "hub")
    yield from (Path(cache) / f"models--{name.replace('/', '--')}" / "snapshots").glob("*")


def _hub_home() -> str:
    default = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "huggingface")
    return os.path.expanduser(os.environ.get("HF_HOME") or default)
