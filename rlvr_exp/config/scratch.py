"""Options of the node `model.scratch`: the architecture and the tokenizer of a model that is built with random weights.

What is left open is as in the embedded model. Each kind of positions is a class of Transformers, so that every checkpoint
loads with `AutoModelForCausalLM.from_pretrained`; what a class cannot do is refused here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rlvr_exp.config.architecture import Architecture
from rlvr_exp.config.options import option
from rlvr_exp.core.errors import InputProblem

GPT2, BLOOM, SMOLLM3 = "gpt2", "bloom", "smollm3"
CLASSES = {"learned": GPT2, "alibi": BLOOM, "none": SMOLLM3}
"""The class of each kind of positions but rotary ones, which come in families."""
SQUARE = (GPT2, BLOOM)
"""Classes with as many key and value heads as heads, which share the width between them."""
LEARNED = ("bpe", "grid")
"""Tokenizers that learn merges, up to a vocabulary."""
VOCABULARY = 1024
"""Tokens of the embedded tokenizers, and of those that learn merges where nothing else is said."""
LEAST = 258
"""The bytes, and the tokens that pad and that end."""


@dataclass(frozen=True)
class Scratch:
    """Under from_scratch: what is built; 0 and "" mean as in the embedded model."""

    family: str = option("", choices=("", "qwen3", "llama"))
    """Of rotary positions: qwen3 normalises queries and keys in each head, llama does not."""
    positions: str = option("", choices=("", "rotary", *CLASSES))
    """How a token knows its place: rotary (by the family), learned (GPT-2), alibi (Bloom), none (SmolLM3 without rotary
    layers)."""
    layers: int = option(0, low=0)
    """Decoder layers."""
    hidden: int = option(0, low=0)
    """Width of the residual stream."""
    heads: int = option(0, low=0)
    """Query heads of a layer."""
    kv_heads: int = option(0, low=0)
    """Key and value heads of a layer; as many as heads in GPT-2 and Bloom."""
    head_dim: int = option(0, low=0)
    """Width of a head; in GPT-2 and Bloom the hidden width over the heads."""
    intermediate: int = option(0, low=0)
    """Width of the MLP; in Bloom four times the hidden width."""
    context: int = option(0, low=0)
    """Tokens that the model takes at most; learned positions have a vector for each."""
    window: int = option(0, low=0)
    """Tokens that every layer reaches back, itself included (qwen3); 0: all."""
    embeddings: str = option("", choices=("", "tied", "untied"))
    """Whether the head is the embedding."""
    tokenizer: str = option("", choices=("", "characters", "bytes", *LEARNED))
    """Made from the train split at the start of a run: a token a character (a byte where the split lacks it), a token a byte,
    byte-level BPE as GPT-2's, or BPE that keeps each grid cell a token; empty: the embedded model's."""
    vocabulary: int = option(0, low=0)
    """Tokens of bpe and grid; 0: 1024."""

    @property
    def vocabulary_size(self) -> int:
        return self.vocabulary or VOCABULARY

    def problems(self) -> list[InputProblem]:
        return list(self._of_tokenizer())

    def _of_tokenizer(self) -> Iterator[InputProblem]:
        if self.vocabulary and self.tokenizer not in LEARNED:
            what, remedy = "no merges are learnt, so that the vocabulary is given", "model.scratch.tokenizer=bpe"
            yield InputProblem(
                "vocabulary", what, str(self.vocabulary), f"0 without {' or '.join(LEARNED)}", "", remedy
            )
        elif 0 < self.vocabulary < LEAST:
            what = "every byte needs a token, so does padding, and the end"
            yield InputProblem("vocabulary", what, str(self.vocabulary), f"at least {LEAST}")


@dataclass(frozen=True)
class Shape:
    """All numbers of a model that is built."""

    kind: str
    """Transformers' `model_type`."""
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    context: int
    window: int
    tied: bool

    def architecture(self, vocabulary: int) -> Architecture:
        """For the memory table, which knows the Llama family; unknown for the others."""
        if self.kind in SQUARE:
            return Architecture()
        numbers = {
            name: getattr(self, name) for name in ("layers", "hidden", "heads", "kv_heads", "head_dim", "intermediate")
        }
        return Architecture(**numbers, vocabulary=vocabulary, tied_embeddings=self.tied, qk_norm=self.kind == "qwen3")


def scratch_shape(options: Scratch, embedded: Mapping[str, Any]) -> Shape:
    """`embedded`: the values of the embedded model's config.json."""
    kind = CLASSES.get(options.positions) or options.family or str(embedded["model_type"])
    hidden, heads = options.hidden or embedded["hidden_size"], options.heads or embedded["num_attention_heads"]
    square = kind in SQUARE
    intermediate = 4 * hidden if kind == BLOOM else embedded["intermediate_size"]
    return Shape(
        kind=kind,
        layers=options.layers or embedded["num_hidden_layers"],
        hidden=hidden,
        heads=heads,
        kv_heads=options.kv_heads or (heads if square else embedded["num_key_value_heads"]),
        head_dim=options.head_dim or (hidden // heads if square else embedded["head_dim"]),
        intermediate=options.intermediate or intermediate,
        context=options.context or embedded["max_position_embeddings"],
        window=options.window,
        tied=options.embeddings == "tied" or (not options.embeddings and embedded["tie_word_embeddings"]),
    )


def shape_problems(options: Scratch, embedded: Mapping[str, Any]) -> Iterator[InputProblem]:
    """What the class that it chooses cannot do; with paths below the node."""
    shape = scratch_shape(options, embedded)
    if options.family and options.positions in CLASSES:
        what, got = "only rotary positions come in families", f"{options.family} with positions={options.positions}"
        yield InputProblem("family", what, got, "", "", "drop one of the two")
    if shape.window and shape.kind != "qwen3":
        remedy = "model.scratch.family=qwen3, or drop it"
        yield InputProblem("window", f"{shape.kind} attends to all tokens", str(shape.window), "0", "", remedy)
    if shape.heads % shape.kv_heads:
        got = f"{shape.heads} heads over {shape.kv_heads}"
        yield InputProblem("kv_heads", "does not divide the query heads", got, remedy="correct one of the two")
    if shape.kind in SQUARE:
        yield from _of_square(shape)
    elif shape.kind != SMOLLM3 and shape.head_dim % 2:
        yield InputProblem(
            "head_dim", "rotary positions turn pairs of dimensions", str(shape.head_dim), "an even number"
        )


def _of_square(shape: Shape) -> Iterator[InputProblem]:
    if shape.kv_heads != shape.heads:
        what = f"{shape.kind} has a key and value head for each head"
        yield InputProblem("kv_heads", what, str(shape.kv_heads), f"0 or {shape.heads}", "", "drop it")
    if shape.hidden % shape.heads or shape.head_dim * shape.heads != shape.hidden:
        what, got = f"{shape.kind} shares the hidden width between its heads", f"{shape.heads} of {shape.head_dim}"
        yield InputProblem("head_dim", what, got, f"heads that divide {shape.hidden}, head_dim=0", "", "correct one")
    if shape.kind == BLOOM and shape.intermediate != 4 * shape.hidden:
        what = f"{shape.kind}'s MLP is four times as wide as the residual stream"
        yield InputProblem("intermediate", what, str(shape.intermediate), f"0 or {4 * shape.hidden}", "", "drop it")
