"""Bytes of what stays on a device: weights, adapter, gradients, optimizer states. One small function each.

Sources: NF4 and double quantisation, Dettmers et al. 2023 (QLoRA, arXiv 2305.14314) section 3; LLM.int8(), Dettmers et
al. 2022 (arXiv 2208.07339); partitioning, Rajbhandari et al. 2020 (ZeRO, arXiv 1910.02054) section 5.
"""

from rlvr_exp.run.memory.workload import Layout

BLOCK, STATISTICS_BLOCK = 64, 256
"""NF4: weights that share one maximum, and maxima that share one float32 in the second quantisation."""
STATE_BLOCK = 256
"""8-bit optimizer states: numbers that share one float32 maximum."""


def weights(layout: Layout) -> float:
    """The model as it lies in memory, whole. Embeddings, head, norms and biases are never quantised."""
    shape, width = layout.shape, layout.width
    matrices = sum(_matrix(rows, columns, layout) for rows, columns in shape.matrices().values())
    rest = shape.embeddings + shape.hidden + shape.layers * shape.layer_vectors
    return rest * width + shape.layers * matrices


def _matrix(rows: int, columns: int, layout: Layout) -> float:
    numbers = rows * columns
    if layout.quantization == "8bit":
        return numbers + 4 * rows  # one float32 scale for each output
    if layout.quantization == "4bit":
        return numbers / 2 + numbers / BLOCK + 4 * numbers / (BLOCK * STATISTICS_BLOCK)
    return numbers * layout.width


def shard(layout: Layout) -> float:
    """The weights that a device keeps."""
    return weights(layout) / layout.processes if layout.partitions_weights else weights(layout)


def value_network(layout: Layout) -> float:
    """A second decoder: the model without a head of its own."""
    head = 0 if layout.shape.tied_embeddings else layout.shape.vocabulary * layout.shape.hidden * layout.width
    whole = weights(layout) - head
    return whole / layout.processes if layout.partitions_weights else whole


def largest_matrix(layout: Layout) -> int:
    """Numbers of a layer's largest matrix."""
    return max(rows * columns for rows, columns in layout.shape.matrices().values())


def adapter_parameters(layout: Layout) -> int:
    """LoRA (Hu et al. 2022): two factors of each target; DoRA adds a magnitude for each output."""
    if layout.adapter is None:
        return 0
    matrices = [sides for name, sides in layout.shape.matrices().items() if name in layout.adapter.targets]
    factors = sum(layout.adapter.rank * (rows + columns) for rows, columns in matrices)
    magnitudes = sum(rows for rows, _ in matrices) if layout.adapter.dora else 0
    return layout.shape.layers * (factors + magnitudes)


def trained(layout: Layout) -> int:
    """Parameters that take a gradient."""
    if not layout.trains:
        return 0
    if layout.adapter:
        return layout.decoders * adapter_parameters(layout)
    shape = layout.shape
    head = 0 if shape.tied_embeddings else shape.vocabulary * shape.hidden
    return shape.parameters - layout.frozen + (layout.decoders - 1) * (shape.parameters - head - layout.frozen)


def trained_width(layout: Layout) -> int:
    """Bytes of one trained number: PEFT keeps adapters in float32, DeepSpeed turns them to the model's type."""
    return 4 if layout.adapter and not layout.partitions_updates else layout.width


def adapter(layout: Layout) -> float:
    share = layout.processes if layout.partitions_weights else 1
    return layout.decoders * adapter_parameters(layout) * trained_width(layout) / share


def gradients(layout: Layout) -> float:
    """At the end of a backward pass. DDP holds its buckets beside them; ZeRO keeps a device's share."""
    whole = trained(layout) * trained_width(layout)
    if layout.partitions_updates:
        return whole / layout.processes
    return 2 * whole if layout.strategy == "ddp" else whole


def states(layout: Layout) -> float:
    """Optimizer states on the device, after the first step; under ZeRO with the float32 copy of what is trained."""
    if layout.offload or not layout.trains:
        return 0.0
    if not layout.partitions_updates:
        return _moments(layout, trained_width(layout))
    return (_moments(layout, 4) + 4 * trained(layout)) / layout.processes


def _moments(layout: Layout, width: int) -> float:
    """States in the type of the parameter, as torch's optimizers make them."""
    count = trained(layout)
    match layout.optimizer:
        case "SGD":
            return width * count if layout.momentum else 0.0
        case "Adafactor":
            return layout.decoders * _factored(layout) + (4.0 * count if layout.momentum else 0.0)
        case "AdamW8bit":
            return 2 * count * (1 + 4 / STATE_BLOCK)
        case "Muon":
            return width * (2 * count - layout.decoders * _hidden_matrices(layout))
        case _:
            return 2.0 * width * count


def update(layout: Layout) -> float:
    """What an optimizer's step allocates for itself."""
    if layout.offload:
        return 0.0
    share = layout.processes if layout.partitions_updates else 1
    partition = 4.0 * trained(layout) / share if layout.partitions_updates else 0.0  # gradients in float32
    match layout.optimizer:
        case "SGD" | "AdamW8bit":
            return partition
        case "Adafactor":
            return partition + 4 * 4.0 * largest_trained(layout)
        case _:  # torch takes the root of all second moments at once
            width = 4 if layout.partitions_updates else trained_width(layout)
            return partition + width * trained(layout) / share


def inspected(layout: Layout) -> float:
    """The largest trained weight, its absolute value and two comparisons."""
    return largest_trained(layout) * (trained_width(layout) + 2.0)


def largest_trained(layout: Layout) -> int:
    """Numbers of the largest tensor that takes a gradient."""
    if layout.adapter:
        return layout.adapter.rank * max(layout.shape.intermediate, layout.shape.hidden)
    return max(layout.shape.vocabulary * layout.shape.hidden, largest_matrix(layout))


def _hidden_matrices(layout: Layout) -> int:
    """Numbers of the matrices that Muon moves by one moment; everything else has AdamW's two."""
    return adapter_parameters(layout) if layout.adapter else layout.shape.layers * layout.shape.layer_matrices


def _factored(layout: Layout) -> float:
    """Adafactor (Shazeer and Stern 2018) keeps a float32 sum for each row and column in place of a second moment."""
    shape = layout.shape
    if layout.adapter:
        matrices = [sides for name, sides in shape.matrices().items() if name in layout.adapter.targets]
        return 4.0 * shape.layers * sum(rows + columns + 2 * layout.adapter.rank for rows, columns in matrices)
    sides = sum(rows + columns for rows, columns in shape.matrices().values()) + shape.layer_vectors
    outer = (shape.vocabulary + shape.hidden) * (1 if shape.tied_embeddings else 2) + shape.hidden
    return 4.0 * (shape.layers * sides + outer)
