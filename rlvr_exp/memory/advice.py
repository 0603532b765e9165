"""The memory block of the dry plan: the table, the first line that does not fit, and the nearest settings that would fit.

The nearest settings are the fewest changes, and of those the mildest, each as command line options.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from rlvr_exp.config.benchmark import Training
from rlvr_exp.config.schema import Config
from rlvr_exp.core import machine
from rlvr_exp.memory import counts, vllm
from rlvr_exp.memory.hours import planned_hours
from rlvr_exp.memory.phases import estimate, fit, highest, table, too_large
from rlvr_exp.memory.reading import device_of, workload_of
from rlvr_exp.memory.workload import GIB, Adapter, Workload

LINK_GB_S = 25.0
"""Rate at which a device receives weights from the others."""
SHARES = (0.6, 0.5, 0.4, 0.35, 0.3, 0.25, 0.2)
"""Shares of vLLM that are tried, the nearest to the configured one first."""
RANK = 16
"""Rank of an adapter if none is configured; the default of model.adapter.rank."""


def memory(config: Config) -> Iterator[str]:
    """The block, line by line."""
    workload = _known(config)
    if not isinstance(workload, Workload):
        yield from workload
        return
    device, found = room(config), estimate(workload)
    yield f"memory of {_devices(config, workload)}: {_plan(workload)}"
    yield from table(found, device)
    if (found_hours := planned_hours(config)) is not None:
        yield f"time: {found_hours}"
    if workload.vllm and not workload.cpu:
        yield _of_vllm(workload)
    over = too_large(found, device)
    if over:
        phase, line = over
        total, size = sum(found[phase].values()) / GIB, found[phase][line] / GIB
        yield f"does not fit: {phase}, {total:.1f} GiB of {device:g}; its largest line is {line}, {size:.1f} GiB"
    if over or not _starts(workload):
        settings = nearest(workload, device)
        yield from (f"would fit with: {words}" for words in settings)
        if not settings:
            yield "nothing near would fit: a smaller model, shorter lengths, or devices with more memory"
    if isinstance(config.benchmark, Training):
        yield of_sides(workload, device)
    if workload.partitions_weights:
        yield _without_gather(workload)
    elif workload.processes > 1 and workload.quantization and workload.adapter:
        # The same adapter over weights in their own type, sharded by ZeRO-3.
        other = replace(workload, quantization="", strategy="zero3", vllm=None)
        lines = estimate(other)["rollout"]
        total, held = sum(lines.values()) / GIB, (lines["weights"] + lines["gathered weights"]) / GIB
        verdict = "fits" if total <= device else f"does not fit into {device:g}"
        yield (
            f"beside it: model.quantization=none parallel=zero3, an adapter over {workload.dtype}: a rollout holds the "
            f"gathered model beside the shard, {held:.1f} GiB, {total:.1f} in all: {verdict}"
        )
        yield _without_gather(other)


def _known(config: Config) -> Workload | list[str]:
    """The workload, or the lines on why it is unknown."""
    try:
        workload = workload_of(config)
    except ValueError as fault:
        return [f"memory: unknown: {fault}"]
    if workload is not None:
        return workload
    model = config.model.path or config.model.name or "this model"
    return [
        f"memory: unknown: the shape of {model} is not known. Pass model.path=DIR, a folder with its config.json (no weights needed),",
        "or all of model.architecture: layers, hidden, heads, kv_heads, head_dim, intermediate, vocabulary",
    ]


def in_short(config: Config) -> Iterator[str]:
    """The fullest phase and the hours, a line each."""
    workload = _known(config)
    if not isinstance(workload, Workload):
        yield from workload
        return
    totals = {phase: sum(lines.values()) / GIB for phase, lines in estimate(workload).items()}
    phase, device = max(totals, key=lambda name: totals[name]), room(config)
    several = f" each of {workload.processes} devices" if workload.processes > 1 else ""
    yield f"memory: {totals[phase]:.1f} of {device:g} GiB{several} ({phase}): {fit(totals[phase], device)}"
    if (found_hours := planned_hours(config)) is not None:
        yield f"time: {found_hours}"


def _of_vllm(workload: Workload) -> str:
    """The line on the share of vLLM."""
    assert workload.vllm is not None
    share, weights = workload.vllm.limit / GIB, vllm.weights(workload) / GIB
    held = f"vLLM: {share:.1f} GiB during rollouts, of which its weights take {weights:.1f}"
    if not _starts(workload):
        return f"{held}: it does not start below {vllm.least(workload) / GIB:.1f} GiB (engine.memory_share)"
    return f"{held}; the rest holds {vllm.at_once(workload)} completions of the longest length at the same time"


def _starts(workload: Workload) -> bool:
    """Whether vLLM, if it samples, has enough memory for its weights and one completion."""
    return workload.vllm is None or workload.cpu or workload.vllm.limit >= vllm.least(workload)


def sides(workload: Workload) -> tuple[float, float]:
    """GiB that benchmark=training holds at most while this trainer steps, and while trl.GRPOTrainer steps. It keeps a copy of
    the first weights beside both."""
    ours, stock = ((highest(one) + counts.weights(workload)) / GIB for one in (workload, workload.of_stock))
    return ours, stock


def of_sides(workload: Workload, device: float) -> str:
    """The line on memory of benchmark=training."""
    ours, stock = sides(workload)
    verdict = fit(max(ours, stock), device)
    return (
        f"at the highest, this trainer takes {ours:.1f} GiB and trl.GRPOTrainer {stock:.1f}, with prompts of {workload.prompt} "
        f"tokens and completions of {workload.completion}: {verdict} of {device:g} GiB"
    )


def room(config: Config) -> float:
    """GiB that a process may use: the memory of its device; on a CPU its share of the free memory of this machine."""
    device = device_of(config)
    if device.cuda or config.parallel.device_memory_gib:
        return device.memory_gib
    return round(machine.available() / GIB / config.parallel.processes, 1)


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
        several = workload.processes > 1
        return f"each of {workload.processes} devices{name}, all alike" if several else f"the device{name}"
    if parallel.device_memory_gib:
        return "the CPU"
    free, most = machine.available() / GIB, machine.total() / GIB
    shared = f", shared by {parallel.processes} processes" if parallel.processes > 1 else ""
    return f"this machine, {free:.1f} of {most:.1f} GiB are free{shared}"


def _plan(workload: Workload) -> str:
    what = f"{workload.quantization} weights" if workload.quantization else workload.dtype
    if workload.trains:
        kind = workload.adapter and ("DoRA" if workload.adapter.dora else "LoRA")
        what += f", {kind} of rank {workload.adapter.rank} trained" if workload.adapter else ", all weights trained"
    size = workload.shape.parameters
    count = f"{size / 1e9:.2f} billion" if size >= 1e9 else f"{size / 1e6:.2f} million"
    return f"{count} parameters in {what}, {workload.strategy}"


@dataclass(frozen=True)
class Change:
    """A change of a setting."""

    words: str
    apply: Callable[[Workload], Workload]


def nearest(workload: Workload, device_gib: float, wanted: int = 2) -> list[str]:
    """Options of up to `wanted` sets of changes, of different kinds, after which every phase fits."""
    found: dict[tuple[int, ...], str] = {}
    kinds = [[None, *changes] for changes in _kinds(workload, device_gib)]
    picks = product(*(range(len(kind)) for kind in kinds))
    for pick in sorted(picks, key=lambda pick: (sum(place > 0 for place in pick), sum(pick))):
        chosen = tuple(number for number, place in enumerate(pick) if place)
        if not chosen or any(set(known) <= set(chosen) for known in found):
            continue
        changes = [change for kind, place in zip(kinds, pick, strict=True) if (change := kind[place])]
        changed = workload
        for change in changes:
            changed = change.apply(changed)
        # Quantized weights are neither sharded nor trained.
        whole = changed.partitions_weights or (changed.trains and not changed.adapter)
        fits = highest(changed) <= device_gib * GIB and _starts(changed)
        if fits and not (changed.quantization and whole):
            found[chosen] = " ".join(change.words for change in changes)
        if len(found) == wanted:
            break
    return list(found.values())


def _kinds(workload: Workload, device_gib: float) -> Iterator[list[Change]]:
    """Changes of each kind from the mildest: first those that cost only time, last those that change the policy."""
    if workload.trains and not workload.checkpointing:
        yield [Change("model.gradient_checkpointing=true", lambda now: replace(now, checkpointing=True))]
    if workload.vllm is None:
        yield [_sampled(groups, workload) for groups in _halves(workload.sampling_batch.groups, 1)]
    elif not workload.cpu:
        now = workload.vllm.limit / (device_gib * GIB)
        others = sorted(SHARES, key=lambda share: abs(share - now))
        yield [_shared(share, device_gib) for share in others]
    bits = ("4bit",) if workload.vllm else ("4bit", "8bit")
    quantized = [_quantized(one) for one in bits if not workload.quantization]
    if not workload.trains:
        yield quantized
        return
    spread = ("zero2",) if workload.vllm else ("zero2", "zero3")  # vLLM takes no sharded weights.
    yield [_pass(tokens) for tokens in _halves(workload.limit, workload.prompt + workload.completion)]
    yield [_spread(name) for name in spread if name != workload.strategy]
    if workload.optimizer in ("Adam", "AdamW"):
        yield [Change("optimizer=adamw_8bit", lambda now: replace(now, optimizer="AdamW8bit"))]
    if not workload.adapter:
        yield [Change("model.adapter.kind=lora optimizer.lr=2e-5", _adapted)]
    yield quantized


def _halves(start: int, least: int) -> Iterator[int]:
    while start // 2 >= least:
        start //= 2
        yield start


def _sampled(groups: int, workload: Workload) -> Change:
    batch = workload.sampling_batch
    most = groups * batch.size
    words = " ".join(f"{option}={most}" for option, value in batch.options if value > most)
    return Change(words, lambda now: replace(now, sampling_batch=replace(now.sampling_batch, groups=groups)))


def _shared(share: float, device_gib: float) -> Change:
    def apply(now: Workload) -> Workload:
        assert now.vllm is not None
        return replace(now, vllm=replace(now.vllm, limit=share * device_gib * GIB))

    return Change(f"engine.memory_share={share:g}", apply)


def _pass(tokens: int) -> Change:
    return Change(f"algorithm.max_tokens_per_device={tokens}", lambda now: replace(now, limit=tokens))


def _spread(strategy: str) -> Change:
    def apply(now: Workload) -> Workload:
        processes = max(2, now.processes)
        return replace(now, strategy=strategy, processes=processes, share=-(-now.share * now.processes // processes))

    return Change(f"parallel={strategy}", apply)


def _quantized(bits: str) -> Change:
    return Change(f"model.quantization={bits}", lambda now: replace(now, quantization=bits))


def _adapted(now: Workload) -> Workload:
    return replace(now, adapter=Adapter(RANK, tuple(now.shape.matrices())), reference=False)
