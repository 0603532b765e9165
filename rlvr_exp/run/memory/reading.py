"""From a checked configuration to a layout: which shape, which lengths, which plan."""

from pathlib import Path

from rlvr_exp.config.adapter import base, continued, described, has_adapter
from rlvr_exp.config.algorithm import SFT, ReinforcementLearning
from rlvr_exp.config.architecture import Architecture, read_architecture
from rlvr_exp.config.batching import Batches, derive, of_groups
from rlvr_exp.config.model import Model
from rlvr_exp.config.needs import EMBEDDED_MODEL
from rlvr_exp.config.schema import Config
from rlvr_exp.config.stages import reads
from rlvr_exp.run.memory.layout import WIDTH, Adapter, Layout


def shape_of(model: Model) -> tuple[Architecture, str]:
    """The model's shape and the type that its weights are held in.

    A folder's own config.json comes before the preset's numbers; the type is "bfloat16" where nothing says it, as most
    checkpoints are stored.
    """
    folder = EMBEDDED_MODEL if model.embedded else Path(base(model))
    try:
        found, stored = read_architecture(folder)
    except (OSError, ValueError, KeyError) as fault:
        raise ValueError(f"{folder / 'config.json'} cannot be read: {fault}") from fault
    dtype = model.dtype if model.dtype != "auto" else stored if stored in WIDTH else "bfloat16"
    return (found if found.known else model.architecture), dtype


def layout_of(config: Config) -> Layout | None:
    """None: the shape is unknown. Raises ValueError for a config.json that cannot be read."""
    shape, dtype = shape_of(config.model)
    if not shape.known:
        return None
    trains = reads(config, "optimizer")
    prompt, completion, group, batches, sampled = _lengths(config)
    optimizer = config.optimizer
    return Layout(
        shape=shape,
        dtype=dtype,
        prompt=prompt,
        completion=completion,
        group=group,
        micro_groups=batches.micro_batch,
        accumulates=batches.accumulation > 1,
        sampled_groups=sampled,
        quantization=config.model.quantization.replace("none", ""),
        adapter=_adapter(config.model, shape),
        optimizer=type(optimizer).__name__ if trains else "",
        momentum=bool(getattr(optimizer, "momentum", 0.0)) if trains else False,
        reference=trains and getattr(config.algorithm, "kl_coef", 0) > 0,
        checkpointing=config.model.gradient_checkpointing,
        strategy=config.parallel.strategy,
        offload=config.parallel.offload,
        processes=config.parallel.world,
        trains=trains,
    )


def _lengths(config: Config) -> tuple[int, int, int, Batches, int]:
    """Prompt, completion, group, batches of a process, and groups that it samples at once."""
    model, algorithm = config.model, config.algorithm
    prompt, completion = model.max_prompt_tokens, model.max_completion_tokens
    if reads(config, "algorithm") and isinstance(algorithm, ReinforcementLearning):
        batches = batches_of(config)
        at_once = max(1, algorithm.rollout_batch_size // algorithm.group_size)
        return prompt, completion, algorithm.group_size, batches, min(at_once, batches.sequences)
    samples = config.evaluation.samples
    measured = max(1, config.evaluation.batch_size // samples)
    if reads(config, "algorithm") and isinstance(algorithm, SFT):
        return algorithm.max_sequence_tokens, 1, 1, batches_of(config), measured
    return prompt, completion, samples, Batches(measured, 1, 1), min(measured, config.evaluation.tasks or measured)


def batches_of(config: Config) -> Batches:
    """What one process does in a step, as the trainers derive it."""
    algorithm, processes = config.algorithm, config.parallel.world
    if isinstance(algorithm, SFT):
        tokens = algorithm.max_tokens_per_device
        return derive(algorithm.batch_size, algorithm.max_sequence_tokens, tokens, processes)
    lengths = config.model.max_prompt_tokens, config.model.max_completion_tokens
    return of_groups(
        algorithm.prompts_per_step, algorithm.group_size, *lengths, algorithm.max_tokens_per_device, processes
    )


def _adapter(model: Model, shape: Architecture) -> Adapter | None:
    if not has_adapter(model):
        return None
    said = described(continued(model))
    rank = int(said.get("r", model.adapter.effective_rank))
    named = said.get("target_modules", model.adapter.targets)
    wanted = {str(name).rpartition(".")[2] for name in named} if isinstance(named, list) else set()
    targets = tuple(name for name in shape.matrices() if not wanted or name in wanted)
    return Adapter(rank, targets, bool(said.get("use_dora", model.adapter.kind == "dora")))
