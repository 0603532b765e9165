"""A policy whose weights an endpoint holds: what prompts and their lengths need of it, and nothing more."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from torch import nn

from rlvr_exp.config.model import Model
from rlvr_exp.models.policy import Policy, load_tokenizer


@dataclass(frozen=True)
class ServedPolicy(Policy):
    """`model` has no parameters; `tokenizer` is that of `model.tokenizer`, or None: lengths are then the server's matter."""

    def encode_prompt(self, text: str) -> list[int]:
        """No ids without a tokenizer."""
        return [] if self.tokenizer is None else super().encode_prompt(text)

    @property
    def notes(self) -> Iterator[str]:
        """None: the endpoint renders prompts and ends answers itself."""
        return iter(())


def served_policy(model: Model, chat: bool) -> ServedPolicy:
    """
    Args:
        model: the `model` node.
        chat: prompts go as messages.
    """
    tokenizer = load_tokenizer(model) if model.tokenizer else None
    worded = chat and tokenizer is not None and tokenizer.chat_template is not None
    return ServedPolicy(nn.Module(), tokenizer, (), worded, False, sys.maxsize, model.system)
