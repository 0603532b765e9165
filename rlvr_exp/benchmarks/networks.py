"""Inside a network, on prompts of the data: the attention of its heads, and the embedding of tasks.

`benchmark=attention`. Over prompts of the data: the token before (previous), and in grid puzzles, from a cell of an output
grid, the same cell of its input grid if both have one shape (same cell). Over random tokens that are repeated once, in the
second half: the token behind the earlier occurrence (induction, the prefix-matching score of Olsson et al. 2022,
arXiv:2209.11895) and that occurrence itself (copy). A score is the mean attention paid there, over prompts or sequences.

`benchmark=embedding`. A prompt's embedding is the last layer's output at its last token, from which the answer's first
token is drawn. Its mean measures the likeness of groups of tasks.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

import torch

from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.seeds import derive
from rlvr_exp.core.statistics import Estimate, mean_interval
from rlvr_exp.models.policy import Policy, load_policy
from rlvr_exp.records.context import RunContext
from rlvr_exp.report.plots import dots

PREVIOUS, SAME_CELL, INDUCTION, COPY = "previous", "same_cell", "induction", "copy"
UNIFORM = "uniform"
"""The row of a head that pays all earlier tokens the same."""
Places = Sequence[tuple[int, int]]
"""Pairs of a token and the earlier one that it may attend to."""
Scores = Mapping[str, Sequence[torch.Tensor]]
"""By measure, of each prompt or sequence: (layers + 1, heads), the last of a uniform head."""


def attention(config: Config, context: RunContext) -> tuple[str, dict[str, Any]]:
    """A table of heads, and each score with its interval. Draws the table as a picture, too.

    Raises:
        InputError: the policy words prompts as chat, or the split has no tasks.
    """
    policy = load_policy(config.model, config.seed)
    if policy.chat:
        what = "prompts are measured as plain text"
        raise InputError(
            InputProblem("model.chat_template", what, "a chat template", "never", "", "model.chat_template=never")
        )
    policy.model.set_attn_implementation("eager")  # The others do not say what they attend to.
    policy.model.eval()
    scores = {**_of_sequences(policy, config), **_of_prompts(policy, config, context)}
    means = {name: torch.stack([*found]).mean(0) for name, found in scores.items()}
    shown = {name: mean[:-1].tolist() for name, mean in means.items()}
    dots("Attention of heads: the larger a dot, the more", shown).write(context.directory / "benchmark")
    rows, heads = next(iter(means.values())).shape
    places = [(layer, head) for layer in range(rows - 1) for head in range(heads)]
    lines = [f"| layer, head | {' | '.join(means)} |", f"|{' --- |' * (len(means) + 1)}"]
    for layer, head in places:
        lines.append(
            f"| {layer}, {head} | {' | '.join(f'{float(mean[layer, head]):.3f}' for mean in means.values())} |"
        )
    lines.append(f"| {UNIFORM} | {' | '.join(f'{fmean(mean[-1].tolist()):.3f}' for mean in means.values())} |")
    metrics: dict[str, Any] = {}
    for name, found in scores.items():
        values = torch.stack([*found])
        for layer, head in places:
            estimate = Estimate(*mean_interval(values[:, layer, head].tolist()))
            metrics[f"{name}/layer_{layer}_head_{head}"] = estimate._asdict()
        metrics[f"{name}/{UNIFORM}"] = Estimate(*mean_interval(values[:, -1, 0].tolist()))._asdict()
    return "\n".join(lines), metrics


def _of_sequences(policy: Policy, config: Config) -> Scores:
    options = config.benchmark
    if 2 * options.length > policy.max_tokens:
        what, got = "sequences are of twice as many tokens, longer than the policy takes", str(options.length)
        raise InputError(InputProblem("benchmark.length", what, got, f"at most {policy.max_tokens // 2}"))
    generator = torch.Generator().manual_seed(derive(config.seed, "repeated"))
    rows = policy.model.get_input_embeddings().num_embeddings
    found: dict[str, list[torch.Tensor]] = {INDUCTION: [], COPY: []}
    for _ in range(options.sequences):
        half = torch.randint(2, rows, (options.length,), generator=generator).tolist()
        heads, second = _attention(policy, half + half), range(options.length, 2 * options.length)
        found[INDUCTION].append(_paid(heads, [(place, place - options.length + 1) for place in second]))
        found[COPY].append(_paid(heads, [(place, place - options.length) for place in second]))
    return found


def _of_prompts(policy: Policy, config: Config, context: RunContext) -> Scores:
    domain, options = build(config.data), config.benchmark
    tasks = domain.splits().get(options.split, ())[: options.tasks]
    if not tasks:
        raise InputError(InputProblem("benchmark.split", "no such split", options.split, ", ".join(domain.sizes())))
    found: dict[str, list[torch.Tensor]] = {PREVIOUS: [], SAME_CELL: []}
    for done, task in enumerate(tasks):
        context.progress(kind="phase", name="prompts", done=done, total=len(tasks))
        text = domain.task_prompt(task)
        encoded = policy.tokenizer(text)
        if not 1 < len(encoded.input_ids) <= policy.max_tokens:
            continue
        heads = _attention(policy, encoded.input_ids)
        found[PREVIOUS].append(_paid(heads, [(place, place - 1) for place in range(1, len(encoded.input_ids))]))
        cells = [(encoded.char_to_token(later), encoded.char_to_token(earlier)) for earlier, later in same_cells(text)]
        if cells:
            found[SAME_CELL].append(_paid(heads, cells))
    return {name: some for name, some in found.items() if some}


def same_cells(prompt: str) -> Iterator[tuple[int, int]]:
    """Characters of a bare puzzle's prompt: a cell of an input grid, and the same cell of its output of equal shape."""
    grids: list[tuple[str, list[list[int]]]] = []
    start = 0
    for line in prompt.split("\n"):
        cells = [start + place for place, character in enumerate(line) if character.isdigit()]
        if cells and grids:
            grids[-1][1].append(cells)
        elif not cells:
            grids.append((line, []))
        start += len(line) + 1
    for (mark, given), (after, wanted) in pairwise(grids):
        if (mark, after) == ("I", "O") and [*map(len, given)] == [*map(len, wanted)]:
            for pair in zip(given, wanted, strict=True):
                yield from zip(*pair, strict=True)


