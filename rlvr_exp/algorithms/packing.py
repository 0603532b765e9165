"""Tokens of a micro-batch as the model's inputs: groups packed into one row, or one row per completion.

A packed row is, group after group, `[prompt without its last token, then for each completion: the last prompt token,
c1 .. c(T-1)]`: the prompt is computed once for all completions that share it, and nothing is padded. Position ids restart
at the prompt's end in every segment and the attention (packing_attention) lets a segment see its group's prompt and
itself, so each completion's log-probabilities equal those of its own row. Repeating the last prompt token gives every
completion its own position to be predicted from. Knows nothing of models or losses.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby

import torch

IGNORED = -100
"""Label of a position that predicts nothing."""
FILLING = 64
"""The most tokens of a segment that only fills a row up: attention grows with their square."""


@dataclass(frozen=True)
class PackedLayout:
    """Where the tokens of a packed row belong: for each group the length of its prefix, and of each of its segments."""

    prefixes: tuple[int, ...]
    segments: tuple[tuple[int, ...], ...]

    @property
    def longest(self) -> int:
        """Tokens of the longest prompt with a completion: how far back any attention of the row reaches."""
        return max(prefix + max(lengths) for prefix, lengths in zip(self.prefixes, self.segments, strict=True))

    @property
    def widths(self) -> list[int]:
        """Tokens of each group."""
        return [prefix + sum(lengths) for prefix, lengths in zip(self.prefixes, self.segments, strict=True)]


@dataclass(frozen=True)
class ModelRows:
    """The inputs of a forward pass, and the positions of its scores in (samples, T), as in the loss."""

    input_ids: torch.Tensor
    """(rows, width)"""
    position_ids: torch.Tensor
    attention_mask: torch.Tensor | None
    """(rows, width), 1 for tokens; None where the layout decides what is visible."""
    layout: PackedLayout | None
    """The layout of a packed row; None for one row per completion."""
    scored: torch.Tensor
    """(m,) positions that predict a token, counted through all rows."""
    labels: torch.Tensor
    """(m,) the tokens predicted"""
    places: torch.Tensor
    """(m,) where each of them stands in (samples, T), counted through all rows"""
    shape: tuple[int, int]
    """(samples, T)"""

    def to(self, device: torch.device) -> "ModelRows":
        moved = {name: value.to(device) for name, value in vars(self).items() if isinstance(value, torch.Tensor)}
        return replace(self, **moved)

    def of(self, samples: Sequence[int], count: int) -> "ModelRows":
        """The same rows as a subset `samples` of `count` samples."""
        width = self.shape[1]
        row = torch.tensor(samples, device=self.places.device)[self.places // width]
        return replace(self, places=row * width + self.places % width, shape=(count, width))

    def shifted_labels(self) -> torch.Tensor:
        """(rows, width): the token that each position predicts, IGNORED where it predicts none."""
        labels = torch.full_like(self.input_ids, IGNORED).flatten()
        return labels.index_copy(0, self.scored, self.labels).view(self.input_ids.shape)

    def placed(self, values: torch.Tensor) -> torch.Tensor:
        """(m,) values of the predictions -> (samples, T), zero where nothing is predicted."""
        return values.new_zeros(self.shape[0] * self.shape[1]).index_put((self.places,), values).view(self.shape)

    def unpacked(self, values: torch.Tensor) -> torch.Tensor:
        """(rows, width) values of all positions -> (samples, T), each token's value at the position that predicts it."""
        return self.placed(values.flatten()[self.scored])

    def chosen(self, values: torch.Tensor) -> torch.Tensor:
        """(samples, T, ...) -> (m, ...): the values at each prediction."""
        return values.flatten(0, 1)[self.places]


def packed(
    prompts: Sequence[Sequence[int]],
    completions: Sequence[Sequence[int]],
    owners: Sequence[int],
    width: int,
    fed: Sequence[Sequence[int]] | None = None,
) -> ModelRows:
    """All samples in one row.

    Args:
        prompts, completions: token ids of each sample, unpadded; those of a group are neighbours.
        owners: the group of each sample.
        width: T, the columns of (samples, T).
        fed: the tokens that the model is given in place of the completions, which it predicts; None: these.

    Raises:
        ValueError: samples of a group differ in their prompt.
    """
    fed = completions if fed is None else fed
    ids, positions, scored, labels, places = [], [], [], [], []
    prefixes, segments = [], []
    for _, members in groupby(range(len(owners)), key=owners.__getitem__):
        rows = list(members)
        prompt = prompts[rows[0]]
        if any(prompts[row] != prompt for row in rows):
            raise ValueError(
                f"packed: samples of group {owners[rows[0]]} differ in their prompt; groups must be contiguous"
            )
        ids += prompt[:-1]
        positions += range(len(prompt) - 1)
        for row in rows:
            completion = completions[row]
            scored += range(len(ids), len(ids) + len(completion))
            ids += [prompt[-1], *fed[row][:-1]]
            positions += range(len(prompt) - 1, len(prompt) - 1 + len(completion))
            labels += completion
            places += range(row * width, row * width + len(completion))
        prefixes.append(len(prompt) - 1)
        segments.append(tuple(len(completions[row]) for row in rows))
    layout = PackedLayout(tuple(prefixes), tuple(segments))
    tensors = (torch.tensor(values) for values in (scored, labels, places))
    return ModelRows(torch.tensor([ids]), torch.tensor([positions]), None, layout, *tensors, (len(owners), width))


