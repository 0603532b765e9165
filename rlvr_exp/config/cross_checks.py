"""Checks across nodes: combinations that cannot work."""

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import partial
from typing import Any

from rlvr_exp.config.algorithm import (
    Distillation,
    Distilled,
    SelfDistillation,
    queues,
    schedule_problems,
    without_queues,
)
from rlvr_exp.config.architecture import Scratch, scratch_shape, shape_problems
from rlvr_exp.config.data import SINGLE_TURN
from rlvr_exp.config.engine import Server, is_server, is_vllm, receives_weights
from rlvr_exp.config.model import EMBEDDED_MODELS, Model, has_adapter
from rlvr_exp.config.parallel import SHARDING
from rlvr_exp.config.roles import TEACHER, of_role, role_names, role_problems
from rlvr_exp.config.schema import STAGES, Config, reads, resumable
from rlvr_exp.config.stage_options import of_answers
from rlvr_exp.core.errors import InputProblem

SERVED = ("evaluate", "infer", "collect")
TRAINED_WITH_SERVER = ("grpo", "ppo", "adversarial")
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
    if receives_weights(config.engine):
        yield from _of_trained_server(config, config.engine)
    yield from _of_lag(config)
    if is_vllm(config.engine):
        yield from _of_vllm(config)


def _has_prices(engine: Any) -> bool:
    return is_server(engine) and bool(engine.prompt_price or engine.completion_price)


def _of_server(config: Config, engine: Server) -> Iterator[InputProblem]:
    if config.stage not in SERVED:
        what = "this stage samples with the weights that it trains, and a server holds its own"
        allowed = f"engine=server with +stage={' or +stage='.join(SERVED)}"
        remedy = "engine.weights=lora or full with vllm serve, or engine=local"
        yield InputProblem("engine", what, f"server with +stage={config.stage}", allowed, "", remedy)
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
    if drawing.temperature > 2:
        allowed = "at most 2 with engine=server"
        yield InputProblem(f"{node}.temperature", "the OpenAI API ends at 2", str(drawing.temperature), allowed)


def _of_trained_server(config: Config, engine: Server) -> Iterator[InputProblem]:
    where, got = "engine.weights", engine.weights
    if config.stage not in TRAINED_WITH_SERVER:
        what, allowed = "no server receives weights in this stage", f"none, or +stage={', '.join(TRAINED_WITH_SERVER)}"
        remedy = "drop it" if config.stage in SERVED else "engine=local"
        yield InputProblem(where, what, f"{got} with +stage={config.stage}", allowed, "", remedy)
        return
    what = "the update needs the tokens that each draw could choose, and a server does not report them"
    yield from _no_filters("algorithm.", config.algorithm, ("top_k", "top_p", "min_p"), what, "temperature")
    if config.parallel.distributed:
        what, remedy = "one process hands weights over to a server", "parallel=single"
        yield InputProblem("parallel", what, config.parallel.strategy, "single", "", remedy)
    model = config.model
    if engine.weights == "full" and model.quantization != "none":
        what, remedy = "quantized weights are not handed over", "engine.weights=lora with the server's own quantization"
        yield InputProblem(where, what, f"full with model.quantization={model.quantization}", "lora", "", remedy)
    if engine.weights == "lora" and (not has_adapter(model) or model.adapter.kind == "dora"):
        kind = model.adapter.kind if has_adapter(model) else "no adapter"
        what, remedy = "a server takes LoRA adapters", "model.adapter.kind=lora, or engine.weights=full"
        yield InputProblem(where, what, f"lora with {kind}", "lora with model.adapter.kind=lora", "", remedy)


def _of_lag(config: Config) -> Iterator[InputProblem]:
    lag = getattr(config.algorithm, "lag", 0) if reads(config, "algorithm") else 0
    if not lag:
        return
    if not receives_weights(config.engine):
        what = "this process either samples or learns; only a server samples meanwhile"
        remedy = "engine=server with engine.weights=lora or full, or drop it"
        yield InputProblem("algorithm.lag", what, str(lag), "0 without engine.weights", "", remedy)
    if len(roles := role_names(config)) > 1:
        what, remedy = "roles take turns on the weights that sample", "drop it"
        yield InputProblem("algorithm.lag", what, f"{lag}, roles {', '.join(roles)}", "0", "", remedy)


