"""The nearest settings that fit: the fewest changes, and of those the mildest, each as command line options."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from rlvr_exp.memory.table import estimate
from rlvr_exp.memory.workload import GIB, Adapter, Workload

RANK = 16
"""Rank of an adapter where none is configured; the default of model.adapter.rank."""


@dataclass(frozen=True)
class Change:
    """A change of a setting."""

    words: str
    apply: Callable[[Workload], Workload]


def nearest(workload: Workload, device_gib: float, wanted: int = 2) -> list[str]:
    """Options of up to `wanted` sets of changes, of different kinds, after which every phase fits."""
    found: dict[tuple[int, ...], str] = {}
    kinds = [[None, *changes] for changes in _kinds(workload)]
    ranked = sorted(product(*(range(len(kind)) for kind in kinds)), key=lambda pick: (_changed(pick), sum(pick)))
    for pick in ranked:
        chosen = tuple(number for number, place in enumerate(pick) if place)
        if not chosen or any(set(known) <= set(chosen) for known in found):
            continue
        changes = [kind[place] for kind, place in zip(kinds, pick, strict=True) if place]
        if _fits(changes, workload, device_gib):
            found[chosen] = " ".join(change.words for change in changes if change)
        if len(found) == wanted:
            break
    return list(found.values())


def _changed(pick: tuple[int, ...]) -> int:
    return sum(place > 0 for place in pick)


def _fits(changes: list[Change | None], workload: Workload, device_gib: float) -> bool:
    for change in changes:
        workload = change.apply(workload) if change else workload
    if workload.quantization and (workload.partitions_weights or (workload.trains and not workload.adapter)):
        return False  # Quantized weights are neither sharded nor trained.
    return all(sum(lines.values()) <= device_gib * GIB for lines in estimate(workload).values())


def _kinds(workload: Workload) -> Iterator[list[Change]]:
    """Changes of each kind from the mildest: first those that cost only time, last those that change the policy."""
    if workload.trains and not workload.checkpointing:
        yield [Change("model.gradient_checkpointing=true", lambda now: replace(now, checkpointing=True))]
    yield [_sampled(groups, workload) for groups in _halves(workload.sampling_batch.groups, 1)]
    if not workload.trains:
        yield [_quantized(bits) for bits in ("4bit", "8bit") if not workload.quantization]
        return
    yield [_pass(tokens) for tokens in _halves(workload.limit, workload.prompt + workload.completion)]
    yield [_spread(name) for name in ("zero2", "zero3") if name != workload.strategy]
    if workload.optimizer in ("Adam", "AdamW"):
        yield [Change("optimizer=adamw_8bit", lambda now: replace(now, optimizer="AdamW8bit"))]
    if not workload.adapter:
        yield [Change("model.adapter.kind=lora optimizer.lr=2e-5", _adapted)]
    yield [_quantized(bits) for bits in ("4bit", "8bit") if not workload.quantization]


def _halves(start: int, least: int) -> Iterator[int]:
    while start // 2 >= least:
        start //= 2
        yield start


def _sampled(groups: int, workload: Workload) -> Change:
    batch = workload.sampling_batch
    most = groups * batch.size
    words = " ".join(f"{option}={most}" for option, value in batch.options if value > most)
    return Change(words, lambda now: replace(now, sampling_batch=replace(now.sampling_batch, groups=groups)))


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
