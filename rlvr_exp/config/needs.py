"""Artifacts of a configuration that may be missing on this machine: weights, data, packages, other runs. Looks, never fetches."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from rlvr_exp.config.algorithm import AdamW8bit
from rlvr_exp.config.benchmark import OfShape
from rlvr_exp.config.checkpoint_files import checkpoint_problems
from rlvr_exp.config.engine import Server, is_server, is_vllm
from rlvr_exp.config.model import (
    EMBEDDED_MODELS,
    Model,
    base,
    install_command,
    is_adapter,
    is_converted,
    package_problem,
)  # fmt: skip
from rlvr_exp.config.names import near_path
from rlvr_exp.config.parallel import SHARDING
from rlvr_exp.config.roles import starts_missing, team_of_run
from rlvr_exp.config.schema import STAGE_GROUPS, Config, reads
from rlvr_exp.config.solutions import LOOKS, NEEDED, Solutions
from rlvr_exp.config.stage_options import HUB_NAME, SAMPLES, STDIN, GgufExport, Hub, Infer, Serve, Verify, hub_command
from rlvr_exp.config.verifier import Ruff
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.sealed import check_if_ours

WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
RUN = "a run directory, with a config.yaml"
ROWS = "a file of JSON lines"


@dataclass(frozen=True)
class MissingArtifact:
    """Something missing."""

    problem: InputProblem
    command: str = ""
    """Command or machine that supplies it, so that a plan can be made without it. Empty: only the user can."""


def missing_artifacts(config: Config) -> list[MissingArtifact]:
    """All missing artifacts, for the stage of the configuration."""
    return list(_missing(config))


def _missing(config: Config) -> Iterator[MissingArtifact]:
    if loads_weights(config):
        yield from weights_missing(config.model)
        for role, own in config.roles.items():
            for need in weights_missing(own.model) if own.model and own.model != config.model else ():
                yield replace(need, problem=replace(need.problem, where=f"roles.{role}.{need.problem.where}"))
    if reads(config, "engine"):
        yield from _of_engine(config)
    if reads(config, "data") and (path := config.data.path) and not Path(path).exists():
        remedy = "correct the path, or leave it out for the embedded tasks"
        if HUB_NAME.fullmatch(path):
            remedy += f"; a set of the hub: {hub_command(path, 'dataset')}"
        yield _no_path("data.path", path, remedy=remedy)
    if reads(config, "optimizer") and isinstance(config.optimizer, AdamW8bit):
        yield from _package("bitsandbytes", "bitsandbytes", "optimizer", "adamw_8bit", "optimizer=adamw")
    for name, term in config.reward.terms.items() if reads(config, "reward") else ():
        if isinstance(term, Ruff):
            lacking = list(_package("ruff", "'rlvr_exp[format]'", "reward", "lint", "reward=default"))
            yield from lacking
            if not lacking and (fault := term.fault()):
                where, got = f"reward.terms.{name}.select", ", ".join(term.select)
                yield MissingArtifact(InputProblem(where, fault, got, "rules of `ruff rule --all`"))
    if config.parallel.strategy in SHARDING:
        strategy = config.parallel.strategy
        yield from _package("deepspeed", "'rlvr_exp[deepspeed]'", "parallel.strategy", strategy, "parallel=ddp")
    judges = reads(config, "verifier") and (config.infer is None or config.infer.verify)
    for node in (config.verifier if judges else None, config.benchmark):
        if missing := getattr(node, "missing", None):  # A user's own schema may lack it.
            yield from (MissingArtifact(problem, command) for problem, command in missing())
    yield from map(MissingArtifact, starts_missing(config))
    if config.prepare is not None and (absent := [one for one in config.prepare.packages if find_spec(one) is None]):
        command = f"pip install 'rlvr_exp[{config.prepare.extra}]'"
        problem = InputProblem("prepare", "packages are missing", ", ".join(absent), remedy=command)
        yield MissingArtifact(problem, command)
    if isinstance(config.prepare, GgufExport | Hub) and (output := config.prepare.output) and Path(output).exists():
        yield MissingArtifact(InputProblem("prepare.output", "exists", output, "a new name"))
    for name in STAGE_GROUPS:
        if (path := getattr(getattr(config, name), "path", "")) and not Path(path).exists():
            yield _no_path(f"{name}.path", path)
    if (other := getattr(config.benchmark, "other", "")) and not Path(other).is_dir():
        yield _no_path("benchmark.other", other, "the folder of a checkpoint")
    if config.evaluate is not None and config.evaluate.baseline:
        yield from _run("evaluate.baseline", config.evaluate.baseline)
    if config.verify is not None:
        yield from _rows(config.verify)
    if config.infer is not None:
        yield from _questions(config.infer)
    if config.rescore is not None:
        yield from _rollouts("rescore.run", config.rescore.run)
        yield from _output("rescore.output", config.rescore.output)
    if config.solutions is not None:
        yield from _solutions(config.solutions)
    for run in config.compare.runs if config.compare is not None else ():
        yield from _run("compare.runs", run)
    if config.report is not None:
        yield from _run("report.run", config.report.run)
        for run in config.report.beside:
            yield from _run("report.beside", run)
    for name in ("view", "index"):
        if (node := getattr(config, name)) is not None and not Path(node.path).is_dir():
            remedy = f"{name}.path=FOLDER with runs, such as outputs after a first run"
            yield _no_path(f"{name}.path", node.path, "an existing folder", remedy)
    if config.view is not None:
        for package in ("starlette", "uvicorn"):
            yield from _package(package, "'rlvr_exp[serve]'", "stage", "view", "+stage=index for a static overview")
    if config.serve is not None:
        yield from _of_serve(config.serve)
    if config.index is not None:
        yield from _output("index.path", f"{config.index.path}/index.html")


def _no_path(where: str, got: str, allowed: str = "an existing folder or file", remedy: str = "") -> MissingArtifact:
    return MissingArtifact(InputProblem(where, "not there", got, allowed, near_path(got), remedy or "correct the path"))


def _not_given(where: str, allowed: str, remedy: str) -> MissingArtifact:
    return MissingArtifact(InputProblem(where, "not given", "nothing", allowed, "", remedy))


def _package(name: str, install: str, where: str, got: str, otherwise: str) -> Iterator[MissingArtifact]:
    """A package that is not installed. `otherwise`: the words that do without it."""
    if find_spec(name) is None:
        command = f"pip install {install}"
        problem = InputProblem(where, f"the package {name} is not installed", got, "", "", f"{command}, or {otherwise}")
        yield MissingArtifact(problem, command)


def _of_engine(config: Config) -> Iterator[MissingArtifact]:
    if isinstance(config.engine, Server):
        yield from _package("openai", "'rlvr_exp[serve]'", "engine", "server", "engine=local")
        yield from _key("engine.api_key_env", config.engine.api_key_env)
    if is_vllm(config.engine):
        yield from _package("vllm", "'vllm>=0.31,<0.32'", "engine", "vllm", "engine=local")


def _key(where: str, name: str) -> Iterator[MissingArtifact]:
    if name and not os.environ.get(name):
        remedy = f"export {name}=KEY, or drop it for a server without keys"
        yield MissingArtifact(InputProblem(where, "the variable is not set", name, "", "", remedy))


def _of_serve(options: Serve) -> Iterator[MissingArtifact]:
    for package in ("starlette", "uvicorn"):
        yield from _package(package, "'rlvr_exp[serve]'", "stage", "serve", "+stage=verify for candidates in a file")
    if not options.judge_only:
        yield from _package("openenv", "'rlvr_exp[openenv]'", "stage", "serve", "serve.judge_only=true")
    yield from _key("serve.api_key_env", options.api_key_env)


def loads_weights(config: Config) -> bool:
    """Whether the weights of the `model` node are loaded from the start."""
    elsewhere = reads(config, "engine") and is_server(config.engine)
    without = isinstance(config.benchmark, OfShape) or getattr(config.prepare, "tokenizer_alone", False)
    return reads(config, "model") and not elsewhere and not without


def _rows(verify: Verify) -> Iterator[MissingArtifact]:
    if not verify.input:
        yield _not_given("verify.input", ROWS, "verify.input=FILE.jsonl, or verify.input=samples to try it out")
    elif verify.input != SAMPLES:
        yield from _input("verify.input", verify.input)
    yield from _output("verify.output", verify.output)


def _questions(infer: Infer) -> Iterator[MissingArtifact]:
    if infer.input and infer.input != STDIN:
        yield from _input("infer.input", infer.input)
    yield from _output("infer.output", infer.output)
    yield from formatter_missing(infer)


def formatter_missing(infer: Infer) -> Iterator[MissingArtifact]:
    """The formatter of programs, if the option requests it."""
    if infer.format:
        yield from _package("ruff", "ruff", "infer.format", "true", "infer.format=false")


def _solutions(options: Solutions) -> Iterator[MissingArtifact]:
    name = NEEDED[options.action]
    if not getattr(options, name):
        allowed = {"path": "a store of solutions", "run": "a run directory", "input": "a file"}[name]
        yield _not_given(f"solutions.{name}", allowed, f"solutions.{name}=PATH")
    elif options.action in LOOKS and not Path(options.path).exists():
        yield _no_path("solutions.path", options.path, "a store of solutions")
    if options.input:
        yield from _input("solutions.input", options.input)
    if options.run:
        yield from _rollouts("solutions.run", options.run)
    folder, output = Path(options.output), options.output
    full = bool(output) and folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    if options.form == "sft" and full:
        yield MissingArtifact(InputProblem("solutions.output", "holds something", output, "a new or empty folder"))
    elif options.form == "jsonl":
        yield from _output("solutions.output", output)


def _input(where: str, given: str) -> Iterator[MissingArtifact]:
    if Path(given).exists() and not Path(given).is_file():
        yield MissingArtifact(InputProblem(where, "not a regular file", given, ROWS, "", "correct the path"))
    elif not Path(given).exists():
        yield _no_path(where, given, ROWS)


def _output(where: str, given: str) -> Iterator[MissingArtifact]:
    """`given`: empty for the run directory's own file."""
    if not given:
        return
    path = Path(given)
    if path.exists() and not path.is_file():
        yield MissingArtifact(InputProblem(where, "not a regular file", given, "a file, new or of this input"))
        return
    above = next(folder for folder in path.absolute().parents if folder.exists())
    own = not path.exists() or os.access(path, os.W_OK)
    if not (own and above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
        remedy = "choose a folder that can be written"
        yield MissingArtifact(InputProblem(where, "cannot be written", given, "", "", remedy))


def _rollouts(where: str, directory: str) -> Iterator[MissingArtifact]:
    if not directory or not (Path(directory) / "config.yaml").is_file():
        yield from _run(where, directory)
    elif team := team_of_run(directory):
        name = team.name
        what = f"the answers of a {name} depend on one another"
        allowed = f"a run of one policy; +stage=evaluate evaluate.{name}=CHECKPOINT evaluates a {name}"
        yield MissingArtifact(InputProblem(where, what, directory, allowed))
    elif not any((Path(directory) / "rollouts").glob("step_*.jsonl.gz")):
        allowed = "a run directory with rollouts/, as +stage=grpo and +stage=ppo write them"
        yield MissingArtifact(InputProblem(where, "the run holds no rollouts", directory, allowed))


def _run(where: str, directory: str) -> Iterator[MissingArtifact]:
    if not directory:
        yield _not_given(where, "a run directory", f"{where}=DIR")
    elif not (Path(directory) / "config.yaml").is_file():
        yield MissingArtifact(InputProblem(where, "no run is there", directory, RUN, near_path(directory)))


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
            yield from map(MissingArtifact, fault.problems)
            return
    if model.quantization != "none":
        yield from _package(
            "bitsandbytes", "bitsandbytes", "model.quantization", model.quantization, "model.quantization=none"
        )
    if (path := model.adapter.path) and not _is_adapter(Path(path)):
        what, allowed = "no adapter is there", "a folder with adapter_config.json and adapter_model.safetensors"
        yield MissingArtifact(
            InputProblem("model.adapter.path", what, path, allowed, near_path(path), "correct the path")
        )
    if weights := weights_folder(model):
        yield from map(MissingArtifact, checkpoint_problems(model, weights))
    if is_adapter(model.path):
        yield from _adapter_and_base(model)
    elif model.path and not _is_checkpoint(Path(model.path), model.from_scratch):
        yield from _without_weights(model)
    elif model.package and not model.path:
        return
    elif model.name and not model.path and not model.random_weights:
        if not any(_is_checkpoint(folder, model.from_scratch) for folder in snapshots(model.name)):
            command = hub_command(model.name)
            remedy = f"{command}; or model.path=DIR for a local checkpoint"
            if not HUB_NAME.fullmatch(model.name):
                command, remedy = "", f"OWNER/MODEL of the hub, or model.path={model.name} for a local checkpoint"
            yield MissingArtifact(
                InputProblem("model.name", "the weights are not on this machine", model.name, "", "", remedy), command
            )
    elif model.is_embedded and not _is_checkpoint(EMBEDDED_MODELS / model.embedded, model.from_scratch):
        remedy = "reinstall rlvr_exp, or model.path=DIR for a local checkpoint"
        place = EMBEDDED_MODELS / model.embedded
        yield MissingArtifact(InputProblem("model", "the embedded model is missing", str(place), "", "", remedy))


def weights_folder(model: Model) -> Path | None:
    """The folder on this machine that holds the weights, below any adapter; None if there is none."""
    return next((folder for folder in _folders(model) if _is_checkpoint(folder, model.from_scratch)), None)


def config_folder(model: Model) -> Path | None:
    """The folder on this machine that describes the model below any adapter: with its weights, or its config.json alone,
    from which a run can be planned."""
    described = (folder for folder in _folders(model) if _is_checkpoint(folder, True))
    return weights_folder(model) or next(described, None)


def _folders(model: Model) -> list[Path]:
    """Possible folders of the model below any adapter."""
    if model.is_embedded:
        return [EMBEDDED_MODELS / model.embedded]
    return [Path(named), *snapshots(named)] if (named := base(model)) else []


def _without_weights(model: Model) -> Iterator[MissingArtifact]:
    """A folder without weights: a plan needs no more than its config.json and tokenizer."""
    folder = Path(model.path)
    if not _is_checkpoint(folder, True):
        yield MissingArtifact(_no_checkpoint(model))
        return
    yield from map(MissingArtifact, checkpoint_problems(model, folder))
    command = hub_command("OWNER/MODEL")
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
            InputProblem("model.path", "an adapter without weights", model.path, "adapter_model.safetensors")
        )
    named = base(model)
    if not any(_is_checkpoint(folder, False) for folder in (Path(named), *snapshots(named))):
        command = f"{hub_command(named)} model.adapter.path={model.path}" if HUB_NAME.fullmatch(named) else ""
        where_else = f"model.path=BASE model.adapter.path={model.path}"
        what = "the base of this adapter is not on this machine"
        remedy = command or where_else
        yield MissingArtifact(InputProblem("model.path", what, named or "none is named", "", "", remedy), command)


def _is_adapter(folder: Path) -> bool:
    return is_adapter(str(folder)) and any(folder.glob("adapter_model.*"))


def _is_checkpoint(folder: Path, architecture_only: bool) -> bool:
    if not (folder / "config.json").is_file():
        return False
    return architecture_only or any(path for pattern in WEIGHTS for path in folder.glob(pattern))


def snapshots(name: str) -> Iterator[Path]:
    """Folders of the hub's cache that may hold the model."""
    default = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "huggingface")
    home = os.path.expanduser(os.environ.get("HF_HOME") or default)
    cache = os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub")
    yield from (Path(cache) / f"models--{name.replace('/', '--')}" / "snapshots").glob("*")
