"""A checkpoint as a GGUF file for llama.cpp and Transformers: weights, sizes, tokenizer and chat template.

llama.cpp rotates neighbouring dimensions of a llama's heads, Transformers the two halves of a head. So the rows of the query and key
matrices of a llama are reordered, as llama.cpp's own converter does. Qwen2 and Qwen3 keep their order. Vectors stay float32 in every
type, because llama.cpp needs that of norms.

A GGUF file names one of llama.cpp's rules of splitting text before BPE. A tokenizer with another rule is refused: its
tokens would differ. llama.cpp does not apply the Unicode normalization (NFC) of Qwen's tokenizers.

With a float32 cache and without flash attention (`-ctk f32 -ctv f32 -fa off`) llama.cpp gives the greedy tokens of Transformers. Its
defaults on a CPU round keys and values to float16, which changes a log-probability of SmolLM2 by up to 0.006.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFWriter, LlamaFileType, TokenType
from gguf.quants import quantize
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rlvr_exp.config.model import Model, is_adapter
from rlvr_exp.config.needs import weights_missing
from rlvr_exp.config.schema import Config
from rlvr_exp.config.stage_options import EXPORTED
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import replacing
from rlvr_exp.corpora.models import merged
from rlvr_exp.models.policy import load_policy
from rlvr_exp.records.context import RunContext

TYPES = {
    "float32": (GGMLQuantizationType.F32, LlamaFileType.ALL_F32),
    "float16": (GGMLQuantizationType.F16, LlamaFileType.MOSTLY_F16),
    "bfloat16": (GGMLQuantizationType.BF16, LlamaFileType.MOSTLY_BF16),
}
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPLITS = {
    ("ByteLevel",): "gpt-2",
    ("Digits", "ByteLevel"): "smollm",
    (WORDS % "", "ByteLevel without regex"): "qwen2",
    (WORDS % "{1,3}", "ByteLevel without regex"): "llama-bpe",
}
"""The rules of llama.cpp by the parts of the `pre_tokenizer` in tokenizer.json."""
IGNORES_MERGES = ("llama-bpe",)
"""Rules under which llama.cpp takes a word in the vocabulary as one token without merging."""


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write `prepare.path` as a GGUF file.

    Raises:
        InputError: the file exists, weights are missing or damaged, or llama.cpp would compute another model.
    """
    options = config.prepare
    out = Path(options.output or context.directory / "model.gguf")
    if out.exists():
        raise InputError(InputProblem("prepare.output", "exists", str(out), "a new file"))
    network, tokenizer = _loaded(options.path, options.base)
    if problems := [*_of_network(network, options.path), *_of_tokenizer(tokenizer, options.path)]:
        raise InputError(*problems)
    with replacing(out) as temporary:
        count = write(network, tokenizer, temporary, options.dtype)
    return f"written: {out} ({options.dtype}, {count} tensors)", {"parameters": network.num_parameters()}


