"""Bytes that stay on a device: weights, adapter, gradients, optimizer states. One small function each.

Sources: NF4 and double quantisation, Dettmers et al. 2023 (QLoRA, arXiv 2305.14314) section 3; LLM.int8(), Dettmers et
al. 2022 (arXiv 2208.07339); partitioning, Rajbhandari et al. 2020 (ZeRO, arXiv 1910.02054) section 5.
"""

from rlvr_exp.memory.workload import Workload

BLOCK, STATISTICS_BLOCK = 64, 256
"""NF4: weights that share one maximum, and maxima that share one float32 in the second quantisation."""
STATE_BLOCK = 256
"""8-bit optimizer states: numbers that share one float32 maximum."""


def weights(workload: Workload) -> float:
    """The complete model in memory. Embeddings, head, norms and biases are never quantised."""
    shape, width = workload.shape, workload.width
    matrices = sum(_matrix(rows, columns, workload) for rows, columns in shape.matrices().values())
    rest = shape.embeddings + shape.hidden + shape.layers * shape.layer_vectors
    return rest * width + shape.layers * matrices


def _matrix(rows: int, columns: int, workload: Workload) -> float:
    numbers = rows * columns
    if workload.quantization == "8bit":
        return numbers + 4 * rows  # one float32 scale for each output
    if workload.quantization == "4bit":
        return numbers / 2 + numbers / BLOCK + 4 * numbers / (BLOCK * STATISTICS_BLOCK)
    return numbers * workload.width


def shard(workload: Workload) -> float:
    """The weights that a device keeps."""
    return weights(workload) / workload.processes if workload.partitions_weights else weights(workload)


def value_network(workload: Workload) -> float:
    """A second decoder: the model without a head of its own."""
    head = 0 if workload.shape.tied_embeddings else workload.shape.vocabulary * workload.shape.hidden * workload.width
    total = weights(workload) - head
    return total / workload.processes if workload.partitions_weights else total


def largest_matrix(workload: Workload) -> int:
    """Numbers of a layer's largest matrix."""
    return max(rows * columns for rows, columns in workload.shape.matrices().values())


def adapter_parameters(workload: Workload) -> int:
    """LoRA (Hu et al. 2022): two factors of each target; DoRA adds a magnitude for each output."""
    if workload.adapter is None:
        return 0
    matrices = [sides for name, sides in workload.shape.matrices().items() if name in workload.adapter.targets]
    factors = sum(workload.adapter.rank * (rows + columns) for rows, columns in matrices)
    magnitudes = sum(rows for rows, _ in matrices) if workload.adapter.dora else 0
    return workload.shape.layers * (factors + magnitudes)


def trained(workload: Workload) -> int:
    """Parameters that take a gradient."""
    if not workload.trains:
        return 0
    if workload.adapter:
        return workload.decoders * adapter_parameters(workload)
    shape = workload.shape
    head = 0 if shape.tied_embeddings else shape.vocabulary * shape.hidden
    return shape.parameters - workload.frozen + (workload.decoders - 1) * (shape.parameters - head - workload.frozen)


def trained_width(workload: Workload) -> int:
    """Bytes of a trained number: PEFT keeps adapters in float32, DeepSpeed converts them to the model's type."""
    return 4 if workload.adapter and not workload.partitions_updates else workload.width


def adapter(workload: Workload) -> float:
    share = workload.processes if workload.partitions_weights else 1
    return workload.decoders * adapter_parameters(workload) * trained_width(workload) / share


def gradients(workload: Workload) -> float:
    """Gradients at the end of a backward pass. DDP holds its buckets in addition; ZeRO keeps a device's shard."""
    total = trained(workload) * trained_width(workload)
    if workload.partitions_updates:
        return total / workload.processes
    return 2 * total if workload.strategy == "ddp" else total


def states(workload: Workload) -> float:
    """Optimizer states on the device, after the first step; under ZeRO with the float32 copy of the trained
    parameters."""
    if workload.offload or not workload.trains:
        return 0.0
    if not workload.partitions_updates:
        return _moments(workload, trained_width(workload))
    return (_moments(workload, 4) + 4 * trained(workload)) / workload.processes


def _moments(workload: Workload, width: int) -> float:
    """States in the type of the parameter, as torch's optimizers create them."""
    count = trained(workload)
    match workload.optimizer:
        case "SGD":
            return width * count if workload.momentum else 0.0
        case "Adafactor":
            return workload.decoders * _factored(workload) + (4.0 * count if workload.momentum else 0.0)
        case "AdamW8bit":
            return 2 * count * (1 + 4 / STATE_BLOCK)
        case "Muon":
            return width * (2 * count - workload.decoders * _hidden_matrices(workload))
        case _:
            return 2.0 * width * count


def update(workload: Workload) -> float:
    """What an optimizer's step allocates for itself."""
    if workload.offload:
        return 0.0
    share = workload.processes if workload.partitions_updates else 1
    partition = 4.0 * trained(workload) / share if workload.partitions_updates else 0.0  # gradients in float32
    match workload.optimizer:
        case "SGD" | "AdamW8bit":
            return partition
        case "Adafactor":
            return partition + 4 * 4.0 * largest_trained(workload)
        case "Adam" | "AdamW" if workload.cpu and not workload.partitions_updates:  # one pass over the weights
            return 0.0
        case _ if workload.cpu:  # torch updates one tensor after the other there, with two more of its size
            return partition + 2 * 4.0 * largest_trained(workload)
        case _:  # torch takes the root of all second moments at once
            width = 4 if workload.partitions_updates else trained_width(workload)
            return partition + width * trained(workload) / share


def inspected(workload: Workload) -> float:
    """The largest trained weight, its absolute value and two comparisons."""
    return largest_trained(workload) * (trained_width(workload) + 2.0)


def largest_trained(workload: Workload) -> int:
    """Numbers of the largest tensor that takes a gradient."""
    if workload.adapter:
        return workload.adapter.rank * max(workload.shape.intermediate, workload.shape.hidden)
    return max(workload.shape.vocabulary * workload.shape.hidden, largest_matrix(workload))


def _hidden_matrices(workload: Workload) -> int:
    """Numbers of the matrices that Muon updates with a single moment; all other parameters have AdamW's two."""
    return adapter_parameters(workload) if workload.adapter else workload.shape.layers * workload.shape.layer_matrices


def _factored(workload: Workload) -> float:
    """Adafactor (Shazeer and Stern 2018) keeps a float32 sum for each row and column in place of a second moment."""
    shape = workload.shape
    if workload.adapter:
        matrices = [sides for name, sides in shape.matrices().items() if name in workload.adapter.targets]
        return 4.0 * shape.layers * sum(rows + columns + 2 * workload.adapter.rank for rows, columns in matrices)
    sides = sum(rows + columns for rows, columns in shape.matrices().values()) + shape.layer_vectors
    outer = (shape.vocabulary + shape.hidden) * (1 if shape.tied_embeddings else 2) + shape.hidden
    return 4.0 * (shape.layers * sides + outer)