def _of_vllm(config: Config) -> Iterator[InputProblem]:
    what = "the update needs the tokens that each draw could choose, and vLLM does not report them"
    if reads(config, "algorithm"):
        yield from _no_filters("algorithm.", config.algorithm, ("top_k", "top_p", "min_p"), what, "temperature")
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


def cross_check(config: Config) -> Iterator[InputProblem]:
    """Combinations of nodes that cannot work, for the stage of the configuration."""
    if config.stage not in STAGES:
        return
    yield from _of_run(config)
    yield from of_ranks(config)
    yield from engine_problems(config)
    yield from role_problems(config, lambda name: reads(config, name))
    yield from scratch_problems(config)
    if reads(config, "evaluation") and config.evaluation.bits:
        yield from _of_bits(config)
    if config.infer is not None:
        yield from of_answers(config)
        if config.infer.adapt != "none":
            yield from _of_adapting(config)
    if reads(config, "model") and config.model.random_weights and config.stage != "benchmark":
        what, remedy = "random weights are for benchmarks", "drop it, or +stage=benchmark"
        yield InputProblem("model.random_weights", what, f"+stage={config.stage}", "false", "", remedy)
    for spec in fields(config):
        node = getattr(config, spec.name)
        if reads(config, spec.name) and hasattr(node, "conflicts"):
            yield from node.conflicts(config, partial(reads, config))
    if not reads(config, "optimizer"):
        return
    yield from schedule_problems(config.scheduler, getattr(config.algorithm, "max_steps", 0))
    yield from _of_learner(config)
    for role in config.roles.keys() - {TEACHER}:
        found = (replace(one, where=f"roles.{role}.{one.where}") for one in _of_learner(of_role(config, role)))
        yield from (one for one in found if getattr(config.roles[role], one.where.split(".")[2]) is not None)


def _of_adapting(config: Config) -> Iterator[InputProblem]:
    where, remedy = "infer.adapt", "infer.adapt=none"
    if is_server(config.engine) or is_vllm(config.engine):
        what, got = (
            "another process has the weights, and an adapter learns here",
            config.engine._target_.rpartition(".")[2],
        )
        yield InputProblem(
            where, what, f"lora with engine={got.lower()}", "engine=local", "", f"engine=local, or {remedy}"
        )
    if config.model.quantization != "none":
        what, got = "quantized weights were not tried", f"lora with model.quantization={config.model.quantization}"
        yield InputProblem(where, what, got, "model.quantization=none", "", remedy)
    if len(role_names(config)) > 1:
        yield InputProblem(where, "one policy learns", ", ".join(role_names(config)), "one role", "", remedy)


def _of_run(config: Config) -> Iterator[InputProblem]:
    if config.run.resume and not resumable(config.stage):
        what, allowed = "this stage cannot be resumed", ", ".join(filter(resumable, STAGES))
        yield InputProblem("run.resume", what, f"+stage={config.stage}", allowed)
    if config.run.dir and STAGES[config.stage].direct:
        yield InputProblem("run.dir", "this stage has no run directory", f"+stage={config.stage}", remedy="drop it")
    if config.run.trial and (STAGES[config.stage].algorithm is None or config.run.resume or config.parallel.nodes > 1):
        what, got = "a trial is of a run that trains, from its first step, on one machine", f"+stage={config.stage}"
        got += f", run.resume={config.run.resume}" * bool(config.run.resume)
        got += f", parallel.nodes={config.parallel.nodes}" * (config.parallel.nodes > 1)
        allowed = ", ".join(name for name, stage in STAGES.items() if stage.algorithm)
        yield InputProblem("run.trial", what, got, allowed, "", "drop it")


