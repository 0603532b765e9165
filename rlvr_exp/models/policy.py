"""Loading a policy: a causal language model and its tokenizer, from a local folder, the embedded one, or the hub's cache.

Never downloads by itself: whether weights are at hand is checked before a run starts (rlvr_exp.config.weights).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from rlvr_exp.models.embedded import EMBEDDED


@dataclass(frozen=True)
class Policy:
    """A model that answers, with everything needed to put text in and take text out."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    eos_ids: tuple[int, ...]
    """Every token that ends a completion; the tokenizer's own comes first."""
    chat: bool
    """Whether prompts are wrapped by the tokenizer's chat template."""
    thinking: bool
    """Handed to the chat template; one that does not know of thinking ignores it."""
    max_tokens: int
    """The longest prompt plus completion that the model takes."""

    @property
    def pad_id(self) -> int:
        return self.tokenizer.pad_token_id

    def encode_prompt(self, text: str) -> list[int]:
        """Token ids of a prompt, as the model expects to be asked."""
        if self.chat:
            messages = [{"role": "user", "content": text}]
            return list(
                self.tokenizer.apply_chat_template(
                    messages, add_generation_prompt=True, return_dict=False, enable_thinking=self.thinking
                )
            )
        return self.tokenizer(text).input_ids

    def encode_completion(self, text: str) -> list[int]:
        """Token ids of an answer, with the token that ends it."""
        return self.tokenizer(text, add_special_tokens=False).input_ids + [self.eos_ids[0]]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of a completion, without its end."""
        end = next((index for index, token in enumerate(ids) if token in self.eos_ids), len(ids))
        return self.tokenizer.decode(ids[:end], skip_special_tokens=True)


def source(model) -> str:
    """Where a `model` configuration node's weights are: its folder, the embedded one, or a name on the hub."""
    return model.path or model.name or str(EMBEDDED)


def load_policy(model, seed: int) -> Policy:
    """Load what a `model` configuration node names, on the device it asks for, ready to sample and to train.

    `seed` sets the initial weights where `model.from_scratch` asks for new ones.
    """
    origin = source(model)
    tokenizer = AutoTokenizer.from_pretrained(origin, trust_remote_code=model.trust_remote_code)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    network = _from_scratch(model, origin, seed) if model.from_scratch else _pretrained(model, origin)
    if not model.device_map:
        network.to("cuda" if torch.cuda.is_available() else "cpu")
    network.config.pad_token_id = network.generation_config.pad_token_id = tokenizer.pad_token_id
    longest = network.config.max_position_embeddings
    chat = model.chat_template == "always" or (model.chat_template == "auto" and tokenizer.chat_template is not None)
    return Policy(network, tokenizer, _eos_ids(network, tokenizer), chat, model.thinking, longest)


def _pretrained(model, origin: str) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(
        origin,
        dtype=model.dtype if model.dtype == "auto" else getattr(torch, model.dtype),
        device_map=model.device_map or None,
        attn_implementation=None if model.attention == "auto" else model.attention,
        trust_remote_code=model.trust_remote_code,
    )


def _from_scratch(model, origin: str, seed: int) -> PreTrainedModel:
    torch.manual_seed(seed)
    architecture = AutoConfig.from_pretrained(origin, trust_remote_code=model.trust_remote_code)
    return AutoModelForCausalLM.from_config(
        architecture, dtype=torch.float32 if model.dtype == "auto" else getattr(torch, model.dtype)
    )


def _eos_ids(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """The tokenizer's end token, then every other that the model declares (an end-of-turn token, for one)."""
    declared = network.generation_config.eos_token_id
    declared = [declared] if isinstance(declared, int) else list(declared or [])
    return tuple(dict.fromkeys([tokenizer.eos_token_id, *declared]))
