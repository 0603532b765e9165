"""Temporary bytes: what a layer keeps for its gradient, the head's tiles, the sampler's cache and logits.

Counted from the operations of Transformers' Llama-family layers in this order: norm, q k v, head norms, rotation,
attention, o, norm, gate and up, SiLU, product, down. `b` is the width of a number in the model's type. On a CPU float32
weights are computed by functions of this package that keep less: rlvr_exp/algorithms/packed_layers.py and fused_head.py.
"""

from rlvr_exp.memory.workload import Workload

HELD = 2**26
"""Logits that are held at the same time (rlvr_exp/algorithms/logprobs.py)."""
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
GUESSED = 2
"""Tokens of a completion beside the drawn one whose logits a pass has, on average (rlvr_exp/rollouts/drafts.py)."""

READERS = (("q_proj", "k_proj", "v_proj"), ("o_proj",), ("gate_proj", "up_proj"), ("down_proj",))
"""Matrices that read the same input."""


def own_head(workload: Workload) -> bool:
    """Whether the head is the fused one of algorithms.logprobs: of float32 weights on a CPU that are not sharded."""
    return workload.cpu and workload.width == 4 and not workload.partitions_weights and not workload.stock


def own_attention(workload: Workload) -> bool:
    """Whether a packed row is attended to by the kernel for CPUs (rlvr_exp/algorithms/packing.py)."""
    return workload.cpu and workload.width == 4 and not workload.stock


def own_layers(workload: Workload) -> bool:
    """Whether the layers are those of packed_layers.py, which know no adapters."""
    return own_head(workload) and workload.adapter is None


def layer(workload: Workload) -> float:
    """Saved by one layer for its backward pass, per token."""
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
    """RMSNorm: the float32 input and its scale; the normalised value only where the norm's weight is trained."""
    return 4 * size + 4 + (b * size if trained else 0)


def _inputs(workload: Workload) -> float:
    """Inputs of matrices, kept where the matrix or its adapter has a gradient."""
    shape, b = workload.shape, workload.width
    every = b * (2 * shape.hidden + shape.heads * shape.head_dim + shape.intermediate)
    if workload.adapter is None:
        return every
    targets = [name for name in shape.matrices() if name in workload.adapter.targets]
    if own_head(workload):  # oneDNN's layers keep their input whether or not their weight has a gradient.
        return every + b * workload.adapter.rank * len(targets)
    if precise(workload):
        # Under autocast a 16-bit copy of the input is kept, one for each matrix.
        return sum(b * (shape.matrices()[name][1] + workload.adapter.rank) for name in targets)
    return sum(b * (_shared(name, targets, workload) + workload.adapter.rank) for name in targets)


def precise(workload: Workload) -> bool:
    """Whether an adapter is in float32 over a base in 16 bits, as PEFT creates it; DeepSpeed converts it to the base's
    type."""
    return workload.adapter is not None and workload.width == 2 and not workload.partitions_updates


def _shared(name: str, targets: list[str], workload: Workload) -> int:
    """Columns of a matrix's input, counted once where several matrices read the same input."""
    readers = next(names for names in READERS if name in names)
    first = next(reader for reader in readers if reader in targets)
    return workload.shape.matrices()[name][1] if name == first else 0


def mask(workload: Workload) -> float:
    """Additive masks of a pass, one for each group: its segments attend to the prompt and to themselves."""
    if own_attention(workload):  # All segments of one length share the mask of one.
        return max(
            workload.width * workload.completion * (prompt - 1 + workload.completion) for prompt, _ in workload.groups
        )
    segments = [(prompt, count * workload.completion) for prompt, count in workload.groups]
    return workload.width * sum(segment * (prompt - 1 + segment) for prompt, segment in segments)


def saved(workload: Workload) -> float:
    """Everything kept between forward and backward: all activations of every layer, or with checkpointing its input
    only."""
    shape, tokens = workload.shape, workload.tokens
    each = workload.width * shape.hidden if workload.checkpointing else layer(workload)
    last = _norm(shape.hidden, workload.width, workload.adapter is None)
    return tokens * workload.decoders * (shape.layers * each + last) + mask(workload)


def one_layer(workload: Workload) -> float:
    """The backward pass of a layer: its saved activations, and the gradients that flow through its MLP."""
    return workload.tokens * layer(workload) + flowing(workload) + mask(workload)


def flowing(workload: Workload) -> float:
    """Gradients that flow through a layer, at its MLP. Those of a float32 adapter's input are in float32 too."""
    shape, b = workload.shape, workload.width
    if own_layers(workload):
        return workload.tokens * b * (3 * shape.hidden + 3 * shape.intermediate)
    return workload.tokens * (
        b * (2 * shape.hidden + shape.intermediate) + (4 * shape.intermediate if precise(workload) else 0)
    )


