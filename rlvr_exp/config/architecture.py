"""Options of the node `model.architecture`: the shape of a decoder, from which memory is planned without its weights.

A preset carries the numbers of the model's public config.json; a local checkpoint's own file is read in their place.
Covers dense decoders of the Llama family (Llama, Qwen2, Qwen3): rotary positions, grouped-query attention, RMSNorm, a
gated MLP. Anything else has no shape here, and the plan shows that in place of a wrong number.
"""

import json
from collections.abc import Iterator
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
        if self.known and missing:
            remedy = "copy all numbers from the model's config.json"
            return [
                InputProblem(
                    "layers", "a shape needs all of its options or none", f"no {', '.join(missing)}", remedy=remedy
                )
            ]
        if not self.known and len(missing) < len(numbers):
            return [
                InputProblem(
                    "layers", "a shape needs all of its options or none", "0", "1 or more", remedy="set it too"
                )
            ]
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
    """The shape and the stored dtype ("" where it is not recorded) of a checkpoint folder.

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