def _of_learner(config: Config) -> Iterator[InputProblem]:
    """Combinations that a policy cannot learn with."""
    model, algorithm = config.model, config.algorithm
    turns = getattr(config.environment, "_target_", SINGLE_TURN)
    learns_in_turns = reads(config, "environment") and turns != SINGLE_TURN and config.stage != "srl"
    if learns_in_turns and queues(algorithm):
        what, remedy = "groups of episodes with several turns do not wait for later steps", without_queues(algorithm)
        got, allowed = algorithm._target_, "zero_variance=keep or mask, rollout_steps=1"
        yield InputProblem("algorithm", what, got, allowed, "", f"{remedy}, or environment=single_turn")
    nodes = [node for node in vars(config).values() if algorithm is not None and hasattr(node, "of_learner")]
    refused = [problem for node in nodes for problem in node.of_learner(algorithm)]
    yield from refused
    if model.quantization != "none" and not has_adapter(model):
        what = "quantized weights take no gradient"
        remedy = "model.adapter.kind=lora, or model.quantization=none"
        yield InputProblem("model.quantization", what, model.quantization, "none without an adapter", "", remedy)
    sync = getattr(algorithm, "reference_sync_steps", 0)
    if sync and has_adapter(model) and all(one.where != "algorithm.reference_sync_steps" for one in refused):
        what = "the reference of an adapter is its base, which stays as it is"
        yield InputProblem("algorithm.reference_sync_steps", what, str(sync), "0 with an adapter", "", "drop it")

    yield from _of_teacher(config)


def _of_teacher(config: Config) -> Iterator[InputProblem]:
    """Methods with a teacher, in runs that it cannot teach."""
    algorithm: Any = config.algorithm
    if not isinstance(algorithm, Distilled):
        return
    name = config.algorithm._target_.rpartition(".")[2].lower()
    if isinstance(algorithm, Distillation) and (roles := role_names(config)) and len(roles) > 1:
        what, remedy = "a teacher teaches the one policy of a run", "algorithm=sdpo, or another environment"
        yield InputProblem("algorithm", what, f"{name}, roles {', '.join(roles)}", "one role", "", remedy)
    if isinstance(algorithm, SelfDistillation) and reads(config, "environment"):
        turns = getattr(config.environment, "_target_", SINGLE_TURN)
        if turns != SINGLE_TURN:
            what = "the prompt of the teacher is that of a first answer"
            got, remedy = f"{name} with several turns", "environment=single_turn"
            yield InputProblem("algorithm", what, got, "single_turn", "", remedy)
    rate = getattr(algorithm, "teacher_update_rate", 1.0)
    if rate < 1.0 and config.parallel.strategy == "zero3":
        what = "a moving average needs whole weights on each device"
        remedy = "set it to 1, or parallel=zero2"
        yield InputProblem("algorithm.teacher_update_rate", what, f"{rate:g}", "1 with zero3", "", remedy)


def _of_bits(config: Config) -> Iterator[InputProblem]:
    """Whose golds cannot be scored."""
    if is_server(config.engine) or len(role_names(config)) > 1:
        what = "golds are scored by the one policy of a run, whose weights are here"
        got = "engine=server" if is_server(config.engine) else "several roles"
        yield InputProblem("evaluation.bits", what, got, "one policy, sampled here", "", "drop it")


WHOLE_MATRICES = ("rlvr_exp.algorithms.optimizers.Muon", "rlvr_exp.algorithms.optimizers.Adafactor")
"""Optimizers whose step depends on complete matrices; ZeRO gives an optimizer flat pieces of all parameters."""


