"""The data of an update: one step's groups as tensors, and turns that follow from each other joined in one row.

Samples with the same prompt are neighbours, so that it is computed once for all of them. `group_ids` says which samples share a
baseline.

A prompt that begins with an earlier prompt and its completion has been computed already (`joined`). Such turns become one
sample: the first prompt, then the tokens drawn in each turn with the text between the turns, which has weight zero. A token is
predicted from the same tokens as when it was drawn, and the loss is the same sum; only less is computed. The last token of a
completion may be no part of the next prompt, as an end of text is none. It is predicted, and the model is fed the next
prompt's token at its place (`TrainingBatch.fed_ids`).
"""

import dataclasses
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any, Self, TypeVar, cast

import torch

from rlvr_exp.episodes.types import TokenSample
from rlvr_exp.rollouts.groups import Group

PROMPT = ("prompt_ids", "prompt_mask")
"""Fields as wide as the prompts; all others of more than one dimension are as wide as the completions."""


@dataclass(frozen=True)
class TrainingBatch:
    """Samples of one step, N rows: those of a group are neighbours, and in it those of a prompt.

    Raises:
        ValueError: rows of a prompt differ in it, or rows of a group are apart.
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
    """(N, T), zero if there is no advantage"""
    weights: torch.Tensor
    """(N, T): the step's loss is the sum of weight * per-token loss"""
    sizes: tuple[int, ...]
    """Samples of each prompt"""
    group_ids: torch.Tensor
    """(N,): the id of each sample's group, assigned when it was sampled: the samples that share a baseline"""
    kept_token_ids: torch.Tensor | None = None
    """(N, T, K): ids that were kept when each token was drawn, padded with -1; None: the entire vocabulary"""
    fed_ids: torch.Tensor | None = None
    """(N, T) the token that the model is fed at each place; None: the tokens of `completion_ids`"""
    off_policy: bool = False
    """Some samples were drawn before the last update, so that their ratio to the policy is not 1."""

    def __post_init__(self) -> None:
        if sum(self.sizes) != len(self.prompt_ids) or len(self.group_ids) != len(self.prompt_ids):
            raise ValueError(f"TrainingBatch: {len(self.prompt_ids)} samples, and {sum(self.sizes)} of all prompts")
        runs = 1 + int((self.group_ids.diff() != 0).sum())
        if runs != len(self.group_ids.unique()):
            raise ValueError("TrainingBatch: members of a group are no neighbours, or two groups share an id")
        first = self.prompt_ids[[rows.start for rows in self.rows_of]]
        if (self.prompt_ids != first.repeat_interleave(torch.tensor(self.sizes), dim=0)).any():
            raise ValueError("TrainingBatch: samples of a prompt have different prompts")

    @property
    def prompts(self) -> int:
        """Number of prompts."""
        return len(self.sizes)

    @property
    def rows_of(self) -> list[range]:
        """The rows of each prompt."""
        ends = list(accumulate(self.sizes))
        return [range(end - size, end) for end, size in zip(ends, self.sizes, strict=True)]

    def live(self) -> torch.Tensor:
        """(N,) whether any token of the sample's group has an advantage."""
        return torch.isin(self.group_ids, self.group_ids[(self.advantages != 0).any(1)])

    def informative(self) -> bool:
        """Whether the loss has something to learn from besides rewards, if it has other terms."""
        return True

    def select(self, prompts: Sequence[int]) -> Self:
        """Only the samples of the given prompts, trimmed to their own longest prompt and completion."""
        rows_of = self.rows_of
        rows = [row for prompt in prompts for row in rows_of[prompt]]
        prompt = int(self.prompt_mask[rows].sum(1).max())
        answer = max(1, int(self.completion_mask[rows].sum(1).max()))

        def cut(name: str, value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            if name in PROMPT:
                return value[rows, -prompt:]
            return value[rows, :answer] if value.ndim > 1 else value[rows]

        changed = {spec.name: cut(spec.name, getattr(self, spec.name)) for spec in dataclasses.fields(self)}
        return dataclasses.replace(self, **changed | {"sizes": tuple(self.sizes[prompt] for prompt in prompts)})


def collate(
    groups: Sequence[Group], pad_id: int, advantages: torch.Tensor, weights: torch.Tensor, off_policy: bool
) -> TrainingBatch:
    """The training batch of groups.

    Args:
        advantages, weights: (N, T) with T the longest completion, as `completion_mask` of the same groups has it.
    """
    prompt_ids, prompt_mask = pad_left([list(ids) for group in groups for ids in group.prompt_ids], pad_id)
    ids, mask, logprobs = collate_completions([sampled(group) for group in groups], pad_id)
    return TrainingBatch(
        prompt_ids=prompt_ids,
        prompt_mask=prompt_mask,
        completion_ids=ids,
        completion_mask=mask,
        sampling_logprobs=logprobs,
        advantages=advantages,
        weights=weights,
        sizes=prompt_sizes(groups),
        group_ids=group_ids(groups),
        kept_token_ids=collate_kept_token_ids([one for group in groups for one in sampled(group)]),
        off_policy=off_policy,
    )


def sampled(group: Group) -> list[TokenSample]:
    return [cast(TokenSample, answer.sampled) for answer in group.completions]


def prompt_sizes(groups: Sequence[Group]) -> tuple[int, ...]:
    """The number of neighbours with the same prompt, in the order of the samples."""
    return tuple(len(list(same)) for group in groups for _, same in groupby(group.prompt_ids))


def group_ids(groups: Sequence[Group]) -> torch.Tensor:
    """(N,)"""
    return torch.tensor([group.id for group in groups for _ in group.completions])


def rewards_of(groups: Sequence[Group]) -> torch.Tensor:
    """(groups, G), G the size of the largest group; NaN without a verdict, and for missing members of a smaller group."""
    rows = [[math.nan if one is None else one for one in group.rewards] for group in groups]
    return torch.tensor([row + [math.nan] * (max(map(len, rows)) - len(row)) for row in rows])


def members_of(groups: Sequence[Group]) -> torch.Tensor:
    """(groups, G) which of these places have a member: `values[members_of(groups)]` are those of the samples, (N,)."""
    sizes = torch.tensor([len(group.completions) for group in groups])
    return torch.arange(int(sizes.max())) < sizes[:, None]


def completion_mask(groups: Sequence[Group]) -> torch.Tensor:
    """(N, T), 1 for every token that was drawn."""
    return pad_right([one.ids for group in groups for one in sampled(group)], 0)[1]


def unpadded(ids: torch.Tensor, mask: torch.Tensor, rows: Sequence[int]) -> list[list[int]]:
    """The tokens of some rows, without padding."""
    tokens, real = ids[rows].tolist(), mask[rows].tolist()
    return [
        [token for token, there in zip(row, seen, strict=True) if there] for row, seen in zip(tokens, real, strict=True)
    ]


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


def collate_completions(
    groups: Sequence[Sequence[TokenSample]], pad_id: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(ids, mask, log-probabilities) of all completions, groups contiguous."""
    flat = [one for group in groups for one in group]
    ids, mask = pad_right([one.ids for one in flat], pad_id)
    logprobs, _ = pad_right([one.logprobs for one in flat], 0.0)
    return ids, mask, logprobs


def collate_kept_token_ids(samples: Sequence[TokenSample]) -> torch.Tensor | None:
    """(N, T, K) ids that were kept when each token was drawn, padded with -1; None for the entire vocabulary.

    Raises:
        ValueError: some samples were drawn from the entire vocabulary and others not.
    """
    without = sum(one.kept_token_ids is None for one in samples)
    if without == len(samples):
        return None
    if without:
        raise ValueError(
            f"{without} of {len(samples)} samples came without kept token ids; use the same filters for all"
        )
    length, ids = max(len(one.ids) for one in samples), [one.kept_token_ids or () for one in samples]
    widest = max(len(kept) for own in ids for kept in own)
    padded = torch.full((len(samples), length, widest), -1)
    for row, own in enumerate(ids):
        for place, kept in enumerate(own):
            padded[row, place, : len(kept)] = torch.tensor(kept)
    return padded


Batch = TypeVar("Batch", bound=TrainingBatch)
Tokens = tuple[int, ...]
BETWEEN = -1
"""In place of a token's source: it was not drawn, it stands between two turns."""


def joined(batch: Batch) -> Batch:
    """The same samples, turns that follow from each other in one row; the batch itself if none does."""
    prompts = _rows(batch.prompt_ids, batch.prompt_mask)
    completions = _rows(batch.completion_ids, batch.completion_mask)
    following = _following(prompts, completions)
    if not following:
        return batch
    later = set(following.values())
    chains = [[row] for row in range(len(prompts)) if row not in later]
    for chain in chains:
        while chain[-1] in following:
            chain.append(following[chain[-1]])
    lines = [_Line.of(chain, prompts, completions, batch.completion_ids.shape[1]) for chain in chains]
    firsts = [chain[0] for chain in chains]
    sources, _ = pad_right([line.sources for line in lines], BETWEEN)
    ids, mask = pad_right([line.drawn for line in lines], 0)
    made = {"completion_ids": ids, "completion_mask": mask, "fed_ids": pad_right([line.fed for line in lines], 0)[0]}
    values = {spec.name: getattr(batch, spec.name) for spec in dataclasses.fields(batch) if spec.name not in made}
    wide = {name for name, value in values.items() if isinstance(value, torch.Tensor) and value.ndim > 1}
    for name in wide - {*PROMPT}:
        made[name] = _placed(values[name], sources, -1 if name == "kept_token_ids" else 0)
    of_rows = {name: value[firsts] for name, value in values.items() if isinstance(value, torch.Tensor)}
    sizes = [len(list(same)) for _, same in groupby(firsts, key=lambda row: (int(batch.group_ids[row]), prompts[row]))]
    return dataclasses.replace(batch, **{**of_rows, **made, "sizes": tuple(sizes)})


def _following(prompts: Sequence[Tokens], completions: Sequence[Tokens]) -> dict[int, int]:
    """The row that goes on from a row, at most one from each: that with the longest prompt of those before it."""
    ends: dict[int, dict[Tokens, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
        if completion:
            seen = prompt + completion[:-1]
            ends[len(seen)][seen].append(row)
    found = {}
    for row, prompt in enumerate(prompts):
        for length in sorted((length for length in ends if length < len(prompt)), reverse=True):
            if earlier := ends[length].get(prompt[:length]):
                found[earlier.pop(0)] = row
                break
    return found


@dataclasses.dataclass(frozen=True)
class _Line:
    """The tokens after the first prompt of a chain of rows."""

    drawn: list[int]
    """The tokens to predict."""
    fed: list[int]
    sources: list[int]
    """Of each token among those of the batch, (N * T); BETWEEN for one that was not drawn."""

    @classmethod
    def of(cls, chain: Sequence[int], prompts: Sequence[Tokens], completions: Sequence[Tokens], width: int) -> "_Line":
        line = cls([], [], [])
        for row, later in zip(chain, [*chain[1:], None], strict=True):
            completion = completions[row]
            line.drawn.extend(completion)
            line.fed.extend(completion)
            line.sources.extend(range(row * width, row * width + len(completion)))
            if later is not None:
                between = prompts[later][len(prompts[row]) + len(completion) :]
                line.fed[-1] = prompts[later][len(prompts[row]) + len(completion) - 1]
                line.drawn.extend(between)
                line.fed.extend(between)
                line.sources.extend([BETWEEN] * len(between))
        return line


def _placed(values: torch.Tensor, sources: torch.Tensor, fill: float) -> torch.Tensor:
    """(N, T, ...) values of the batch's tokens at their new places; `fill` between turns and after them."""
    found = values.flatten(0, 1)[sources.clamp(min=0)]
    found[sources == BETWEEN] = fill
    return found


def _rows(ids: torch.Tensor, mask: torch.Tensor) -> list[Tokens]:
    return [tuple(row[seen].tolist()) for row, seen in zip(ids, mask.bool(), strict=True)]
