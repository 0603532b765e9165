"""Builds a workload from a checked configuration: its shape, its lengths, its plan."""

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rlvr_exp.config.algorithm import SFT, ReinforcementLearning
from rlvr_exp.config.architecture import LEARNED, LEAST, Architecture, Scratch, read_architecture, scratch_shape
from rlvr_exp.config.model import Model, continued, described, has_adapter
from rlvr_exp.config.needs import config_folder
from rlvr_exp.config.parallel import Device, derive, device, planned
from rlvr_exp.config.roles import of_role, role_names
from rlvr_exp.config.schema import Config, reads, sampling_node
from rlvr_exp.launch.inference_inputs import answered_tasks
from rlvr_exp.memory.lengths import DataLengths
from rlvr_exp.memory.workload import WIDTH, Adapter, SamplingBatch, Workload


def shape_of(model: Model) -> tuple[Architecture, str]:
    """The model's shape and the type of its weights.

    An existing config.json, in a folder or in the hub's cache, takes precedence over the preset's numbers; the type is
    "bfloat16" where nothing names it, as most checkpoints are stored.

    Raises:
        ValueError: the file cannot be read.
    """
    if model.random_weights:
        return model.architecture, "bfloat16" if model.dtype == "auto" else model.dtype
    folder = config_folder(model) or Path("/nonexistent")
    try:
        found, stored = read_architecture(folder)
    except (OSError, ValueError, KeyError) as fault:
        raise ValueError(f"{folder / 'config.json'} cannot be read: {fault}") from fault
    dtype = model.dtype if model.dtype != "auto" else stored if stored in WIDTH else "bfloat16"
    if model.scratch != Scratch():
        return _of_scratch(model.scratch, folder), dtype
    return (found if found.known else model.architecture), dtype


def _of_scratch(options: Scratch, folder: Path) -> Architecture:
    """Unknown where the tokenizer, which is made from the data, decides the vocabulary alone."""
    embedded = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    sizes = {"": embedded["vocab_size"], "bytes": LEAST, **dict.fromkeys(LEARNED, options.vocabulary_size)}
    rows = sizes.get(options.tokenizer)
    return scratch_shape(options, embedded).architecture(rows) if rows else Architecture()


def device_of(config: Config) -> Device:
    """The device that the memory table is for."""
    return planned(device(), config.parallel.device, config.parallel.device_memory_gib)


def workload_of(config: Config) -> Workload | None:
    """None: the shape is unknown. Where roles have models of their own, the largest stands for each. Raises ValueError for
    a config.json that cannot be read."""
    roles = role_names(config)
    config = max((of_role(config, role) for role in roles or ("",)), key=lambda own: shape_of(own.model)[0].parameters)
    shape, dtype = shape_of(config.model)
    if not shape.known:
        return None
    trains, cpu = reads(config, "optimizer"), not device_of(config).cuda
    read = DataLengths(config) if cpu else None
    prompt, completion, group, limit, share = _lengths(config, read)
    optimizer = config.optimizer
    return Workload(
        shape=shape,
        dtype=dtype,
        prompt=prompt,
        completion=completion,
        group=group,
        limit=limit,
        share=share,
        sampling_batch=_sampling_batch(config, share, read),
        cpu=cpu,
        quantization=config.model.quantization.replace("none", ""),
        adapter=_adapter(config.model, shape),
        frozen=_frozen(config.model.freeze, shape),
        optimizer=type(optimizer).__name__ if trains else "",
        momentum=bool(getattr(optimizer, "momentum", 0.0)) if trains else False,
        reference=trains and getattr(config.algorithm, "kl_coef", 0) > 0,
        value_network=trains and getattr(config.algorithm, "value_trunk", "") == "own",
        checkpointing=config.model.gradient_checkpointing,
        strategy=config.parallel.strategy,
        offload=config.parallel.offload,
        **_zero(config),
        processes=config.parallel.world,
        trains=trains,
        roles=len(roles) or 1,
        examples=_examples(config, read),
    )


def _examples(config: Config, read: DataLengths | None) -> int:
    """Tokens of the examples that a run tokenises before its first step."""
    imitates = reads(config, "algorithm") and isinstance(config.algorithm, SFT)
    found = read.of("") if read and imitates else None
    return found.total if found else 0


