"""Weights in fewer bits: quantization of a loaded model by bitsandbytes, and conversion of GGUF files.

Quantization is NF4 with doubly quantized scales (Dettmers et al. 2023, QLoRA, arXiv 2305.14314) or LLM.int8() (Dettmers et al.
2022, arXiv 2208.07339). Embeddings, norms and the output head keep their type. Quantized weights are never trained and never
written: a checkpoint holds only the adapter.

A GGUF file becomes a folder that plain `from_pretrained` loads: weights, configuration, tokenizer, chat template.

    +stage=prepare prepare=gguf prepare.path=FILE prepare.output=DIR      any file of a supported architecture
    python -m rlvr_exp.models.quantization PACKAGE                        the file in a package, into the user's cache

Transformers dequantizes the weights. This file repairs the faults of its conversion: the configuration still calls the
weights quantized, and the tokenizer does not know the file's own end, padding and begin tokens.
"""

import fcntl
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import gguf
import torch
from gguf import GGUFReader
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    BitsAndBytesConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES

from rlvr_exp.config.model import Model, converted_folder, gguf_file, is_converted, package_problem
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.sealed import seal
from rlvr_exp.records.context import RunContext


def quantizer(model: Model, origin: str) -> BitsAndBytesConfig | None:
    """`model.quantization` for `from_pretrained`; matrix products run in the type of the other weights."""
    # It logs casts at every product, and a faster kernel that `settle` leaves unused.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    if model.quantization == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True)
    if model.quantization == "4bit":
        return BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=_held_in(model, origin),
        )
    return None


def _held_in(model: Model, origin: str) -> torch.dtype:
    if model.dtype != "auto":
        return getattr(torch, model.dtype)
    stored = AutoConfig.from_pretrained(origin, trust_remote_code=model.trust_remote_code).dtype
    return stored or torch.float32


def quantization_of(network: nn.Module) -> str:
    """`none`, `4bit` or `8bit`, as recorded by a loaded model."""
    if getattr(network, "is_loaded_in_4bit", False):
        return "4bit"
    return "8bit" if getattr(network, "is_loaded_in_8bit", False) else "none"


def settle(network: PreTrainedModel) -> None:
    """Make sampling and training compute alike on a CPU.

    There bitsandbytes packs 4-bit weights for bfloat16 kernels in eval mode, after which no gradient passes, and rounds
    the activations of 8-bit layers in eval mode alone. On a GPU both modes are equal already.
    """
    from bitsandbytes.nn import Linear4bit, Linear8bitLt

    for module in network.modules():
        if isinstance(module, Linear4bit):
            module.support_avx512bf16_for_cpu = False
        elif isinstance(module, Linear8bitLt) and module.weight.device.type == "cpu":
            kind: Any = type(module)
            module.__class__ = _always_training(kind)
            module.train()


@cache
def _always_training(kind: type[nn.Module]) -> type[nn.Module]:
    """The layer with a single way to compute, that of its training mode."""

    def train(self: nn.Module, mode: bool = True) -> nn.Module:
        return kind.train(self, True)

    return type(kind.__name__, (kind,), {"train": train, "__doc__": kind.__doc__})


def weight_bytes(network: nn.Module) -> int:
    """Memory of all weights: parameters, buffers, and the scales of quantized weights. Shared storage counts once."""
    return sum({(tensor.device, tensor.data_ptr()): tensor.nbytes for tensor in _tensors(network)}.values())


def _tensors(network: nn.Module) -> Iterator[torch.Tensor]:
    yield from network.buffers()
    for value in network.parameters():
        yield value
        yield from _scales(getattr(value, "quant_state", None))
    for module in network.modules():
        # An 8-bit layer hands its weight and scales to its state at the first forward pass.
        state = getattr(module, "state", None)
        held = (
            getattr(value, name, None)
            for value in (module, state, getattr(module, "weight", None))
            for name in ("CB", "SCB")
        )
        yield from (tensor for tensor in held if isinstance(tensor, torch.Tensor))


def _scales(state: object) -> Iterator[torch.Tensor]:
    """The tensors of a 4-bit weight's scales; doubly quantized, they have scales of their own."""
    if state is None:
        return
    yield from (value for value in vars(state).values() if isinstance(value, torch.Tensor))
    yield from _scales(getattr(state, "state2", None))


