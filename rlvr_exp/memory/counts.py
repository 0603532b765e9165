"""Bytes on a device, counted from the shape of a model: lasting bytes (weights, adapter, gradients, optimizer states) and
temporary bytes (the activations that a layer keeps for its gradient, the tiles of the head, the cache and the logits of the sampler).

Sources: NF4 and double quantisation, Dettmers et al. 2023 (QLoRA, arXiv 2305.14314) section 3; LLM.int8(), Dettmers et
al. 2022 (arXiv 2208.07339); partitioning, Rajbhandari et al. 2020 (ZeRO, arXiv 1910.02054) section 5.

Activations follow the operations of Transformers' Llama-family layers in this order: norm, q k v, head norms, rotation,
attention, o, norm, gate and up, SiLU, product, down. `b` is the width of a number in the model's type. On a CPU, functions of this
package that keep less compute float32 weights: rlvr_exp/algorithms/packed_layers.py and fused_head.py.
"""

from rlvr_exp.memory.workload import Workload

BLOCK, STATISTICS_BLOCK = 64, 256
"""NF4: weights that share one maximum, and maxima that share one float32 in the second quantisation."""
STATE_BLOCK = 256
"""8-bit optimizer states: numbers that share one float32 maximum."""
HELD = 2**26
"""Logits that are held at the same time (rlvr_exp/algorithms/logprobs.py)."""
KEPT_HELD = 2**24
"""The same if only some tokens were kept."""
SCORED_KEPT, LEARNED_KEPT = 18, 34
"""Bytes of a logit in float32 arithmetic beside its own type, without and with gradients, if only some tokens were kept: its
float32 value, the masked value, the log-probability, two booleans, and the entropy's two tensors; the gradients of four of them."""
PREFILL = 2048
"""Prompt tokens of one pass of the sampler (rlvr_exp/rollouts/shared_prefix_decoder.py)."""
TILE_TOKENS, TILE_VOCABULARY = 4096, 32768
"""One tile of TRL's fused head (trl/kernels/chunked_logprob.py and trl/trainer/utils.py)."""
FUSED_HELD, FUSED_NEAR = 2**28, 2**24
"""Logits that the head on a CPU holds at the same time, with and without gradients (rlvr_exp/algorithms/logprobs.py)."""
FOLDED, UNFOLDED = 3, 7.25
"""float32 tensors of a tile's size that TRL holds beside it without Triton: in `_forward_tile` and in `_backward_tile` of the
same file. A quarter is a tensor of booleans."""
DRAWN = 12
"""Bytes of a logit while a token is drawn: logits, log-probabilities, probabilities (rlvr_exp/rollouts/sampling_params.py)."""

READERS = (("q_proj", "k_proj", "v_proj"), ("o_proj",), ("gate_proj", "up_proj"), ("down_proj",))
"""Matrices that read the same input."""


def weights(workload: Workload) -> float:
    """The complete model in memory. Embeddings, head, norms and biases are never quantised."""
    shape, width = workload.shape, workload.width
    matrices = 0.0
    for rows, columns in shape.matrices().values():
        numbers = rows * columns
        if workload.quantization == "8bit":
            matrices += numbers + 4 * rows  # one float32 scale for each output
        elif workload.quantization == "4bit":
            matrices += numbers / 2 + numbers / BLOCK + 4 * numbers / (BLOCK * STATISTICS_BLOCK)
        else:
            matrices += numbers * width
    rest = shape.embeddings + shape.hidden + shape.layers * shape.layer_vectors
    return rest * width + shape.layers * matrices


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
    """Optimizer states after the first step; under ZeRO with the float32 copy of the trained parameters."""
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
            # One moment for the matrices of the layers; the other parameters have AdamW's two.
            layers = workload.shape.layers * workload.shape.layer_matrices
            hidden = adapter_parameters(workload) if workload.adapter else layers
            return width * (2 * count - workload.decoders * hidden)
        case _:
            return 2.0 * width * count


def update(workload: Workload) -> float:
    """Temporary bytes of an optimizer's step."""
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


def largest_trained(workload: Workload) -> int:
    """Numbers of the largest tensor that takes a gradient."""
    if workload.adapter:
        return workload.adapter.rank * max(workload.shape.intermediate, workload.shape.hidden)
    return max(workload.shape.vocabulary * workload.shape.hidden, largest_matrix(workload))


def _factored(workload: Workload) -> float:
    """Adafactor (Shazeer and Stern 2018) keeps a float32 sum per row and column in place of a second moment."""
    shape = workload.shape
    if workload.adapter:
        matrices = [sides for name, sides in shape.matrices().items() if name in workload.adapter.targets]
        return 4.0 * shape.layers * sum(rows + columns + 2 * workload.adapter.rank for rows, columns in matrices)
    sides = sum(rows + columns for rows, columns in shape.matrices().values()) + shape.layer_vectors
    outer = (shape.vocabulary + shape.hidden) * (1 if shape.tied_embeddings else 2) + shape.hidden
    return 4.0 * (shape.layers * sides + outer)