def forward(workload: Workload) -> float:
    """A pass without gradients: the residual stream and the largest temporaries of a layer."""
    return workload.tokens * widest(workload, mixed=True) + mask(workload)


def widest(workload: Workload, mixed: bool) -> float:
    """Per token, without gradients: embeddings, residual stream, normalised input, and the MLP's temporaries.

    Args:
        mixed: under autocast; without it an adapter's own product is in float32, and so is its sum with the base's.
    """
    shape, b = workload.shape, workload.width
    stream = 4 * b * shape.hidden
    if workload.adapter is None:
        return stream + 3 * b * shape.intermediate
    if not precise(workload):
        return stream + 4 * b * shape.intermediate
    return stream + 4 * shape.hidden + (2 * b + 2 * (b if mixed else 4)) * shape.intermediate


def held(workload: Workload) -> bool:
    """Whether all logits of a pass are held at once (rlvr_exp.algorithms.logprobs)."""
    return workload.scored * workload.shape.vocabulary <= HELD


def tile(workload: Workload) -> float:
    """Logits of a pass without gradients: all of them, in float32 and as log-probabilities; or a tile, and its
    inputs."""
    if own_head(workload):
        return 4 * min(workload.scored * workload.shape.vocabulary, FUSED_NEAR)
    if held(workload):
        return workload.scored * workload.shape.vocabulary * (workload.width + 4 + 4)
    return _tile(workload, FOLDED) + _headed(workload) * workload.shape.hidden * workload.width


def head(workload: Workload) -> float:
    """The head's backward pass: gradients of logits or a tile, float32 gradients of hidden states, and of its weight
    where it is trained."""
    shape, b = workload.shape, workload.width
    if own_head(workload):
        logits = workload.scored * shape.vocabulary
        weight = shape.vocabulary * shape.hidden * (2 if logits > FUSED_HELD else 1) if workload.adapter is None else 0
        return 4 * (min(logits, FUSED_HELD) + 2 * workload.scored * shape.hidden + weight)
    if held(workload):
        weight = b * shape.vocabulary * shape.hidden if workload.adapter is None else 0
        return tile(workload) + workload.scored * shape.vocabulary * 4 + weight
    copied = 0 if workload.cpu and b == 4 else b  # It is in its own type already.
    weight = (4 + copied) * shape.vocabulary * shape.hidden if workload.adapter is None else 0
    inputs = _headed(workload) * shape.hidden * (4 + 2 * b)
    return _tile(workload, UNFOLDED) + inputs + weight


def _tile(workload: Workload, beside: float) -> float:
    """A tile of logits. A GPU computes in place; a CPU holds so many float32 tensors beside it."""
    columns = min(TILE_VOCABULARY, workload.shape.vocabulary)
    rows = min(TILE_TOKENS, _headed(workload))
    return rows * columns * (workload.width + (4 * beside if workload.cpu else 0))


def _headed(workload: Workload) -> int:
    """Positions whose logits the fused head computes: without Triton those of prompts, too."""
    return workload.tokens if workload.cpu else workload.scored


def cache_token(workload: Workload) -> int:
    """Keys and values of one token in all layers."""
    shape = workload.shape
    return 2 * shape.layers * shape.kv_heads * shape.head_dim * workload.width


def cache(workload: Workload) -> float:
    """Each prompt once, then G columns per step."""
    return workload.sampling_batch.tokens * cache_token(workload)


def decode(workload: Workload) -> float:
    """The larger of a prefill pass, and of extending a layer's keys, which are in memory twice meanwhile."""
    sampling_batch = workload.sampling_batch
    grown = cache(workload) / (2 * workload.shape.layers)
    tokens = max(sampling_batch.prompt, min(PREFILL, sampling_batch.groups * sampling_batch.prompt))
    return max(tokens * widest(workload, mixed=False), grown)


def sampling_logits(workload: Workload) -> float:
    """Logits, in float32, and the log-probabilities and probabilities from which a token is drawn."""
    rows = workload.sampling_batch.groups * workload.sampling_batch.size * workload.shape.vocabulary
    if workload.cpu:
        return rows * (1 + GUESSED) * (DRAWN - 4 + workload.width)
    extra = 4 if workload.width == 2 else 0
    return rows * (workload.width + extra + 4 + 4)


def packed(workload: Workload) -> float:
    """The copy of all matrices and the head with which a CPU samples (rlvr_exp/rollouts/plain_forward.py). While it is made, the
    products with the norms from which it is packed take as much; both are many small blocks, and the allocator keeps about half of
    them for the other phases. Weights of 16 bits are not copied."""
    if not workload.cpu or workload.width != 4:
        return 0.0
    shape = workload.shape
    return 4.0 * (shape.layers * shape.layer_matrices + shape.vocabulary * shape.hidden)