ONE_BY_ONE = ("smollm",)
"""Rules of llama.cpp (tokenizer.ggml.pre) that split off each digit before they split as GPT-2 does."""
PADDING = ("<|endoftext|>", "<pad>", "<|pad|>", "<|finetune_right_pad_id|>", "<unk>")
"""Tokens that pad in public models, best first: used if the file has no padding token of its own."""


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Convert `prepare.path`."""
    options = config.prepare
    file, folder = Path(options.path), Path(options.output or context.directory / "model")
    network = convert(file, folder, options.dtype, lambda line: context.progress(kind="note", text=line))
    return f"converted {file.name} into {folder}", {"parameters": network.num_parameters()}


def ensure_converted(package: str) -> Path:
    """Return the folder of a package's converted weights; convert them if the folder is missing or damaged.

    A folder with its final name is complete. Processes that need it at the same time wait for the first one.

    Raises:
        InputError: the package is not installed, or its file cannot be converted.
    """
    if is_converted(package):
        return converted_folder(package)
    folder = converted_folder(package)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / ".lock", "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_converted(package):  # Another process may have converted it in the meantime.
            _convert_package(package, folder)
    return folder


def _convert_package(package: str, folder: Path) -> None:
    if problem := package_problem(package):
        raise InputError(problem)
    file = gguf_file(package)
    assert file is not None
    for leftover in folder.parent.glob(f".{folder.name}.*"):  # A conversion that was killed.
        shutil.rmtree(leftover)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    convert(file, temporary, "float32", partial(print, flush=True), shown=folder)
    seal(temporary, {"package": package, "file": file.name})
    if folder.exists():
        shutil.rmtree(folder)
    temporary.chmod(0o755)
    os.replace(temporary, folder)


def convert(
    file: Path, folder: Path, dtype: str, say: Callable[[str], None], shown: Path | None = None
) -> PreTrainedModel:
    """Write the model and its tokenizer to `folder`, and return the model.

    Args:
        dtype: type of the written weights, "float32" (the exact dequantized values) or "bfloat16".
        say: receives one line with the size, before anything is written.
        shown: the folder in that line, if `folder` is a temporary one.

    Raises:
        InputError: the file is damaged, its architecture is not supported, or weights are missing in it.
    """
    with _read_once():
        return _convert(_read(file), file, folder, dtype, say, shown or folder)


@contextmanager
def _read_once() -> Iterator[None]:
    """Cache the file and the map of tensor names inside the block. Transformers reads the file for each part of a model and
    makes the map for each layer, which takes two thirds of the conversion."""
    own = {name: getattr(gguf, name) for name in ("GGUFReader", "get_tensor_name_map")}
    for name, made in own.items():
        setattr(gguf, name, cache(made))
    try:
        yield
    finally:
        for name, made in own.items():
            setattr(gguf, name, made)


def _convert(
    reader: GGUFReader, file: Path, folder: Path, dtype: str, say: Callable[[str], None], shown: Path
) -> PreTrainedModel:
    architecture = _value(reader, "general.architecture")
    if architecture not in GGUF_SUPPORTED_ARCHITECTURES:
        allowed = ", ".join(sorted(GGUF_SUPPORTED_ARCHITECTURES))
        raise InputError(InputProblem("prepare.path", "unsupported architecture", str(architecture), allowed))
    size = sum(int(tensor.n_elements) for tensor in reader.tensors) * getattr(torch, dtype).itemsize / 1e9
    say(f"converting {file.name} to {dtype}: {size:.2f} GB in {shown}, once, about half a minute")
    place = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name, "local_files_only": True}
    network, report = AutoModelForCausalLM.from_pretrained(
        **place, dtype=getattr(torch, dtype), output_loading_info=True
    )
    if missing := sorted(report["missing_keys"]):
        raise InputError(InputProblem("prepare.path", "weights are missing in the file", ", ".join(missing[:3])))
    tokenizer = AutoTokenizer.from_pretrained(**place)
    _set_special_tokens(tokenizer, reader)
    if _value(reader, "tokenizer.ggml.pre") in ONE_BY_ONE:  # Transformers reads the file's tokens, and not this rule.
        split = [Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]
        tokenizer.backend_tokenizer.pre_tokenizer = Sequence(split)
    _mark_as_plain(network, tokenizer)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return network


def _read(file: Path) -> GGUFReader:
    try:
        return gguf.GGUFReader(str(file))
    except (ValueError, OSError, IndexError) as fault:
        got = f"{file}: {fault}"
        raise InputError(InputProblem("prepare.path", "cannot be read as a GGUF file", got)) from fault


def _value(reader: GGUFReader, name: str, default: Any = None) -> Any:
    field = reader.get_field(name)
    return default if field is None else field.contents()


def _set_special_tokens(tokenizer: PreTrainedTokenizerBase, reader: GGUFReader) -> None:
    """Take the end, begin and padding tokens from the file.

    The begin token stays only if the model was trained with one before each text: the file says so, or (SentencePiece) it
    is llama.cpp's default, or the chat template writes it. A padding token that also ends answers would hide their end
    from the loss, so it is replaced by another special token if the vocabulary has one.
    """

    def token(kind: str) -> str | None:
        number = _value(reader, f"tokenizer.ggml.{kind}_token_id")
        tokens = reader.get_field("tokenizer.ggml.tokens")
        return None if number is None or tokens is None else tokens.contents(number)

    template = _value(reader, "tokenizer.chat_template", "")
    by_default = _value(reader, "tokenizer.ggml.model") == "llama" or "bos_token" in template
    begins = _value(reader, "tokenizer.ggml.add_bos_token", by_default)
    tokenizer.eos_token = token("eos")
    tokenizer.bos_token = token("bos") if begins else None
    known = tokenizer.get_vocab().keys() - {tokenizer.eos_token}
    tokenizer.pad_token = next((one for one in (token("padding"), *PADDING) if one in known), tokenizer.eos_token)
    tokenizer.clean_up_tokenization_spaces = False  # It would remove blanks before punctuation in code.


def _mark_as_plain(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """The weights are no longer quantized, and the special tokens are the tokenizer's: `save_pretrained` refuses a model
    whose configuration says otherwise."""
    if hasattr(network.config, "quantization_config"):
        del network.config.quantization_config
    network.hf_quantizer, network.is_quantized = None, False
    tokenizer.model_max_length = getattr(network.config, "max_position_embeddings", tokenizer.model_max_length)
    for settings in (network.config, network.generation_config):
        settings.bos_token_id = tokenizer.bos_token_id
        settings.eos_token_id = tokenizer.eos_token_id
        settings.pad_token_id = tokenizer.pad_token_id


if __name__ == "__main__":
    try:
        ensure_converted(sys.argv[1])
    except InputError as fault:
        sys.exit(str(fault))
