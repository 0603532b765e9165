"""A policy with a value estimate in one module, for PPO.

`ActorCritic` takes the inputs of its causal language model and returns its output with `value` added: V of the
state that each position's prediction is made from. The policy within stays a plain language model: the sampler uses it
and `save_pretrained` writes it without a trace of the value, which is kept in a folder
of its own: engines such as vLLM load every .safetensors file in a model's folder.
Never knows of rewards, advantages or losses.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import PreTrainedModel

from rlvr_exp.core.errors import InputError, InputProblem

FILE = Path("value") / "value.safetensors"
SHARED, OWN = "shared", "own"
OF_THE_HEAD = ("labels", "shift_labels", "num_items_in_batch", "fused_lm_head", "logits_to_keep")
"""Arguments of a language model that its decoder does not take."""


class ValueHead(nn.Module):
    """A linear estimate from hidden states, zero before it has learned anything.

    Args:
        trunk: a decoder of its own; None: it reads the policy's hidden states.
    """

    def __init__(self, width: int, trunk: nn.Module | None = None):
        super().__init__()
        self.trunk = trunk
        self.output = nn.Linear(width, 1)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """(rows, positions, width) hidden states -> (rows, positions) values in float32."""
        return self.output(hidden.to(self.output.weight.dtype)).squeeze(-1).float()

    def save(self, folder: Path) -> None:
        """Write the learned weights as `value/value.safetensors`; a trunk's frozen weights are the policy's and are left out."""
        learned = {name: value.detach().contiguous() for name, value in self.named_parameters() if value.requires_grad}
        (folder / FILE).parent.mkdir(exist_ok=True)
        save_file(learned, folder / FILE)

    def load(self, folder: Path) -> bool:
        """Read the weights that `save` wrote; False if the folder has none.

        Raises:
            InputError: the file belongs to a value of another shape.
        """
        file = folder / FILE
        if not file.is_file():
            return False
        found = load_file(file, device=str(self.output.weight.device))
        wanted = {name: value.shape for name, value in self.named_parameters() if value.requires_grad}
        if {name: value.shape for name, value in found.items()} != wanted:
            other = OWN if any(name.startswith("trunk.") for name in found) else SHARED
            remedy = f"algorithm.value_trunk={other} and the model settings of that run, or remove the file"
            raise InputError(
                InputProblem("algorithm.value_trunk", "the saved value has other weights", str(file), remedy=remedy)
            )
        self.load_state_dict(found, strict=False)
        return True


class ActorCritic(nn.Module):
    """A policy and its value as the single module that a trainer wraps. Attributes that it lacks are the policy's."""

    def __init__(self, policy: nn.Module, value: ValueHead):
        super().__init__()
        self.policy = policy
        self.value = value
        self.value_alone = False
        """The value's loss stops at its own weights, also if it reads the policy's hidden states."""

    def forward(self, **inputs: Any) -> Any:
        """The policy's output with `value`, (rows, positions)."""
        with _last_hidden(self.policy.get_decoder()) as hidden:
            output = self.policy(**inputs)
        read = hidden[0] if self.value.trunk is None else self._own(inputs)
        value = self.value(read.detach() if self.value_alone and self.value.trunk is None else read)
        kind: Any = type(output)
        return _with_value(kind)(**output, value=value)

    def _own(self, inputs: dict[str, Any]) -> torch.Tensor:
        """Hidden states of the value's own trunk, which attends as the policy does."""
        trunk = self.value.trunk
        assert trunk is not None, "the value reads the policy's hidden states"
        return trunk(**{name: part for name, part in inputs.items() if name not in OF_THE_HEAD}).last_hidden_state

    def gradient_checkpointing_enable(self, *args: Any, **kwargs: Any) -> None:
        for part in (self.policy, self.value.trunk):
            if part is not None:
                part.gradient_checkpointing_enable(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("policy"), name)


def with_value(policy: PreTrainedModel, trunk: str) -> ActorCritic:
    """The policy with a fresh value.

    Args:
        trunk: "shared": the value reads the policy's last hidden states, and its loss trains the trunk as well;
            "own": a copy of the policy's decoder as it is now, trained if the policy's is.
    """
    own = copy.deepcopy(policy.get_decoder()) if trunk == OWN else None
    value = ValueHead(policy.config.get_text_config().hidden_size, own)
    value.output.to(policy.device, torch.float32)
    return ActorCritic(policy, value)


@cache
def _with_value(kind: type) -> type:
    """That class of outputs with a further field: DistributedDataParallel rebuilds outputs from their fields."""
    own = {"__annotations__": {"value": torch.Tensor | None}, "value": None, "__module__": __name__}
    return dataclass(type(f"{kind.__name__}WithValue", (kind,), own))


@contextmanager
def _last_hidden(decoder: nn.Module) -> Iterator[list[torch.Tensor]]:
    """Collects the decoder's last hidden states while the policy runs."""
    seen: list[torch.Tensor] = []
    handle = decoder.register_forward_hook(lambda *call: seen.append(call[-1].last_hidden_state))
    try:
        yield seen
    finally:
        handle.remove()