def own_head(workload: Workload) -> bool:
    """Whether fused_head.py computes the head: float32 weights on a CPU that are not sharded."""
    return workload.cpu and workload.width == 4 and not workload.partitions_weights and not workload.stock


def own_attention(workload: Workload) -> bool:
    """Whether the kernel for CPUs attends to packed rows (rlvr_exp/algorithms/packing_attention.py)."""
    return workload.cpu and workload.width == 4 and not workload.stock


def own_layers(workload: Workload) -> bool:
    """Whether packed_layers.py computes the layers; it does not support adapters."""
    return own_head(workload) and workload.adapter is None


def layer(workload: Workload) -> float:
    """Bytes that one layer saves for its backward pass, per token."""
    shape, b = workload.shape, workload.width
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    if own_layers(workload):
        normed = queries + keys + shape.heads + shape.kv_heads if shape.qk_norm else 0
        # Inputs of both norms with their scales; queries, keys and values; attention's output and log-sums; gate and up.
        return b * (2 * (shape.hidden + 1) + 2 * (queries + keys) + shape.heads + normed + 2 * shape.intermediate)
    all_trained = workload.adapter is None
    norms = 2 * _norm(shape.hidden, b, all_trained)
    if shape.qk_norm:
        norms += _norm(queries, b, all_trained) + _norm(keys, b, all_trained)
    # q, k and v (repeated by the library), outputs, log-sum-exp
    attention = 2 * b * (queries + (keys if own_attention(workload) else queries)) + 4 * shape.heads
    mlp = 3 * b * shape.intermediate  # gate, its SiLU, up
    return norms + attention + mlp + _inputs(workload)


def _norm(size: int, b: int, trained: bool) -> float:
    """RMSNorm: the float32 input and its scale; the normalised value only if the norm's weight is trained."""
    return 4 * size + 4 + (b * size if trained else 0)


def _inputs(workload: Workload) -> float:
    """Inputs of matrices, kept if the matrix or its adapter has a gradient."""
    shape, b = workload.shape, workload.width
    every = b * (2 * shape.hidden + shape.heads * shape.head_dim + shape.intermediate)
    if workload.adapter is None:
        return every
    matrices, rank = shape.matrices(), workload.adapter.rank
    targets = [name for name in matrices if name in workload.adapter.targets]
    if own_head(workload):  # oneDNN's layers keep their input whether or not their weight has a gradient.
        return every + b * rank * len(targets)
    if precise(workload):  # Under autocast a 16-bit copy of the input is kept, one for each matrix.
        return sum(b * (matrices[name][1] + rank) for name in targets)
    # Matrices that read the same input share its copy.
    firsts = {next((name for name in names if name in targets), "") for names in READERS}
    return sum(b * ((matrices[name][1] if name in firsts else 0) + rank) for name in targets)


def precise(workload: Workload) -> bool:
    """Whether a float32 adapter, as PEFT creates it, is over a 16-bit base; DeepSpeed converts it to the base's type."""
    return workload.adapter is not None and workload.width == 2 and not workload.partitions_updates


def mask(workload: Workload) -> float:
    """Additive masks of a pass, one for each group: its segments attend to the prompt and to themselves."""
    if own_attention(workload):  # All segments of one length share the mask of one.
        return max(
            workload.width * workload.completion * (prompt - 1 + workload.completion) for prompt, _ in workload.groups
        )
    segments = [(prompt, count * workload.completion) for prompt, count in workload.groups]
    return workload.width * sum(segment * (prompt - 1 + segment) for prompt, segment in segments)


def saved(workload: Workload) -> float:
    """Bytes kept between forward and backward: all activations of every layer, or with checkpointing its input."""
    shape, tokens = workload.shape, workload.tokens
    each = workload.width * shape.hidden if workload.checkpointing else layer(workload)
    last = _norm(shape.hidden, workload.width, workload.adapter is None)
    return tokens * workload.decoders * (shape.layers * each + last) + mask(workload)


def one_layer(workload: Workload) -> float:
    """The backward pass of a layer: its saved activations and the gradients at its MLP."""
    return workload.tokens * layer(workload) + flowing(workload) + mask(workload)


def flowing(workload: Workload) -> float:
    """Gradients at a layer's MLP. Those of a float32 adapter's input are in float32 too."""
    shape, b = workload.shape, workload.width
    if own_layers(workload):
        return workload.tokens * b * (3 * shape.hidden + 3 * shape.intermediate)
    of_adapter = 4 * shape.intermediate if precise(workload) else 0
    return workload.tokens * (b * (2 * shape.hidden + shape.intermediate) + of_adapter)


def forward(workload: Workload) -> float:
    """A pass without gradients: the residual stream and the largest temporaries of a layer."""
    return workload.tokens * widest(workload, mixed=True) + mask(workload)


