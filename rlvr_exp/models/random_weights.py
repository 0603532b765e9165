"""Models with random weights, and tokenizers made from texts.

Models have a known shape for measurements, or their own shape (`model.scratch`) to train from scratch. Nothing is loaded and
nothing is downloaded. The models are Transformers' classes.

Tokenizers are plain fast tokenizers: equal texts give an equal one, and any text without the names of special tokens comes
back unchanged from its tokens. GRID makes every grid cell one token: digits are split from all other text, together with the
newline that ends a grid's row, so that a grid of h x w cells is h * w tokens; all other text is merged freely, so that idioms
become few tokens. CODE keeps a name, with the blank before it, apart from the text around it, so that a name of the prompt is
the same token wherever it is used; digits stand alone, and blanks and signs between names are merged freely.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    GPT2Config,
    LlamaConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
    SmolLM3Config,
)

from rlvr_exp.config.architecture import BLOOM, GPT2, SMOLLM3, VOCABULARY, Architecture, Scratch, Shape
from rlvr_exp.tasks.base import Domain

PAD, EOS = "<pad>", "<eos>"
GRID = r"\d\n?"
CODE = r" ?[A-Za-z_]\w*|\d"
GPT2_PIECES = r"'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""The pieces of GPT-2 (Radford et al. 2019), as in the library's ByteLevel."""
CELLS = f"{GRID}|{GPT2_PIECES}"
"""Those, but a grid cell is a piece of its own."""
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
"""The names that the library gives the bytes of characters without a token of their own."""


def training_texts(domain: Domain) -> Iterator[str]:
    """Prompts and golds of the train split."""
    for task in domain.splits()["train"]:
        for shown in domain.demonstrations(task):
            yield domain.task_prompt(shown)
            if gold := domain.gold_completion(shown):
                yield gold


def build_tokenizer(options: Scratch, texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """The tokenizer that `model.scratch.tokenizer` names."""
    if options.tokenizer == "characters":
        # A token for each character of the texts. Any other character becomes its bytes.
        names = [PAD, EOS, *BYTES, *sorted({character for text in texts for character in text})]
        vocabulary = {name: number for number, name in enumerate(names)}
        tokenizer = Tokenizer(models.BPE(vocabulary, [], byte_fallback=True))
        tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
        return _fast(tokenizer)
    if options.tokenizer == "bytes":
        names = [PAD, EOS, *sorted(pre_tokenizers.ByteLevel.alphabet())]
        tokenizer = Tokenizer(models.BPE({name: number for number, name in enumerate(names)}, []))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.decoder = decoders.ByteLevel()
        return _fast(tokenizer)
    return train_tokenizer(texts, CELLS if options.tokenizer == "grid" else GPT2_PIECES, options.vocabulary_size)


def train_tokenizer(texts: Iterable[str], pieces: str, vocabulary: int = VOCABULARY) -> PreTrainedTokenizerFast:
    """Byte-level BPE, whose merges cross no border of a match of `pieces`."""
    tokenizer = Tokenizer(models.BPE())
    spelled = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pieces), "isolated"), spelled])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, EOS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return _fast(tokenizer)


def _fast(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=EOS, clean_up_tokenization_spaces=False
    )


def hugging_face(shape: Architecture, positions: int) -> PreTrainedConfig:
    """Transformers' configuration of the same shape, for up to `positions` tokens."""
    kind = Qwen3Config if shape.qk_norm else Qwen2Config if shape.attention_bias else LlamaConfig
    more = {"vocab_size": shape.vocabulary, "tie_word_embeddings": shape.tied_embeddings}
    return llama_family(kind, shape, positions, **more)


def llama_family(
    kind: type[PreTrainedConfig], shape: Architecture | Shape, positions: int, **more: Any
) -> PreTrainedConfig:
    """A configuration of a class that names its numbers as Llama does."""
    return kind(
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        max_position_embeddings=positions,
        **more,
    )


def random_network(
    shape: Architecture, positions: int, dtype: torch.dtype, device: str, quantization: str = ""
) -> PreTrainedModel:
    """The model on its device. `quantization`: "8bit", "4bit" or "" for none."""
    with torch.device(device):
        network = AutoModelForCausalLM.from_config(hugging_face(shape, positions), dtype=dtype)
    return quantized(network, quantization) if quantization else network


def quantized(network: PreTrainedModel, bits: str) -> PreTrainedModel:
    """Matrices of layers replaced by bitsandbytes' of the same random values, one at a time."""
    from bitsandbytes.nn import Int8Params, Linear4bit, Linear8bitLt, Params4bit

    for name, module in list(network.named_modules()):
        if not isinstance(module, nn.Linear) or name == "lm_head":
            continue
        bias, weight = module.bias is not None, module.weight.data
        if bits == "4bit":
            new = Linear4bit(module.in_features, module.out_features, bias, weight.dtype, True, "nf4", device="meta")
            new.weight = Params4bit(weight, requires_grad=False, quant_type="nf4", compress_statistics=True)
        else:
            new = Linear8bitLt(module.in_features, module.out_features, bias, has_fp16_weights=False, device="meta")
            new.weight = Int8Params(weight, requires_grad=False, has_fp16_weights=False)
        new.bias = module.bias
        new.weight = new.weight.to(weight.device)
        network.set_submodule(name, new)
    return network


def scratch_config(shape: Shape, vocabulary: int, pad_id: int, end_id: int) -> PreTrainedConfig:
    """Transformers' configuration of a shape without problems.

    Args:
        vocabulary: rows of the embedding.
    """
    if shape.kind == GPT2:
        without_dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}  # As the other classes.
        widths = {"n_embd": shape.hidden, "n_inner": shape.intermediate, "n_positions": shape.context}
        config = GPT2Config(**widths, n_layer=shape.layers, n_head=shape.heads, **without_dropout)
    elif (
        shape.kind == BLOOM
    ):  # ALiBi has no longest length; the context is kept, since it says how long a prompt may be.
        numbers = {"hidden_size": shape.hidden, "n_layer": shape.layers, "n_head": shape.heads}
        config = BloomConfig(**numbers, max_position_embeddings=shape.context)
    elif shape.kind == SMOLLM3:
        config = llama_family(SmolLM3Config, shape, shape.context, no_rope_layers=[0] * shape.layers)
    else:
        window = {"use_sliding_window": True, "sliding_window": shape.window, "max_window_layers": 0}
        kind, more = (Qwen3Config, window if shape.window else {}) if shape.kind == "qwen3" else (LlamaConfig, {})
        config = llama_family(kind, shape, shape.context, rope_theta=10_000.0, **more)
    config.vocab_size, config.tie_word_embeddings = vocabulary, shape.tied
    config.pad_token_id, config.eos_token_id, config.bos_token_id = pad_id, end_id, None
    return config
