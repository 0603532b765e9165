"""Checkpoints as a user brings them: small models of three families with random weights, a byte-level BPE tokenizer trained
on texts of the domain, and a chat template."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
FAMILIES: dict[str, tuple[type, type[PreTrainedModel]]] = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "gpt_neox": (GPTNeoXConfig, GPTNeoXForCausalLM),
}


def own_tokenizer(texts: Iterable[str], vocabulary: int = 512, template: str | None = TEMPLATE) -> Any:
    """A byte-level BPE tokenizer; `template` None: without chat."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<|endoftext|>", clean_up_tokenization_spaces=False
    )
    tokenizer.chat_template = template
    return tokenizer


def own_model(
    folder: Path,
    family: str,
    tokenizer: Any,
    hidden: int = 64,
    layers: int = 2,
    context: int = 1024,
    dtype: torch.dtype = torch.float32,
    rows: int = 0,
) -> Path:
    """A checkpoint folder. `rows`: of the embedding, where not as many as the tokenizer has tokens."""
    config_type, model_type = FAMILIES[family]
    torch.manual_seed(0)
    given: dict[str, Any] = {
        "vocab_size": rows or len(tokenizer),
        "hidden_size": hidden,
        "intermediate_size": 3 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "max_position_embeddings": context,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": tokenizer.pad_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    if family != "gpt_neox":
        given |= {"num_key_value_heads": 2}
    model_type(config_type(**given)).to(dtype).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
