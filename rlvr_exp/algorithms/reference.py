"""A reference policy that follows the trained one: part of a checkpoint. One that stays is the policy as the run started."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn

FILE = Path("training") / "reference.safetensors"


class Reference(nn.Module):
    """Writes and reads a model's weights in the types that it holds them in."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def save(self, folder: Path) -> None:
        save_file({name: value.detach().contiguous() for name, value in self.named_parameters()}, folder / FILE)

    @torch.no_grad()
    def load(self, folder: Path) -> None:
        """Raises KeyError where the file is another model's."""
        kept = load_file(folder / FILE)
        for name, value in self.named_parameters():
            value.copy_(kept[name])
