"""Completions of several turns in one row, where a later turn's prompt goes on from an earlier turn.

A prompt that begins with an earlier prompt and its completion has been computed already. Such turns become one sample: the first
prompt, then what was drawn in each turn with the text between the turns, which has weight zero. A token is predicted from what it was
predicted from when it was drawn, and the loss is the same sum; only less is computed.

The last token of a completion may be no part of the next prompt, as an end of text is none. It is predicted, and the next prompt's
token at its place is what the model is fed there (`TrainingBatch.fed_ids`).
"""

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TypeVar

import torch

from rlvr_exp.algorithms.training_batch import PROMPT, TrainingBatch, pad_right

Batch = TypeVar("Batch", bound=TrainingBatch)
Tokens = tuple[int, ...]
BETWEEN = -1
"""In place of a token's source: it was not drawn, it stands between two turns."""


def joined(batch: Batch) -> Batch:
    """The same samples, turns that follow from each other in one row; the batch itself where none does."""
    prompts = _rows(batch.prompt_ids, batch.prompt_mask)
    completions = _rows(batch.completion_ids, batch.completion_mask)
    following = _following(prompts, completions)
    if not following:
        return batch
    later = set(following.values())
    chains = [[*_chain(row, following)] for row in range(len(prompts)) if row not in later]
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


def _chain(row: int, following: dict[int, int]) -> Iterator[int]:
    yield row
    while row in following:
        row = following[row]
        yield row


@dataclasses.dataclass(frozen=True)
class _Line:
    """What follows the first prompt of a chain of rows."""

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
    """(N, T, ...) values of the batch's tokens, where the tokens are now; `fill` between turns and after them."""
    found = values.flatten(0, 1)[sources.clamp(min=0)]
    found[sources == BETWEEN] = fill
    return found


def _rows(ids: torch.Tensor, mask: torch.Tensor) -> list[Tokens]:
    return [tuple(row[seen].tolist()) for row, seen in zip(ids, mask.bool(), strict=True)]
