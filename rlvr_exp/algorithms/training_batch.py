"""The data of an update: one step's groups as tensors."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch

from rlvr_exp.episodes.types import TokenSample
from rlvr_exp.rollouts.groups import Group

PROMPT = ("prompt_ids", "prompt_mask")
"""Fields as wide as the prompts; all others of more than one dimension are as wide as the completions."""


@dataclass(frozen=True)
class TrainingBatch:
    """Samples of one step, groups contiguous: row g * G + i is sample i of group g. N = groups * G.

    Raises:
        ValueError: a group does not have exactly G members, or members have different prompts.
    """

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
    """(N, T), zero where there is no advantage"""
    weights: torch.Tensor
    """(N, T): the step's loss is the sum of weight * per-token loss"""
    group_size: int
    group_ids: torch.Tensor
    """(N,): the id of each sample's group, assigned when it was sampled"""
    kept_token_ids: torch.Tensor | None = None
    """(N, T, K): ids that were kept when each token was drawn, padded with -1; None: the entire vocabulary"""
    off_policy: bool = False
    """Some samples were drawn before the last update, so that their ratio to the policy is not 1."""

    def __post_init__(self) -> None:
        if len(self.prompt_ids) % self.group_size or len(self.group_ids) != len(self.prompt_ids):
            raise ValueError(f"TrainingBatch: {len(self.prompt_ids)} samples are not complete groups of {self.group_size}")
        ids = self.group_ids.view(self.groups, self.group_size)
        prompts = self.prompt_ids.view(self.groups, self.group_size, -1)
        if (ids != ids[:, :1]).any() or len(ids[:, 0].unique()) != self.groups:
            raise ValueError(f"TrainingBatch: groups do not have exactly {self.group_size} members with the same id")
        if (prompts != prompts[:, :1]).any():
            raise ValueError("TrainingBatch: members of a group have different prompts")

    @property
    def groups(self) -> int:
        return self.prompt_ids.shape[0] // self.group_size

    def live(self) -> torch.Tensor:
        """(groups,) whether any token of the group has an advantage."""
        return (self.advantages != 0).any(1).view(self.groups, self.group_size).any(1)

    def select(self, groups: Sequence[int]) -> Self:
        """Only the given groups, trimmed to their own longest prompt and completion."""
        rows = [g * self.group_size + i for g in groups for i in range(self.group_size)]
        prompt = int(self.prompt_mask[rows].sum(1).max())
        answer = max(1, int(self.completion_mask[rows].sum(1).max()))

        def cut(name: str, value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            if name in PROMPT:
                return value[rows, -prompt:]
            return value[rows, :answer] if value.ndim > 1 else value[rows]

        return dataclasses.replace(
            self, **{spec.name: cut(spec.name, getattr(self, spec.name)) for spec in dataclasses.fields(self)}
        )


def collate(
    groups: Sequence[Group], pad_id: int, advantages: torch.Tensor, weights: torch.Tensor, off_policy: bool
) -> TrainingBatch:
    """The training batch of groups of the same size.

    Args:
        advantages, weights: (N, T) with T the longest completion, as `completion_mask` of the same groups has it.
    """
    size = len(groups[0].completions)
    prompt_ids, prompt_mask = pad_left([list(group.prompt_ids) for group in groups for _ in group.completions], pad_id)
    samples = sampled(groups)
    ids, mask = pad_right([one.ids for one in samples], pad_id)
    return TrainingBatch(
        prompt_ids=prompt_ids,
        prompt_mask=prompt_mask,
        completion_ids=ids,
        completion_mask=mask,
        sampling_logprobs=pad_right([one.logprobs for one in samples], 0.0)[0],
        advantages=advantages,
        weights=weights,
        group_size=size,
        group_ids=torch.tensor([group.id for group in groups for _ in range(size)]),
        kept_token_ids=collate_kept_token_ids(samples),
        off_policy=off_policy,
    )


def sampled(groups: Sequence[Group]) -> list[TokenSample]:
    """The completions of all groups, groups contiguous."""
    return [one.sampled for group in groups for one in group.completions]


def rewards_of(groups: Sequence[Group]) -> torch.Tensor:
    """(groups, G), NaN without a verdict."""
    return torch.tensor([[float("nan") if one is None else one for one in group.rewards] for group in groups])


def completion_mask(groups: Sequence[Group]) -> torch.Tensor:
    """(N, T), 1 for every token that was drawn."""
    return pad_right([one.ids for one in sampled(groups)], 0)[1]


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


def collate_kept_token_ids(samples: Sequence[TokenSample]) -> torch.Tensor | None:
    """(N, T, K) ids that were kept when each token was drawn, padded with -1; None for the entire vocabulary.

    Raises:
        ValueError: some samples were drawn from the entire vocabulary and others not.
    """
    without = sum(one.kept_token_ids is None for one in samples)
    if without == len(samples):
        return None
    if without:
        raise ValueError(f"{without} of {len(samples)} samples came without kept token ids; use the same filters for all")
    length = max(len(one.ids) for one in samples)
    widest = max(len(kept) for one in samples for kept in one.kept_token_ids)
    padded = torch.full((len(samples), length, widest), -1)
    for row, one in enumerate(samples):
        for place, kept in enumerate(one.kept_token_ids):
            padded[row, place, : len(kept)] = torch.tensor(kept)
    return padded