@torch.no_grad()
def _attention(policy: Policy, ids: Sequence[int]) -> torch.Tensor:
    """(layers + 1, heads, tokens, tokens), the last of a uniform head."""
    given = torch.tensor([ids], device=policy.model.device)
    paid = torch.cat([*policy.model(input_ids=given, output_attentions=True, use_cache=False).attentions]).float().cpu()
    uniform = torch.ones(len(ids), len(ids)).tril() / torch.arange(1, len(ids) + 1)[:, None]
    return torch.cat([paid, uniform.expand(1, *paid.shape[1:])])


def _paid(heads: torch.Tensor, places: Places) -> torch.Tensor:
    """(layers + 1, heads): the mean attention over pairs of places."""
    later, earlier = (torch.tensor(side) for side in zip(*places, strict=True))
    return heads[:, :, later, earlier].mean(-1)


@torch.no_grad()
def embedding(config: Config, context: RunContext) -> tuple[str, dict[str, Any]]:
    """The mean embedding of the first prompts of a split, a number for each unit of the hidden state.

    Raises:
        InputError: the split has no task whose prompt fits.
    """
    policy, domain, options = load_policy(config.model, config.seed), build(config.data), config.benchmark
    tasks = domain.splits().get(options.split, ())[: options.tasks]
    policy.model.eval()
    found: list[torch.Tensor] = []
    for done, task in enumerate(tasks):
        context.progress(kind="phase", name="prompts", done=done, total=len(tasks))
        ids = policy.encode_prompt(domain.task_prompt(task))
        if len(ids) <= min(policy.max_tokens, config.model.max_prompt_tokens):
            given = torch.tensor([ids], device=policy.model.device)
            states = policy.model(input_ids=given, output_hidden_states=True, use_cache=False).hidden_states
            found.append(states[-1][0, -1].double().cpu())
    if not found:
        what, sizes = "no task with a prompt that fits", ", ".join(domain.sizes())
        raise InputError(InputProblem("benchmark.split", what, options.split, sizes, "", "model.max_prompt_tokens=N"))
    mean = torch.stack(found).mean(0).tolist()
    return f"mean embedding of {len(found)} prompts: {len(mean)} numbers", {"prompts": len(found), "mean": mean}
