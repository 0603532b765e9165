"""What a decoder computes for completions; those that are alike so far share a row."""

from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class Logits:
    """Of the next token behind each of some tokens of completions, one completion after the other."""

    values: torch.Tensor
    """(rows, vocabulary)"""
    rows: np.ndarray
    """(tokens,) the row of each token"""
    sequences: int
    """How many different completions the rows belong to."""

    def of_tokens(self) -> torch.Tensor:
        """(tokens, vocabulary)"""
        return self.values.index_select(0, torch.from_numpy(self.rows).to(self.values.device))