def row_by_row(
    prompts: Sequence[Sequence[int]],
    completions: Sequence[Sequence[int]],
    width: int,
    fed: Sequence[Sequence[int]] | None = None,
) -> ModelRows:
    """One row per sample, padded on the right, where no causal model can see it. Arguments as of `packed`."""
    rows = [[*prompt, *given] for prompt, given in zip(prompts, completions if fed is None else fed, strict=True)]
    longest = max(len(row) for row in rows)
    starts = [index * longest + len(prompt) - 1 for index, prompt in enumerate(prompts)]
    scored = [
        start + step for start, completion in zip(starts, completions, strict=True) for step in range(len(completion))
    ]
    places = [row * width + step for row, completion in enumerate(completions) for step in range(len(completion))]
    labels = [token for completion in completions for token in completion]
    return ModelRows(
        input_ids=torch.tensor([row + row[:1] * (longest - len(row)) for row in rows]),
        position_ids=torch.arange(longest).expand(len(rows), -1),
        attention_mask=torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows]),
        layout=None,
        scored=torch.tensor(scored),
        labels=torch.tensor(labels),
        places=torch.tensor(places),
        shape=(len(rows), width),
    )


def packed_examples(examples: Sequence[tuple[Sequence[int], Sequence[int]]]) -> ModelRows:
    """Token ids and labels of unrelated examples in one row, each a segment that sees itself alone.

    A label is the token at its own place, or IGNORED; the last token of an example predicts nothing and is left out.
    """
    ids, positions, scored, targets = [], [], [], []
    for tokens, labels in examples:
        start = len(ids)
        ids += tokens[:-1]
        positions += range(len(tokens) - 1)
        learned = [place for place in range(1, len(labels)) if labels[place] != IGNORED]
        scored += [start + place - 1 for place in learned]
        targets += [labels[place] for place in learned]
    lengths = tuple((len(tokens) - 1,) for tokens, _ in examples)
    tensors = (torch.tensor(values, dtype=torch.long) for values in (scored, targets, range(len(targets))))
    layout = PackedLayout((0,) * len(lengths), lengths)
    return ModelRows(torch.tensor([ids]), torch.tensor([positions]), None, layout, *tensors, (1, len(targets)))


def filled(rows: ModelRows, width: int) -> ModelRows:
    """A packed row with segments of zeros at its end, from which nothing is learned, up to `width` tokens."""
    layout, missing = rows.layout, width - rows.input_ids.shape[1]
    if layout is None or missing <= 0:
        return rows
    longest = min(FILLING, layout.longest)
    lengths = [longest] * (missing // longest) + [missing % longest] * (missing % longest > 0)
    device = rows.input_ids.device
    return replace(
        rows,
        input_ids=torch.cat([rows.input_ids, torch.zeros((1, missing), dtype=torch.long, device=device)], 1),
        position_ids=torch.cat([rows.position_ids, torch.arange(missing, device=device)[None] % longest], 1),
        layout=PackedLayout((*layout.prefixes, *[0] * len(lengths)), (*layout.segments, *((one,) for one in lengths))),
    )


def owners_and_segments(layout: PackedLayout) -> tuple[torch.Tensor, torch.Tensor]:
    """(width,) the group of each token of a packed row, and its segment counted through the row; -1 in a prefix."""
    groups, segments, count = [], [], 0
    for number, (prefix, lengths) in enumerate(zip(layout.prefixes, layout.segments, strict=True)):
        groups += [number] * (prefix + sum(lengths))
        segments += [-1] * prefix
        for length in lengths:
            segments += [count] * length
            count += 1
    return torch.tensor(groups), torch.tensor(segments)


def starts(lengths: Sequence[int]) -> list[int]:
    """The start of each of consecutive segments of these lengths."""
    return [0, *accumulate(lengths)][:-1]
