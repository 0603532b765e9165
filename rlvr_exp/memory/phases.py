"""The memory estimate: the bytes that each phase of a step holds on a device, line by line, and their table.

Counts the allocations of this package's trainer and sampler: one packed row per group, attention through SDPA with an
additive mask, log-probabilities in tiles (TRL's fused head), a cache that holds each prompt once.
"""

from collections.abc import Callable, Iterator

from rlvr_exp.memory import counts, vllm
from rlvr_exp.memory.workload import GIB, Workload

Lines = dict[str, float]
"""Bytes by the name of the line."""

CONTEXT = 0.75 * GIB
"""CUDA context, cuBLAS and NCCL workspaces of one process."""
LIBRARIES = 0.7 * GIB
"""Code and data of Python, torch and the other libraries in a process on a CPU, with its tokenizer and tasks."""
FRAGMENTATION = 0.05
"""Share of temporary bytes that the allocator holds beyond the requested ones."""
HOLES = 0.25
"""The same share of the activations that the library's layers save on a CPU. Between two saved tensors they free some that are
as large. glibc does not use such a block for an aligned request of its own size, so that it stays empty."""
EXAMPLE = 64
"""Bytes of a token of an example, at most: two pointers in lists, a Python integer of 32 bytes, two integers in the dataset."""


def _standing(workload: Workload) -> Lines:
    """The lines of every phase of a step after the first."""
    packed = 0.0 if workload.vllm or workload.served else counts.packed(workload)
    frozen_copy = workload.reference and workload.adapter is None
    bucket = workload.partitions_weights and workload.trains
    return {
        "weights": workload.models * counts.shard(workload),
        "reference": workload.models * counts.shard(workload) if frozen_copy else 0.0,
        "teacher": _teacher(workload),
        "packed weights": packed,
        "vLLM": vllm.asleep(workload) if workload.vllm else 0.0,
        "examples": float(EXAMPLE * workload.examples),
        "value network": counts.value_network(workload) if workload.value_network else 0.0,
        "adapter": workload.roles * counts.adapter(workload),
        "optimizer states": workload.roles * counts.states(workload),
        "ZeRO's bucket": workload.bucket * workload.width if bucket else 0.0,
    }


def _teacher(workload: Workload) -> float:
    """Another model, or the moving average of the trained weights in float32."""
    if workload.teacher is not None:
        return counts.weights(workload.teacher)
    return 4.0 * workload.roles * counts.trained(workload) if workload.average else 0.0


def _opened(workload: Workload) -> Lines:
    """A quantised matrix in its own type during its multiplication."""
    return {"temporaries": counts.largest_matrix(workload) * workload.width if workload.quantization else 0.0}


def load(workload: Workload) -> Lines:
    """Weights are loaded completely and in their own type; quantisation and ZeRO-3's sharding follow."""
    lines = {
        "weights": workload.models * counts.weights(workload),
        "adapter": workload.roles * counts.adapter(workload),
    }
    return lines | _opened(workload) if workload.quantization else lines


def rollout(workload: Workload) -> Lines:
    """Sampling: ZeRO-3 gathers the complete model, which is then in memory in addition to the shard."""
    if workload.vllm:
        return _standing(workload) | {"vLLM": vllm.awake(workload)}
    if workload.served:
        return _standing(workload)
    lines = _standing(workload) | _opened(workload)
    lines |= {
        "packed weights": 2 * counts.packed(workload),
        "KV cache": counts.cache(workload),
        "activations": counts.decode(workload),
        "logits": counts.sampling_logits(workload),
    }
    return lines | _gathered(workload)


def _gathered(workload: Workload) -> Lines:
    return {"gathered weights": counts.weights(workload)} if workload.partitions_weights else {}


def logprobs(workload: Workload) -> Lines:
    """A pass without gradients: one layer's activations at a time."""
    lines = _standing(workload) | _opened(workload)
    return lines | {"activations": counts.forward(workload), "logits": counts.tile(workload)} | _live(workload)


def _live(workload: Workload) -> Lines:
    """The weights that ZeRO-3 holds gathered while layers run."""
    gathered = min(workload.live, workload.shape.parameters) * workload.width
    return {"gathered weights": gathered} if workload.partitions_weights else {}


