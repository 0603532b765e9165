"""What an update learns from: one step's groups as tensors."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from rlvr_exp.rollouts.sampler import Sampled


@dataclass(frozen=True)
class Experience:
    """Samples of one step, groups contiguous: row g * G + i is sample i of group g. N = groups * G."""

    prompt_ids: torch.Tensor
    """(N, P), left-padded"""
    prompt_mask: torch.Tensor
    completion_ids: torch.Tensor
    """(N, T), right-padded"""
    completion_mask: torch.Tensor
    """(N, T), 1 for every token that was drawn"""
    sampling_logprobs: torch.Tensor
    """(N, T), as recorded by the sampler"""
    advantages: torch.Tensor
    """(N, T), zero where nothing is to be learned"""
    weights: torch.Tensor
    """(N, T): the step's loss is the sum of weight * per-token loss"""
    group_size: int

    @property
    def groups(self) -> int:
        return self.prompt_ids.shape[0] // self.group_size

    def live(self) -> torch.Tensor:
        """(groups,) whether any token of the group has an advantage."""
        return (self.advantages != 0).any(1).view(self.groups, self.group_size).any(1)

    def select(self, groups: Sequence[int]) -> "Experience":
        """The given groups alone, trimmed to their own longest prompt and completion."""
        rows = [g * self.group_size + i for g in groups for i in range(self.group_size)]
        prompt = int(self.prompt_mask[rows].sum(1).max())
        answer = max(1, int(self.completion_mask[rows].sum(1).max()))
        return Experience(
            prompt_ids=self.prompt_ids[rows, -prompt:],
            prompt_mask=self.prompt_mask[rows, -prompt:],
            completion_ids=self.completion_ids[rows, :answer],
            completion_mask=self.completion_mask[rows, :answer],
            sampling_logprobs=self.sampling_logprobs[rows, :answer],
            advantages=self.advantages[rows, :answer],
            weights=self.weights[rows, :answer],
            group_size=self.group_size,
        )


def pad_left(rows: Sequence[Sequence[int]], value: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(ids, mask) of shape (rows, longest)."""
    width = max(len(row) for row in rows)
    ids = torch.tensor([[value] * (width - len(row)) + list(row) for row in rows])
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
    return ids, mask


def pad_right(rows: Sequence[Sequence[float]], value: float) -> tuple[torch.Tensor, torch.Tensor]:
    """(values, mask) of shape (rows, longest)."""
    width = max(1, max(len(row) for row in rows))
    values = torch.tensor([list(row) + [value] * (width - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
    return values, mask


def completions(groups: Sequence[Sequence[Sampled]], pad_id: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(ids, mask, log-probabilities) of all completions, groups contiguous."""
    flat = [one for group in groups for one in group]
    ids, mask = pad_right([one.ids for one in flat], pad_id)
    logprobs, _ = pad_right([one.logprobs for one in flat], 0.0)
    return ids, mask, logprobs