def _zero(config: Config) -> dict[str, Any]:
    """Values of DeepSpeed's own settings; the workload has its defaults."""
    given = config.parallel.deepspeed.get("zero_optimization") or {}
    names = {"bucket": "reduce_bucket_size", "live": "stage3_max_live_parameters"}
    return {ours: float(given[theirs]) for ours, theirs in names.items() if theirs in given}


def _lengths(config: Config, read: DataLengths | None) -> tuple[int, int, int, int, int]:
    """Prompt, completion and group of the training batch, tokens of a pass, and groups of a process in a step.

    Args:
        read: the lengths of the data; None for a GPU, which is tried with the longest allowed.
    """
    model, algorithm, world = config.model, config.algorithm, config.parallel.world
    completion = model.max_completion_tokens
    if reads(config, "algorithm") and isinstance(algorithm, SFT):
        longest, tokens = algorithm.max_sequence_tokens, algorithm.max_tokens_per_device
        share, size = (
            -(-algorithm.batch_size // world),
            derive(algorithm.batch_size, longest, tokens, world).micro_batch,
        )
        answer = min(completion, longest - 1)
        prompt, answer = longest - answer, answer
        if read and (found := read.of("")) is not None and any(found.answers):
            prompt, answer = found.example(share, size)
        return prompt, answer, 1, size * (prompt + answer), share
    if reads(config, "algorithm") and isinstance(algorithm, ReinforcementLearning):
        share = -(-algorithm.prompts_per_step // world)
        prompt = _prompt(config, "", share, read)
        return prompt, completion, algorithm.group_size, algorithm.max_tokens_per_device, share
    return model.max_prompt_tokens, completion, 1, 1, 1


def _prompt(config: Config, split: str, number: int, read: DataLengths | None) -> int:
    """Tokens of each of so many prompts of a split; "": of the split that is trained on."""
    found = read.of(split) if read else None
    return config.model.max_prompt_tokens if found is None else found.prompt(number)


def _sampling_batch(config: Config, share: int, read: DataLengths | None) -> SamplingBatch:
    """What is sampled at the same time, in training, in evaluation or by inference, whichever is larger."""
    model, algorithm, node = config.model, config.algorithm, sampling_node(config)
    measured, options = getattr(config, node), {f"{node}.batch_size": getattr(config, node).batch_size}
    tasks = max(1, measured.batch_size // measured.samples)
    tasks = min(tasks, measured.tasks or tasks, answered_tasks(config) or tasks)
    read = None if getattr(measured, "input", "") else read
    wanted = [(measured.split, tasks, measured.samples)]
    if reads(config, "algorithm") and isinstance(algorithm, ReinforcementLearning):
        at_once = max(1, (algorithm.rollout_batch_size or measured.batch_size) // algorithm.group_size)
        options |= {"algorithm.rollout_batch_size": algorithm.rollout_batch_size}
        wanted.append(("", min(share, at_once), algorithm.group_size))
    found = [
        SamplingBatch(
            groups, size, _prompt(config, split, groups, read), model.max_completion_tokens, tuple(options.items())
        )
        for split, groups, size in wanted
    ]
    return max(found, key=lambda sampling_batch: sampling_batch.tokens)


def _frozen(patterns: list[str], shape: Architecture) -> int:
    """Numbers of the parameters whose names match a pattern, as rlvr_exp.models.parameters matches them."""
    return sum(size for name, size in shape.named() if any(fnmatchcase(name, pattern) for pattern in patterns))


def _adapter(model: Model, shape: Architecture) -> Adapter | None:
    if not has_adapter(model):
        return None
    written = described(continued(model))
    rank = int(written.get("r", model.adapter.effective_rank))
    named = written.get("target_modules", model.adapter.targets)
    wanted = {str(name).rpartition(".")[2] for name in named} if isinstance(named, list) else set()
    targets = tuple(name for name in shape.matrices() if not wanted or name in wanted)
    return Adapter(rank, targets, bool(written.get("use_dora", model.adapter.kind == "dora")))
