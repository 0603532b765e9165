"""What each phase of a step holds on a device, line by line in bytes. One pure function per phase.

Counts the allocations of this package's trainer and sampler: one packed row per group, attention through SDPA with an
additive mask, log-probabilities in tiles (TRL's fused head), a cache that holds each prompt once.
"""

from collections.abc import Callable

from rlvr_exp.memory import activations, counts
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
"""The same of activations that the library's layers save on a CPU. Between two saved tensors they free some that are as large.
glibc does not use such a block for an aligned request of its own size, so that it stays empty."""
EXAMPLE = 64
"""Bytes of a token of an example, at most: two pointers in lists, a Python integer of 32 bytes, two integers in the dataset."""


def _standing(workload: Workload) -> Lines:
    """What is on the device in every phase of a step after the first."""
    return {
        "weights": workload.models * counts.shard(workload),
        "reference": workload.models * counts.shard(workload)
        if workload.reference and workload.adapter is None
        else 0.0,
        "packed weights": activations.packed(workload),
        "examples": float(EXAMPLE * workload.examples),
        "value network": counts.value_network(workload) if workload.value_network else 0.0,
        "adapter": workload.roles * counts.adapter(workload),
        "optimizer states": workload.roles * counts.states(workload),
        "ZeRO's bucket": workload.bucket * workload.width if workload.partitions_weights and workload.trains else 0.0,
    }


def load(workload: Workload) -> Lines:
    """Weights are loaded completely and in their own type; a matrix is quantised after loading, and ZeRO-3 shards them
    later."""
    lines = {
        "weights": workload.models * counts.weights(workload),
        "adapter": workload.roles * counts.adapter(workload),
    }
    if workload.quantization:
        lines["temporaries"] = counts.largest_matrix(workload) * workload.width
    return lines


def rollout(workload: Workload) -> Lines:
    """Sampling: ZeRO-3 gathers the complete model, which is then in memory in addition to the shard."""
    lines = (
        _standing(workload)
        | _opened(workload)
        | {
            "packed weights": 2 * activations.packed(workload),
            "KV cache": activations.cache(workload),
            "activations": activations.decode(workload),
            "logits": activations.sampling_logits(workload),
        }
    )
    if workload.partitions_weights:
        lines["gathered weights"] = counts.weights(workload)
    return lines


def logprobs(workload: Workload) -> Lines:
    """A pass without gradients: one layer's activations at a time."""
    lines = (
        _standing(workload)
        | _opened(workload)
        | {
            "activations": activations.forward(workload),
            "logits": activations.tile(workload),
        }
    )
    return _with_live(lines, workload)


def backward(workload: Workload) -> Lines:
    """The largest of three moments: at the head, with everything saved; in the last layer, which is recomputed first
    under checkpointing; and in the first layer, when all gradients exist."""
    gradients = counts.gradients(workload)
    held = gradients if workload.accumulates else 0.0
    saved, layer = activations.saved(workload), activations.one_layer(workload)
    at_head = {"gradients": held, "activations": saved, "logits": activations.head(workload)}
    entering = {
        "gradients": held,
        "activations": saved + (layer if workload.checkpointing else activations.flowing(workload)),
    }
    leaving = {"gradients": gradients, "activations": layer}
    largest = max(at_head, entering, leaving, key=lambda lines: sum(lines.values()))
    lines = _standing(workload) | _opened(workload) | largest
    if workload.partitions_updates:
        lines["ZeRO's bucket"] = workload.bucket * workload.width
    return _with_live(lines, workload)


def optimizer(workload: Workload) -> Lines:
    """The update itself."""
    return _standing(workload) | {"gradients": counts.gradients(workload), "temporaries": counts.update(workload)}


def checkpoint(workload: Workload) -> Lines:
    """Writing: every trained weight is checked for values that are not finite, one at a time; ZeRO-3 gathers first."""
    lines = _standing(workload) | {"temporaries": counts.inspected(workload)}
    return lines | ({"gathered weights": counts.weights(workload)} if workload.partitions_weights else {})


def live(workload: Workload) -> float:
    """What ZeRO-3 holds gathered while layers run."""
    return min(workload.live, workload.shape.parameters) * workload.width


def _opened(workload: Workload) -> Lines:
    """A quantised matrix in its own type during its multiplication."""
    return {"temporaries": counts.largest_matrix(workload) * workload.width if workload.quantization else 0.0}


def _with_live(lines: Lines, workload: Workload) -> Lines:
    return lines | {"gathered weights": live(workload)} if workload.partitions_weights else lines


PHASES: dict[str, Callable[[Workload], Lines]] = {
    "load": load,
    "rollout": rollout,
    "log-probs": logprobs,
    "backward": backward,
    "optimizer": optimizer,
    "checkpoint": checkpoint,
}


def reserve(lines: Lines, workload: Workload) -> float:
    """What a device needs beyond the tensors of a phase."""
    standing = sum(lines.get(name, 0.0) for name in ("weights", "reference", "value network"))
    holes = HOLES if workload.cpu and not activations.own_layers(workload) else 0.0
    libraries = LIBRARIES if workload.cpu else CONTEXT
    return libraries + FRAGMENTATION * (sum(lines.values()) - standing) + holes * lines.get("activations", 0.0)
