"""What the chosen engine cannot do for a stage, and what it needs."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from rlvr_exp.config.devices import device, planned
from rlvr_exp.config.engine import Server, is_server, is_vllm
from rlvr_exp.config.roles import role_names
from rlvr_exp.config.schema import Config
from rlvr_exp.config.stages import reads
from rlvr_exp.core.errors import InputProblem

SERVED = ("evaluate", "infer", "collect")
"""Stages whose weights a server may hold."""
RANKS_OF_VLLM = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Ranks of an adapter that vLLM holds."""


def engine_problems(config: Config) -> Iterator[InputProblem]:
    """Combinations that the engine rules out."""
    if not reads(config, "engine"):
        return
    if config.collect is not None and config.collect.max_cost and not _has_prices(config.engine):
        what, remedy = "nothing has a price", "engine=server with engine.prompt_price and engine.completion_price"
        yield InputProblem("collect.max_cost", what, str(config.collect.max_cost), "0 without prices", "", remedy)
    if is_server(config.engine):
        yield from _of_server(config, config.engine)
    if is_vllm(config.engine):
        yield from _of_vllm(config)


def _has_prices(engine: Any) -> bool:
    return is_server(engine) and bool(engine.prompt_price or engine.completion_price)


def engine_missing(config: Config) -> Iterator[tuple[InputProblem, str]]:
    """What the engine needs and this machine lacks, with what supplies it: a command, or another machine; empty: only the
    user can."""
    if not reads(config, "engine"):
        return
    if is_server(config.engine):
        if find_spec("openai") is None:
            command = "pip install 'rlvr_exp[serve]'"
            remedy = f"{command}, or engine=local"
            yield InputProblem("engine", "the package openai is not installed", "server", "", "", remedy), command
        if (name := config.engine.api_key_env) and not os.environ.get(name):
            remedy = f"export {name}=KEY, or drop it for a server without keys"
            yield InputProblem("engine.api_key_env", "the variable is not set", name, "", "", remedy), ""
    if is_vllm(config.engine):
        if find_spec("vllm") is None:
            command = "pip install 'vllm>=0.31,<0.32'"
            remedy = f"{command}, or engine=local"
            yield InputProblem("engine", "the package vllm is not installed", "vllm", "", "", remedy), command
        parallel = config.parallel
        here = planned(device(), parallel.device, parallel.device_memory_gib) if config.run.dry else device()
        if not here.cuda:
            what, allowed = "vLLM samples on the GPU that trains, and there is none", "a CUDA device"
            yield InputProblem("engine", what, "vllm", allowed, "", "engine=local"), "run it on a machine with a GPU"


def _of_server(config: Config, engine: Server) -> Iterator[InputProblem]:
    if config.stage not in SERVED:
        what = "this stage samples with the weights that it trains, and a server holds its own"
        allowed = f"engine=server with +stage={' or +stage='.join(SERVED)}"
        yield InputProblem("engine", what, f"server with +stage={config.stage}", allowed, "", "engine=local")
        return
    if (roles := role_names(config)) not in ((), ("policy",)):
        what = "a server holds one model, and each role has its own"
        yield InputProblem("engine", what, f"server, roles {', '.join(roles)}", "one role", "", "engine=local")
    model = config.model
    named = {"path": model.path, "package": model.package, "name": model.name, "adapter.path": model.adapter.path}
    for name in filter(named.get, named):
        remedy = "drop it; engine.model=NAME is the served one"
        what = "the server holds the weights, nothing is loaded here"
        yield InputProblem(f"model.{name}", what, str(named[name]), "empty with engine=server", "", remedy)
    if model.chat_template != "auto":
        remedy = f"engine.api={'completions' if model.chat_template == 'never' else 'chat'}"
        what = "the server words prompts"
        yield InputProblem("model.chat_template", what, model.chat_template, "auto with engine=server", "", remedy)
    if model.thinking:
        what, remedy = "the server's own template decides", "drop it; start the server so that it thinks"
        yield InputProblem("model.thinking", what, "true", "false with engine=server", "", remedy)
    if config.infer is not None and config.infer.decoding == "beam":
        what, remedy = "an endpoint has no beam search", "infer.decoding=greedy or sample, or engine=local"
        yield InputProblem("infer.decoding", what, "beam", "greedy, sample", "", remedy)
    node = next((name for name in ("infer", "collect") if getattr(config, name) is not None), "evaluation")
    drawing = getattr(config, node)
    yield from _no_filters(f"{node}.", drawing, ("top_k", "min_p"), "the OpenAI API has no such filter", "top_p")
    if drawing.temperature > 2:
        allowed = "at most 2 with engine=server"
        yield InputProblem(f"{node}.temperature", "the OpenAI API ends at 2", str(drawing.temperature), allowed)


def _of_vllm(config: Config) -> Iterator[InputProblem]:
    if config.stage != "grpo" or len(role_names(config)) > 1 or config.roles:
        what, allowed = "vLLM serves the one policy that +stage=grpo trains", "+stage=grpo with one role"
        remedy = "engine=local, or engine=server for evaluate and infer"
        yield InputProblem("engine", what, f"vllm with +stage={config.stage}", allowed, "", remedy)
        return
    what = "vLLM does not say which tokens each draw was from, which the update needs"
    yield from _no_filters("algorithm.", config.algorithm, ("top_k", "top_p", "min_p"), what, "temperature")
    if config.algorithm.temperature != 1 and config.run.probe.every_steps:
        what, remedy = "the probe of the weights that vLLM serves scores at temperature 1", "drop it, or engine=local"
        got = str(config.algorithm.temperature)
        yield InputProblem("algorithm.temperature", what, got, "1 with engine=vllm", "", remedy)
    if config.parallel.strategy.startswith("zero3"):
        what, remedy = "vLLM is given whole weights, and these are sharded", "parallel=zero2, or engine=local"
        yield InputProblem("parallel", what, config.parallel.strategy, "single, ddp, zero2", "", remedy)
    model = config.model
    if model.quantization == "8bit":
        remedy = "model.quantization=4bit or none, or engine=local"
        yield InputProblem("model.quantization", "vLLM holds no 8-bit weights", "8bit", "none, 4bit", "", remedy)
    adapter = model.adapter
    if model.quantization == "4bit" and (adapter.kind == "dora" or adapter.effective_rank not in RANKS_OF_VLLM):
        what = "an adapter on quantized weights is handed over as it is, and vLLM does not take this one"
        got, allowed = (
            f"{adapter.kind}, rank {adapter.effective_rank}",
            f"lora, rank {', '.join(map(str, RANKS_OF_VLLM))}",
        )
        yield InputProblem("model.adapter", what, got, allowed, "", "model.adapter.rank=16, or engine=local")


def _no_filters(prefix: str, node: Any, names: tuple[str, ...], what: str, remedy: str) -> Iterator[InputProblem]:
    neutral = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
    for name in names:
        if (value := getattr(node, name, neutral[name])) != neutral[name]:
            allowed = f"{neutral[name]:g} with this engine"
            remedies = f"drop it, {prefix}{remedy}, or engine=local"
            yield InputProblem(f"{prefix}{name}", what, str(value), allowed, "", remedies)