def of_ranks(config: Config) -> Iterator[InputProblem]:
    """Combinations with the `parallel` node that cannot work."""
    parallel = config.parallel
    if not parallel.distributed:
        return
    if not STAGES[config.stage].shared:
        others = ", ".join(name for name, stage in STAGES.items() if stage.shared)
        what = f"+stage={config.stage} runs in one process; those that share their work: {others}"
        yield InputProblem("parallel.strategy", what, parallel.strategy, "single", "", "parallel=single")
        return
    if config.run.inline:
        remedy = "parallel=single, or drop run.inline"
        yield InputProblem("run.inline", "several processes cannot run in this one", "true", "false", "", remedy)
    if parallel.nodes > 1 and not config.run.dir:
        remedy = "run.dir=DIR on a file system that all machines see"
        yield InputProblem("run.dir", "several machines need one run directory", "nothing", "", "", remedy)
    if config.model.device_map:
        what = "spreads the layers of one process over devices, which each process of several has one of"
        yield InputProblem(
            "model.device_map", what, config.model.device_map, "empty", "", "drop it, or parallel=single"
        )
    if reads(config, "optimizer") and parallel.strategy in SHARDING:
        yield from _under_zero(config)


def _under_zero(config: Config) -> Iterator[InputProblem]:
    strategy, target = config.parallel.strategy, getattr(config.optimizer, "_target_", "")
    if target in WHOLE_MATRICES:
        what = f"needs full matrices, which {strategy} cuts into flat pieces"
        yield InputProblem("optimizer", what, target.rpartition(".")[2], "", "", "optimizer=adamw, or parallel=ddp")
    own = {f"roles.{name}.": role.optimizer for name, role in config.roles.items() if role.optimizer is not None}
    for where, optimizer in {"": config.optimizer, **own}.items():
        if optimizer.gradient_cosine:
            what, remedy = f"needs whole gradients, which {strategy} cuts into pieces", "parallel=ddp, or drop it"
            yield InputProblem(f"{where}optimizer.gradient_cosine", what, "true", "false", "", remedy)
    if strategy == "zero3" and config.model.quantization != "none":
        what = "weights in few bits cannot be spread over processes by DeepSpeed"
        yield InputProblem("model.quantization", what, config.model.quantization, "none", "", "parallel=zero2")


def scratch_problems(config: Config) -> Iterator[InputProblem]:
    """Of every model of the run that is built from scratch."""
    if not reads(config, "model"):
        return
    of_roles = {f"roles.{role}.model": own.model for role, own in config.roles.items() if own.model is not None}
    for where, model in {"model": config.model, **of_roles}.items():
        if model.from_scratch and model.is_embedded and model.scratch != Scratch():
            found = (*_of_shape(model, config.algorithm), *_of_tokenizer(model.scratch, config))
            yield from (replace(one, where=f"{where}.scratch.{one.where}") for one in found)
            if reads(config, "algorithm") and (weight := getattr(config.algorithm, "kl_coef", 0)) > 0:
                what, remedy = "TRL makes no reference of a shape of its own", "algorithm.kl_coef=0"
                yield InputProblem(f"{where}.scratch", what, f"algorithm.kl_coef={weight:g}", "0", "", remedy)


def _of_shape(model: Model, algorithm: Any) -> Iterator[InputProblem]:
    embedded = json.loads((EMBEDDED_MODELS / model.embedded / "config.json").read_text(encoding="utf-8"))
    yield from shape_problems(model.scratch, embedded)
    context, longest = scratch_shape(model.scratch, embedded).context, getattr(algorithm, "max_sequence_tokens", 0)
    if longest > context:
        what, remedy = "examples may be longer than the model takes", f"algorithm.max_sequence_tokens={context}"
        yield InputProblem("context", what, f"{context}, with examples up to {longest}", "", "", remedy)


def _of_tokenizer(options: Scratch, config: Config) -> Iterator[InputProblem]:
    if not options.tokenizer:
        return
    if options.tokenizer == "grid" and not hasattr(getattr(config.data, "prompt", None), "grid"):
        what, got = "these data have no grids", str(getattr(config.data, "_target_", ""))
        yield InputProblem("tokenizer", what, f"grid, with {got}", "data with grids", "", "model.scratch.tokenizer=bpe")
    if is_server(config.engine) or config.infer is not None or len(role_names(config)) > 1:
        what = "a tokenizer is made at the start of a run that trains or evaluates one policy"
        yield InputProblem("tokenizer", what, options.tokenizer, "'' here", "", "drop it, or +stage=sft")
