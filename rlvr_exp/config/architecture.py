"""The shape of a decoder: of a known model (`model.architecture`), or of one built with random weights (`model.scratch`).

Memory is planned from the shape, without weights. A preset copies the numbers of the model's public config.json; a local
checkpoint's own file takes precedence. Covered are dense decoders of the Llama family (Llama, Qwen2, Qwen3): rotary
positions, grouped-query attention, RMSNorm, a gated MLP. The plan shows no number for other models.

For a model built from scratch, each kind of positions is a class of Transformers, so that every checkpoint loads with
`AutoModelForCausalLM.from_pretrained`. Shapes that the class does not support are refused here.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rlvr_exp.config.options import option
from rlvr_exp.core.errors import InputProblem

FAMILIES = {"llama": (False, False), "mistral": (False, False), "qwen2": (True, False), "qwen3": (False, True)}
"""`model_type` -> (biases on q, k and v; norms on q and k)."""


@dataclass(frozen=True)
class Architecture:
    """Numbers of a public config.json; all zero: unknown."""

    layers: int = option(0, low=0)
    """Decoder layers; 0: the shape is unknown, unless a config.json is found."""
    hidden: int = option(0, low=0)
    """Width of the residual stream."""
    heads: int = option(0, low=0)
    """Query heads of a layer."""
    kv_heads: int = option(0, low=0)
    """Key and value heads of a layer."""
    head_dim: int = option(0, low=0)
    """Width of a head."""
    intermediate: int = option(0, low=0)
    """Width of the MLP."""
    vocabulary: int = option(0, low=0)
    """Rows of the embedding."""
    tied_embeddings: bool = False
    """The head is the embedding."""
    attention_bias: bool = False
    """q, k and v have biases (Qwen2)."""
    qk_norm: bool = False
    """q and k are normalised in each head (Qwen3)."""

    @property
    def known(self) -> bool:
        return self.layers > 0

    def problems(self) -> list[InputProblem]:
        numbers = {spec.name: getattr(self, spec.name) for spec in fields(self) if spec.type is int}
        missing = [name for name, value in numbers.items() if not value]
        if (self.known and missing) or (not self.known and len(missing) < len(numbers)):
            got = f"no {', '.join(missing)}" if self.known else "0"
            remedy = "copy all numbers from the model's config.json"
            return [InputProblem("layers", "a shape needs all of its options or none", got, remedy=remedy)]
        if self.known and self.heads % self.kv_heads:
            got = f"{self.heads} heads over {self.kv_heads}"
            return [InputProblem("kv_heads", "does not divide the query heads", got, remedy="correct one of the two")]
        return []

    def matrices(self) -> dict[str, tuple[int, int]]:
        """(rows, columns) of each weight matrix of one layer, by the name of its module."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return {
            "q_proj": (queries, self.hidden),
            "k_proj": (keys, self.hidden),
            "v_proj": (keys, self.hidden),
            "o_proj": (self.hidden, queries),
            "gate_proj": (self.intermediate, self.hidden),
            "up_proj": (self.intermediate, self.hidden),
            "down_proj": (self.hidden, self.intermediate),
        }

    def named(self) -> Iterator[tuple[str, int]]:
        """Every parameter's name in Transformers and its size; tied embeddings once, by their first name."""
        yield "model.embed_tokens.weight", self.vocabulary * self.hidden
        for layer in range(self.layers):
            yield from ((f"model.layers.{layer}.{name}", size) for name, size in self._named_in_a_layer())
        yield "model.norm.weight", self.hidden
        if not self.tied_embeddings:
            yield "lm_head.weight", self.vocabulary * self.hidden

    def _named_in_a_layer(self) -> Iterator[tuple[str, int]]:
        for name, (rows, columns) in self.matrices().items():
            part = "self_attn" if name in ("q_proj", "k_proj", "v_proj", "o_proj") else "mlp"
            yield f"{part}.{name}.weight", rows * columns
            if self.attention_bias and name in ("q_proj", "k_proj", "v_proj"):
                yield f"self_attn.{name}.bias", rows
        for name in ("q_norm", "k_norm") if self.qk_norm else ():
            yield f"self_attn.{name}.weight", self.head_dim
        for name in ("input_layernorm", "post_attention_layernorm"):
            yield f"{name}.weight", self.hidden

    @property
    def layer_matrices(self) -> int:
        """Parameters of one layer's matrices."""
        return sum(rows * columns for rows, columns in self.matrices().values())

    @property
    def layer_vectors(self) -> int:
        """Parameters of one layer's norms and biases."""
        biases = (self.heads + 2 * self.kv_heads) * self.head_dim if self.attention_bias else 0
        return 2 * self.hidden + biases + (2 * self.head_dim if self.qk_norm else 0)

    @property
    def embeddings(self) -> int:
        """Parameters of the embedding and of a head of its own."""
        return self.vocabulary * self.hidden * (1 if self.tied_embeddings else 2)

    @property
    def parameters(self) -> int:
        return self.embeddings + self.layers * (self.layer_matrices + self.layer_vectors) + self.hidden


def read_architecture(folder: Path) -> tuple[Architecture, str]:
    """The shape and the stored dtype ("" if it is not recorded) of a checkpoint folder. The shape is unknown if there is no
    config.json or it is of another family.

    Unknown where there is no config.json or it is of another family.

    Raises:
        ValueError: the file is no JSON object.
    """
    path = folder / "config.json"
    if not path.is_file():
        return Architecture(), ""
    values = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(values, dict):
        raise ValueError(f"{path} holds no JSON object")
    dtype = str(values.get("dtype") or values.get("torch_dtype") or "").removeprefix("torch.")
    return _of_json(values), dtype


def _of_json(values: dict[str, Any]) -> Architecture:
    family = FAMILIES.get(str(values.get("model_type")))
    if family is None:
        return Architecture()
    heads, hidden = int(values["num_attention_heads"]), int(values["hidden_size"])
    return Architecture(
        layers=int(values["num_hidden_layers"]),
        hidden=hidden,
        heads=heads,
        kv_heads=int(values.get("num_key_value_heads") or heads),
        head_dim=int(values.get("head_dim") or hidden // heads),
        intermediate=int(values["intermediate_size"]),
        vocabulary=int(values["vocab_size"]),
        tied_embeddings=bool(values.get("tie_word_embeddings", False)),
        attention_bias=family[0] or bool(values.get("attention_bias", False)),
        qk_norm=family[1],
    )


GPT2, BLOOM, SMOLLM3 = "gpt2", "bloom", "smollm3"
CLASSES = {"learned": GPT2, "alibi": BLOOM, "none": SMOLLM3}
"""The class of each kind of positions but rotary ones, which come in families."""
SQUARE = (GPT2, BLOOM)
"""Classes with as many key and value heads as heads, which share the width between them."""
LEARNED = ("bpe", "grid")
"""Tokenizers that learn merges, up to a vocabulary."""
VOCABULARY = 1024
"""Tokens of the embedded tokenizers, and the default of tokenizers that learn merges."""
LEAST = 258
"""The bytes, and the tokens that pad and that end."""


@dataclass(frozen=True)
class Scratch:
    """The model that from_scratch builds; 0 and "" mean as in the embedded model."""

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
    """Tokenizer made from the train split at the start of a run. characters: a token for each character (bytes if the split
    lacks it). bytes: a token for each byte. bpe: byte-level BPE as in GPT-2. grid: BPE that keeps each grid cell one token.
    Empty: the embedded model's tokenizer."""
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
    """Limits of the class that the options choose, with paths below the node."""
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
