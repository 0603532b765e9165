"""The memory block of the dry plan: the table, the first line that does not fit, and settings that would fit."""

from collections.abc import Iterator
from dataclasses import replace

from rlvr_exp.config.benchmark import Training
from rlvr_exp.config.schema import Config
from rlvr_exp.core import machine
from rlvr_exp.memory import counts
from rlvr_exp.memory.nearest import nearest
from rlvr_exp.memory.phases import Lines
from rlvr_exp.memory.reading import device_of, workload_of
from rlvr_exp.memory.table import estimate, fit, highest, table, too_large
from rlvr_exp.memory.workload import GIB, Workload

LINK_GB_S = 25.0
"""Rate at which a device receives weights from the others."""


def memory(config: Config) -> Iterator[str]:
    """The block, line by line."""
    try:
        workload = workload_of(config)
    except ValueError as fault:
        yield f"memory: unknown: {fault}"
        return
    if workload is None:
        model = config.model.path or config.model.name or "this model"
        yield f"memory: unknown: the shape of {model} is not known. Pass model.path=DIR, a folder with its config.json (no weights needed),"
        yield "or all of model.architecture: layers, hidden, heads, kv_heads, head_dim, intermediate, vocabulary"
        return
    device, found = room(config), estimate(workload)
    yield f"memory of {_devices(config, workload)}: {_plan(workload)}"
    yield from table(found, device)
    yield from _misfit(workload, found, device)
    if isinstance(config.benchmark, Training):
        yield of_sides(workload, device)
    if workload.partitions_weights:
        yield _without_gather(workload)
    elif workload.processes > 1 and workload.quantization and workload.adapter:
        yield from _unquantized(workload, device)


def sides(workload: Workload) -> tuple[float, float]:
    """GiB that benchmark=training holds at its highest while this trainer steps, and while trl.GRPOTrainer does. It keeps a
    copy of the first weights beside both."""
    return tuple((highest(one) + counts.weights(workload)) / GIB for one in (workload, workload.of_stock))  # type: ignore[return-value]


def of_sides(workload: Workload, device: float) -> str:
    """The line on memory of benchmark=training."""
    ours, stock = sides(workload)
    verdict = fit(max(ours, stock), device)
    return (
        f"at the highest, this trainer takes {ours:.1f} GiB and trl.GRPOTrainer {stock:.1f}, with prompts of {workload.prompt} "
        f"tokens and completions of {workload.completion}: {verdict} of {device:g} GiB"
    )


def room(config: Config) -> float:
    """GiB that a process may use: the memory of its device; on a CPU its share of what is free on this machine."""
    device = device_of(config)
    if device.cuda or config.parallel.device_memory_gib:
        return device.memory_gib
    return round(machine.available() / GIB / config.parallel.processes, 1)


def _misfit(workload: Workload, found: dict[str, Lines], device: float) -> Iterator[str]:
    over = too_large(found, device)
    if over is None:
        return
    phase, line = over
    total, size = sum(found[phase].values()) / GIB, found[phase][line] / GIB
    yield f"does not fit: {phase}, {total:.1f} GiB of {device:g}; its largest line is {line}, {size:.1f} GiB"
    settings = nearest(workload, device)
    for words in settings:
        yield f"would fit with: {words}"
    if not settings:
        yield "nothing near would fit: a smaller model, shorter lengths, or devices with more memory"


def _unquantized(workload: Workload, device: float) -> Iterator[str]:
    """The same adapter over weights in their own type, sharded by ZeRO-3."""
    other = replace(workload, quantization="", strategy="zero3")
    lines = estimate(other)["rollout"]
    total = sum(lines.values()) / GIB
    verdict = "fits" if total <= device else f"does not fit into {device:g}"
    held = (lines["weights"] + lines["gathered weights"]) / GIB
    yield (
        f"beside it: model.quantization=none parallel=zero3, an adapter over {workload.dtype}: a rollout holds the gathered "
        f"model beside the shard, {held:.1f} GiB, {total:.1f} in all: {verdict}"
    )
    yield _without_gather(other)


def _without_gather(workload: Workload) -> str:
    """The bound on sampling layer by layer: each token of the batch waits for the other devices' weights."""
    missing = counts.weights(workload) * (1 - 1 / workload.processes)
    rate = workload.sampling_batch.groups * workload.sampling_batch.size / (missing / (LINK_GB_S * 1e9))
    return (
        f"without the gather each step of sampling would fetch {missing / GIB:.1f} GiB over the link ({LINK_GB_S:g} GB/s): at most "
        f"{rate:.0f} tokens/s a device; not offered"
    )


def _devices(config: Config, workload: Workload) -> str:
    parallel = config.parallel
    if not workload.cpu:
        name = f" ({parallel.device})" if parallel.device else ""
        return (
            f"each of {workload.processes} devices{name}, all alike" if workload.processes > 1 else f"the device{name}"
        )
    if parallel.device_memory_gib:
        return "the CPU"
    free, most = machine.available() / GIB, machine.total() / GIB
    shared = f", shared by {parallel.processes} processes" if parallel.processes > 1 else ""
    return f"this machine, {free:.1f} of {most:.1f} GiB are free{shared}"


def _plan(workload: Workload) -> str:
    stored = f"{workload.quantization} weights" if workload.quantization else workload.dtype
    learned = (
        f"{'DoRA' if workload.adapter.dora else 'LoRA'} of rank {workload.adapter.rank}"
        if workload.adapter
        else "all weights"
    )
    what = f"{stored}, {learned} trained" if workload.trains else stored
    size = workload.shape.parameters
    count = f"{size / 1e9:.2f} billion" if size >= 1e9 else f"{size / 1e6:.2f} million"
    return f"{count} parameters in {what}, {workload.strategy}"