def backward(workload: Workload) -> Lines:
    """The largest of three moments: at the head, with everything saved; in the last layer, which is recomputed first
    under checkpointing; and in the first layer, when all gradients exist."""
    gradients = counts.gradients(workload)
    held = gradients if workload.accumulates else 0.0
    saved, layer = counts.saved(workload), counts.one_layer(workload)
    entered = saved + (layer if workload.checkpointing else counts.flowing(workload))
    moments: tuple[Lines, ...] = (
        {"gradients": held, "activations": saved, "logits": counts.head(workload)},
        {"gradients": held, "activations": entered},
        {"gradients": gradients, "activations": layer},
    )
    lines = _standing(workload) | _opened(workload) | max(moments, key=lambda lines: sum(lines.values()))
    if workload.partitions_updates:
        lines["ZeRO's bucket"] = workload.bucket * workload.width
    return lines | _live(workload)


def optimizer(workload: Workload) -> Lines:
    """The update itself."""
    return _standing(workload) | {"gradients": counts.gradients(workload), "temporaries": counts.update(workload)}


def checkpoint(workload: Workload) -> Lines:
    """Writing: every trained weight is checked for values that are not finite, one at a time; ZeRO-3 gathers first."""
    # The weight, its absolute value and two comparisons.
    inspected = counts.largest_trained(workload) * (counts.trained_width(workload) + 2.0)
    return _standing(workload) | {"temporaries": inspected} | _gathered(workload)


PHASES: dict[str, Callable[[Workload], Lines]] = {
    "load": load,
    "rollout": rollout,
    "log-probs": logprobs,
    "backward": backward,
    "optimizer": optimizer,
    "checkpoint": checkpoint,
}
SAMPLING_ALONE = ("load", "rollout")
"""Phases of a run that trains nothing."""
MIB = 2**20
RESERVE, RESERVE_OF_CPU = "context, fragmentation", "libraries, allocator"
TIGHT, ACCURATE = "tight", 0.9
"""A plan for a CPU is within a tenth of the measured peak (tests/benchmarks/test_memory_phases.py)."""


def estimate(workload: Workload) -> dict[str, Lines]:
    """Bytes of every line of every phase of the run. The last line is a reserve beyond the tensors."""
    found = {}
    holes = HOLES if workload.cpu and not counts.own_layers(workload) else 0.0
    name, libraries = (RESERVE_OF_CPU, LIBRARIES) if workload.cpu else (RESERVE, CONTEXT)
    for phase in PHASES if workload.trains else SAMPLING_ALONE:
        lines = PHASES[phase](workload)
        standing = sum(lines.get(name, 0.0) for name in ("weights", "reference", "teacher", "value network", "vLLM"))
        temporary = FRAGMENTATION * (sum(lines.values()) - standing)
        found[phase] = {**lines, name: libraries + temporary + holes * lines.get("activations", 0.0)}
    return found


def table(found: dict[str, Lines], device_gib: float) -> Iterator[str]:
    """The estimate in GiB, or in MiB if every line but the reserve is small; lines that are zero everywhere are left out."""
    names = dict.fromkeys(name for lines in found.values() for name, size in lines.items() if size)
    reserves = (RESERVE, RESERVE_OF_CPU)
    small = all(size < GIB for lines in found.values() for name, size in lines.items() if name not in reserves)
    unit, unit_name = (MIB, "MiB") if small else (GIB, "GiB")

    def row(name: str, cells: list[str]) -> str:
        return f"{name:<24}" + "".join(f"{cell:>12}" for cell in cells)

    def number(size: float) -> str:
        return "-" if not size else f"{size / unit:.2f}" if size >= 0.1 * unit else f"{size / unit:.4f}"

    yield row(unit_name, list(found))
    for name in sorted(names, key=reserves.__contains__):
        yield row(name, [number(lines.get(name, 0.0)) for lines in found.values()])
    totals = [sum(lines.values()) for lines in found.values()]
    yield row("total", [number(total) for total in totals])
    verdicts = [fit(total, device_gib * GIB) for total in totals]
    yield row(f"of {device_gib:g} GiB", verdicts)
    if TIGHT in verdicts:
        yield f"tight: within {1 - ACCURATE:.0%} of the memory; a peak can be that much higher than its plan"


def fit(total: float, room: float) -> str:
    """Return "fits", "tight" or "TOO MUCH"."""
    return "fits" if total <= ACCURATE * room else TIGHT if total <= room else "TOO MUCH"


def highest(workload: Workload) -> float:
    """Bytes of the phase that holds the most."""
    return max(sum(lines.values()) for lines in estimate(workload).values())


def too_large(found: dict[str, Lines], device_gib: float) -> tuple[str, str] | None:
    """The first phase that does not fit and its largest line."""
    for phase, lines in found.items():
        if sum(lines.values()) > device_gib * GIB:
            return phase, max(lines, key=lambda name: lines[name])
    return None
