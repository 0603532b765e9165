"""Bytes that come and go: what a layer keeps for its gradient, the head's tiles, the sampler's cache and logits.

Counted from the operations of Transformers' Llama-family layers in this order: norm, q k v, head norms, rotation,
attention, o, norm, gate and up, SiLU, product, down. `b` is the width of a number in the model's type.
"""

from rlvr_exp.run.memory.layout import Layout

TILE_TOKENS, TILE_VOCABULARY = 4096, 32768
"""One tile of TRL's fused head (trl/kernels/chunked_logprob.py and trl/trainer/utils.py)."""


def layer(layout: Layout) -> float:
    """Saved by one layer for its backward pass, per token."""
    shape, b = layout.shape, layout.width
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    whole = layout.adapter is None
    norms = 2 * _norm(shape.hidden, b, whole)
    if shape.qk_norm:
        norms += _norm(queries, b, whole) + _norm(keys, b, whole)
    attention = 4 * b * queries + 4 * shape.heads  # q, repeated k and v, output, log-sum-exp
    mlp = 3 * b * shape.intermediate  # gate, its SiLU, up
    return norms + attention + mlp + _inputs(layout)


def _norm(size: int, b: int, trained: bool) -> float:
    """RMSNorm: the float32 input and its scale; the normalised value only where the norm's weight is trained."""
    return 4 * size + 4 + (b * size if trained else 0)


def _inputs(layout: Layout) -> float:
    """Inputs of matrices, kept where the matrix or its adapter takes a gradient. o's input is attention's output."""
    shape, b = layout.shape, layout.width
    if layout.adapter is None:
        return b * (2 * shape.hidden + shape.intermediate)
    targets = [name for name in shape.matrices() if name in layout.adapter.targets]
    if b == 2 and not layout.partitions_updates:
        # A float32 adapter under autocast keeps a 16-bit copy of its input, one for each matrix.
        return sum(b * (shape.matrices()[name][1] + layout.adapter.rank) for name in targets)
    return sum(b * (_shared(name, targets, layout) + layout.adapter.rank) for name in targets)


def _shared(name: str, targets: list[str], layout: Layout) -> int:
    """Columns of a matrix's input, counted once where several matrices read it, and not where it is kept anyway."""
    groups = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"), ("down_proj",))
    for members in groups:
        if name in members:
            first = next(member for member in members if member in targets)
            return layout.shape.matrices()[name][1] if name == first else 0
    return 0


def mask(layout: Layout) -> float:
    """The packed rows' additive mask."""
    return layout.micro_groups * layout.row**2 * layout.width


def saved(layout: Layout) -> float:
    """Everything kept between forward and backward: of every layer all, or with checkpointing its input alone."""
    shape, tokens = layout.shape, layout.tokens
    each = layout.width * shape.hidden if layout.checkpointing else layer(layout)
    last = _norm(shape.hidden, layout.width, layout.adapter is None)
    return tokens * (shape.layers * each + last) + mask(layout)


def one_layer(layout: Layout) -> float:
    """The backward pass of one layer: what it saved, and the gradients that flow through its MLP."""
    shape, b = layout.shape, layout.width
    flowing = b * (2 * shape.hidden + shape.intermediate)
    return layout.tokens * (layer(layout) + flowing) + mask(layout)


def forward(layout: Layout) -> float:
    """A pass without gradients: the residual stream and the widest moment of one layer."""
    shape, b = layout.shape, layout.width
    return layout.tokens * (b * 2 * shape.hidden + 3 * b * shape.intermediate) + mask(layout)


def tile(layout: Layout) -> float:
    """The head's projection of some tokens on some of the vocabulary, and the hidden states at scored positions."""
    columns = min(TILE_VOCABULARY, layout.shape.vocabulary)
    return min(TILE_TOKENS, layout.scored) * columns * layout.width + layout.scored * layout.shape.hidden * layout.width


def head(layout: Layout) -> float:
    """The head's backward pass: a tile, float32 gradients of hidden states, and of its weight where it is trained."""
    shape = layout.shape
    weight = (4 + layout.width) * shape.vocabulary * shape.hidden if layout.adapter is None else 0
    return tile(layout) + layout.scored * shape.hidden * (4 + layout.width) + weight


def cache_token(layout: Layout) -> int:
    """Keys and values of one token in all layers."""
    shape = layout.shape
    return 2 * shape.layers * shape.kv_heads * shape.head_dim * layout.width


def cache(layout: Layout) -> float:
    """Each prompt once, then G columns a step."""
    return layout.sampled_groups * (layout.prompt + layout.group * layout.completion) * cache_token(layout)


def decode(layout: Layout) -> float:
    """The larger of prefill, which runs the widest layer over the prompts, and a step over the full cache."""
    shape, b = layout.shape, layout.width
    rows, columns = layout.sampled_groups, layout.prompt + layout.group * layout.completion
    prefill = rows * layout.prompt * b * (2 * shape.hidden + 3 * shape.intermediate)
    # Keys and values of one layer, repeated to every query head.
    step = rows * columns * b * (2 * shape.heads * shape.head_dim + layout.group)
    return max(prefill, step)


def sampling_logits(layout: Layout) -> float:
    """Logits, scaled float32 log-probabilities and the float64 cumulative sum from which a token is drawn."""
    return layout.sampled_groups * layout.group * layout.shape.vocabulary * (layout.width + 4 + 4 + 8 + 8)