def _loaded(path: str, base: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The network in float32 and its tokenizer. An adapter is merged."""
    if is_adapter(path):
        return merged(path, base, "float32")
    model = Model(path=path, dtype="float32", max_prompt_tokens=1, max_completion_tokens=1)
    if needs := list(weights_missing(model)):
        raise InputError(*(need.problem for need in needs))
    policy = load_policy(model, seed=0)
    return policy.model, policy.tokenizer


def write(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, file: Path, dtype: str) -> int:
    """Write a supported model and return the number of tensors.

    Args:
        dtype: "float32", "float16" or "bfloat16", the type of the matrices.

    Raises:
        InputError: a weight is too large for float16, or has no place in the file.
    """
    config, (kind, file_type) = network.config, TYPES[dtype]
    architecture = gguf.MODEL_ARCH[config.model_type.upper()]
    writer = GGUFWriter(file, gguf.MODEL_ARCH_NAMES[architecture])
    writer.add_file_type(file_type)
    _add_sizes(writer, config)
    _add_tokenizer(writer, tokenizer, config.vocab_size)
    names, count = gguf.get_tensor_name_map(architecture, config.num_hidden_layers), 0
    for name, array in _arrays(network):
        placed = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if placed is None:
            raise InputError(InputProblem("prepare.path", "GGUF has no place for a weight", name))
        of_matrix = array.ndim > 1
        with np.errstate(over="ignore"):  # An infinite value is reported below.
            converted = quantize(array, kind) if of_matrix else array
        if kind is GGMLQuantizationType.F16 and not np.isfinite(converted).all():
            what, remedy = f"{name} has values that {dtype} cannot hold", "prepare.dtype=bfloat16 or float32"
            raise InputError(InputProblem("prepare.dtype", what, dtype, "", "", remedy))
        writer.add_tensor(placed, converted, raw_dtype=kind if of_matrix else GGMLQuantizationType.F32)
        count += 1
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return count


def _arrays(network: PreTrainedModel) -> Iterator[tuple[str, np.ndarray]]:
    """Each weight as float32, with the rows of a llama's heads in the order of llama.cpp. Tied weights come once."""
    config = network.config
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for name, value in network.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        array = value.detach().to("cpu", torch.float32).numpy()
        layer = name.rsplit(".", 2)[-2]
        if config.model_type == "llama" and layer in heads:
            halves = array.reshape(heads[layer], 2, -1, *array.shape[1:])
            array = np.ascontiguousarray(halves.swapaxes(1, 2).reshape(array.shape))
        yield name, array


def _head_dim(config: Any) -> int:
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def _add_sizes(writer: GGUFWriter, config: Any) -> None:
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(_head_dim(config))
    writer.add_key_length(_head_dim(config))
    writer.add_value_length(_head_dim(config))
    writer.add_vocab_size(config.vocab_size)


def _add_tokenizer(writer: GGUFWriter, tokenizer: PreTrainedTokenizerBase, vocabulary: int) -> None:
    """Rows of the embeddings beyond the tokenizer's tokens are named as unused ones."""
    described = _described(tokenizer)
    tokens = {number: text for text, number in tokenizer.get_vocab().items()}
    kinds = {
        one["id"]: TokenType.CONTROL if one["special"] else TokenType.USER_DEFINED for one in described["added_tokens"]
    }
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(_split(described) or "")
    writer.add_token_list([tokens.get(number, f"[PAD{number}]") for number in range(vocabulary)])
    writer.add_token_types(
        [kinds.get(n, TokenType.NORMAL) if n in tokens else TokenType.UNUSED for n in range(vocabulary)]
    )
    merges = described["model"]["merges"]
    writer.add_token_merges([one if isinstance(one, str) else " ".join(one) for one in merges])
    writer.add_add_space_prefix(False)
    ids = tokenizer("a").input_ids
    writer.add_add_bos_token(tokenizer.bos_token_id is not None and ids[0] == tokenizer.bos_token_id)
    writer.add_add_eos_token(len(ids) > 1 and ids[-1] == tokenizer.eos_token_id)
    eos = tokenizer.eos_token_id
    for add, number in (
        # Transformers reads no tokenizer without this key. `add_bos_token` decides whether texts begin with it.
        (writer.add_bos_token_id, eos if tokenizer.bos_token_id is None else tokenizer.bos_token_id),
        (writer.add_eos_token_id, eos),
        (writer.add_unk_token_id, tokenizer.unk_token_id),
        (writer.add_pad_token_id, tokenizer.pad_token_id),
    ):
        if number is not None:
            add(number)
    if tokenizer.chat_template:
        writer.add_chat_template(tokenizer.chat_template)


def _described(tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    """The contents of tokenizer.json; empty for a tokenizer that has none."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    return json.loads(backend.to_str()) if backend is not None else {}


def _split(described: Mapping[str, Any]) -> str | None:
    """llama.cpp's name of the rule; None if it has no such rule."""
    rule = described.get("pre_tokenizer") or {}
    parts = tuple(map(_part, rule.get("pretokenizers") or [rule]))
    name = SPLITS.get(parts)
    ignores = bool(described["model"].get("ignore_merges"))
    return name if ignores == (name in IGNORES_MERGES) else None


def _part(rule: Mapping[str, Any]) -> str:
    kind = str(rule.get("type"))
    if kind == "ByteLevel" and not rule.get("add_prefix_space"):
        return kind if rule.get("use_regex", True) else "ByteLevel without regex"
    if kind == "Digits" and rule.get("individual_digits"):
        return kind
    if kind == "Split" and rule.get("behavior") == "Isolated" and not rule.get("invert"):
        return str(rule["pattern"].get("Regex"))
    return f"another {kind}"


def _of_network(network: PreTrainedModel, path: str) -> Iterator[InputProblem]:
    """Settings of the architecture that the file does not express."""
    config = network.config
    if config.model_type not in EXPORTED:
        allowed = ", ".join(EXPORTED)
        yield InputProblem("prepare.path", "unsupported architecture", f"{path}: {config.model_type}", allowed)
        return
    rope = config.rope_parameters.get("rope_type", "default")
    if rope != "default":
        yield InputProblem("prepare.path", "unsupported scaling of positions", f"{path}: {rope}", "none")
    if "sliding_attention" in (getattr(config, "layer_types", None) or ()):
        yield InputProblem("prepare.path", "unsupported attention window", f"{path}: {config.sliding_window}", "none")
    if config.hidden_act != "silu":
        yield InputProblem("prepare.path", "unsupported activation", f"{path}: {config.hidden_act}", "silu")


def _of_tokenizer(tokenizer: PreTrainedTokenizerBase, path: str) -> Iterator[InputProblem]:
    described = _described(tokenizer)
    if described.get("model", {}).get("type") != "BPE":
        yield InputProblem("prepare.path", "unsupported tokenizer", path, "byte-level BPE with a tokenizer.json")
    elif _split(described) is None:
        what, allowed = "llama.cpp does not split text as this tokenizer does", ", ".join(SPLITS.values())
        yield InputProblem("prepare.path", what, f"{path}: {json.dumps(described.get('pre_tokenizer'))}", allowed)