def widest(workload: Workload, mixed: bool) -> float:
    """Per token, without gradients: embeddings, residual stream, normalised input, and the MLP's temporaries.

    Args:
        mixed: under autocast; without it an adapter's product and its sum with the base's are in float32.
    """
    shape, b = workload.shape, workload.width
    stream = 4 * b * shape.hidden
    if workload.adapter is None:
        return stream + 3 * b * shape.intermediate
    if not precise(workload):
        return stream + 4 * b * shape.intermediate
    return stream + 4 * shape.hidden + (2 * b + 2 * (b if mixed else 4)) * shape.intermediate


def held(workload: Workload) -> bool:
    """Whether a pass holds all its logits at once (rlvr_exp.algorithms.logprobs)."""
    return workload.scored * workload.shape.vocabulary <= HELD


def tile(workload: Workload) -> float:
    """Logits of a pass without gradients: all, in float32 and as log-probabilities; or a tile and its inputs."""
    if own_head(workload):
        return 4 * min(workload.scored * workload.shape.vocabulary, FUSED_NEAR)
    if workload.filtered:
        return _kept(workload, SCORED_KEPT)
    if held(workload):
        return workload.scored * workload.shape.vocabulary * (workload.width + 4 + 4)
    return _tile(workload, FOLDED) + _headed(workload) * workload.shape.hidden * workload.width


def head(workload: Workload) -> float:
    """The head's backward pass: gradients of logits or a tile, float32 gradients of hidden states and of a trained weight."""
    shape, b = workload.shape, workload.width
    if own_head(workload):
        logits = workload.scored * shape.vocabulary
        weight = shape.vocabulary * shape.hidden * (2 if logits > FUSED_HELD else 1) if workload.adapter is None else 0
        return 4 * (min(logits, FUSED_HELD) + 2 * workload.scored * shape.hidden + weight)
    if workload.filtered:
        weight = (4 + b) * shape.vocabulary * shape.hidden if workload.adapter is None else 0
        return _kept(workload, LEARNED_KEPT) + weight
    if held(workload):
        weight = b * shape.vocabulary * shape.hidden if workload.adapter is None else 0
        return tile(workload) + workload.scored * shape.vocabulary * 4 + weight
    copied = 0 if workload.cpu and b == 4 else b  # It is in its own type already.
    weight = (4 + copied) * shape.vocabulary * shape.hidden if workload.adapter is None else 0
    inputs = _headed(workload) * shape.hidden * (4 + 2 * b)
    return _tile(workload, UNFOLDED) + inputs + weight


def _kept(workload: Workload, beside: int) -> float:
    """Logits over the kept tokens: all of a pass, or of a few tokens at a time."""
    logits = workload.scored * workload.shape.vocabulary
    return (logits if held(workload) else KEPT_HELD) * (workload.width + beside)


def _tile(workload: Workload, beside: float) -> float:
    """A tile of logits. A GPU computes in place; a CPU holds `beside` float32 tensors of its size in addition."""
    columns = min(TILE_VOCABULARY, workload.shape.vocabulary)
    rows = min(TILE_TOKENS, _headed(workload))
    return rows * columns * (workload.width + (4 * beside if workload.cpu else 0))


def _headed(workload: Workload) -> int:
    """Positions whose logits the fused head computes: without Triton also those of prompts."""
    return workload.tokens if workload.cpu else workload.scored


def cache(workload: Workload) -> float:
    """Keys and values of all layers: each prompt once, then G columns per step."""
    shape = workload.shape
    token = 2 * shape.layers * shape.kv_heads * shape.head_dim * workload.width
    return workload.sampling_batch.tokens * token


def decode(workload: Workload) -> float:
    """The larger of a prefill pass and of extending a layer's keys, which are in memory twice meanwhile."""
    sampling_batch = workload.sampling_batch
    grown = cache(workload) / (2 * workload.shape.layers)
    tokens = max(sampling_batch.prompt, min(PREFILL, sampling_batch.groups * sampling_batch.prompt))
    return max(tokens * widest(workload, mixed=False), grown)


def sampling_logits(workload: Workload) -> float:
    """Logits, in float32, and the log-probabilities and probabilities from which a token is drawn."""
    rows = workload.sampling_batch.groups * workload.sampling_batch.size * workload.shape.vocabulary
    if workload.cpu:
        return rows * (DRAWN - 4 + workload.width)
    extra = 4 if workload.width == 2 else 0
    return rows * (workload.width + extra + 4 + 4)


def packed(workload: Workload) -> float:
    """The packed copy of all matrices and the head that a CPU samples with (rlvr_exp/rollouts/plain_forward.py). While it is
    made, its products with the norms take as much. Both are many small blocks, and the allocator keeps about half of them for
    the other phases. Weights of 16 bits are not copied."""
    if not workload.cpu or workload.width != 4:
        return 0.0
    shape = workload.shape
    return 4.0 * (shape.layers * shape.layer_matrices + shape.vocabulary * shape.hidden)
