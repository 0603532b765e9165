"""A reference policy that follows the trained policy is part of a checkpoint; a fixed reference is the initial policy."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn

FILE = Path("training") / "reference.safetensors"


class Reference(nn.Module):
    """Saves and loads a model's weights in their own dtypes."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def save(self, folder: Path) -> None:
        save_file({name: value.detach().contiguous() for name, value in self.named_parameters()}, folder / FILE)

    @torch.no_grad()
    def load(self, folder: Path) -> None:
        """Raises KeyError where the file belongs to another model."""
        kept = load_file(folder / FILE)
        for name, value in self.named_parameters():
            value.copy_(kept[name])
