"""What each phase of a step holds on a device, line by line in bytes. One pure function a phase.

What is counted is what the trainer and the sampler of this package allocate: one packed row a group, attention through
SDPA with an additive mask, log-probabilities in tiles (TRL's fused head), a cache that holds each prompt once.
"""

from collections.abc import Callable

from rlvr_exp.run.memory import activations, counts
from rlvr_exp.run.memory.workload import GIB, Layout

Lines = dict[str, float]
"""Bytes by the name of the line."""

CONTEXT = 0.75 * GIB
"""CUDA context, cuBLAS and NCCL workspaces of one process."""
FRAGMENTATION = 0.05
"""Share of what comes and goes that the allocator holds beyond what is asked for."""


def _standing(layout: Layout) -> Lines:
    """What lies on the device in every phase of a step after the first."""
    return {
        "weights": layout.models * counts.shard(layout),
        "reference": layout.models * counts.shard(layout) if layout.reference and layout.adapter is None else 0.0,
        "value network": counts.value_network(layout) if layout.value_network else 0.0,
        "adapter": layout.roles * counts.adapter(layout),
        "optimizer states": layout.roles * counts.states(layout),
        "ZeRO's bucket": layout.bucket * layout.width if layout.partitions_weights and layout.trains else 0.0,
    }


def load(layout: Layout) -> Lines:
    """Weights arrive whole and in their own type; a matrix is quantised after it arrived, and ZeRO-3 spreads them later."""
    lines = {"weights": layout.models * counts.weights(layout), "adapter": layout.roles * counts.adapter(layout)}
    if layout.quantization:
        lines["temporaries"] = counts.largest_matrix(layout) * layout.width
    return lines


def rollout(layout: Layout) -> Lines:
    """Sampling: ZeRO-3 gathers the whole model, which then lies beside the shard."""
    lines = (
        _standing(layout)
        | _opened(layout)
        | {
            "KV cache": activations.cache(layout),
            "activations": activations.decode(layout),
            "logits": activations.sampling_logits(layout),
        }
    )
    if layout.partitions_weights:
        lines["gathered weights"] = counts.weights(layout)
    return lines


def logprobs(layout: Layout) -> Lines:
    """A pass without gradients: one layer's activations at a time."""
    lines = (
        _standing(layout)
        | _opened(layout)
        | {
            "activations": activations.forward(layout),
            "logits": activations.tile(layout),
        }
    )
    return _with_live(lines, layout)


def backward(layout: Layout) -> Lines:
    """The largest of three moments: at the head, with everything saved; in the last layer, which is the first to be
    computed again under checkpointing; and in the first layer, when all gradients are there."""
    gradients = counts.gradients(layout)
    held = gradients if layout.accumulates else 0.0
    saved, layer = activations.saved(layout), activations.one_layer(layout)
    at_head = {"gradients": held, "activations": saved, "logits": activations.head(layout)}
    entering = {
        "gradients": held,
        "activations": saved + (layer if layout.checkpointing else activations.flowing(layout)),
    }
    leaving = {"gradients": gradients, "activations": layer}
    largest = max(at_head, entering, leaving, key=lambda lines: sum(lines.values()))
    lines = _standing(layout) | _opened(layout) | largest
    if layout.partitions_updates:
        lines["ZeRO's bucket"] = layout.bucket * layout.width
    return _with_live(lines, layout)


def optimizer(layout: Layout) -> Lines:
    """The update itself."""
    return _standing(layout) | {"gradients": counts.gradients(layout), "temporaries": counts.update(layout)}


def checkpoint(layout: Layout) -> Lines:
    """Writing: every trained weight is looked at for values that are not finite, one at a time; ZeRO-3 gathers first."""
    lines = _standing(layout) | {"temporaries": counts.inspected(layout)}
    return lines | ({"gathered weights": counts.weights(layout)} if layout.partitions_weights else {})


def live(layout: Layout) -> float:
    """What ZeRO-3 holds gathered while layers run."""
    return min(layout.live, layout.shape.parameters) * layout.width


def _opened(layout: Layout) -> Lines:
    """A quantised matrix in its own type while it is multiplied by."""
    return {"temporaries": counts.largest_matrix(layout) * layout.width if layout.quantization else 0.0}


def _with_live(lines: Lines, layout: Layout) -> Lines:
    return lines | {"gathered weights": live(layout)} if layout.partitions_weights else lines


PHASES: dict[str, Callable[[Layout], Lines]] = {
    "load": load,
    "rollout": rollout,
    "log-probs": logprobs,
    "backward": backward,
    "optimizer": optimizer,
    "checkpoint": checkpoint,
}


def reserve(lines: Lines) -> float:
    """What a device needs beyond the tensors of a phase."""
    standing = sum(lines.get(name, 0.0) for name in ("weights", "reference", "value network"))
    return CONTEXT + FRAGMENTATION * (sum(lines.values()) - standing)
