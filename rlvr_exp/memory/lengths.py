"""Lengths of the data in tokens, for a memory plan of the passes that a run will have and not of the longest allowed.

Read with the checkpoint's own tokenizer.json, without torch. Unknown where that file is not on this machine, where prompts
grow from turn to turn, and where the data are not here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from rlvr_exp.config.checkpoint_files import tokenizer_folder
from rlvr_exp.config.data import SINGLE_TURN
from rlvr_exp.config.model import EMBEDDED_MODELS
from rlvr_exp.config.needs import weights_folder
from rlvr_exp.config.roles import role_names
from rlvr_exp.config.schema import Config, reads
from rlvr_exp.launch.data_check import domain_of, rl_split
from rlvr_exp.tasks.base import Domain

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TASKS = 1000
"""The most tasks of a split that are read, evenly spread over it."""
MARKUP = 48
"""Tokens that a chat template may add to a prompt with its answer."""
DRAWS = 200
"""Batches that are drawn to see how long the longest of a run is."""


@dataclass(frozen=True)
class Lengths:
    """Tokens of the tasks of a split, none longer than allowed."""

    prompts: Sequence[int]
    answers: Sequence[int]
    """Of the reference answers; 0 for a task without one."""
    every: int = 1
    """Tasks of the split for each task that was read."""

    @property
    def total(self) -> int:
        """Tokens of all examples of imitation in the split."""
        return self.every * sum(
            prompt + answer for prompt, answer in zip(self.prompts, self.answers, strict=True) if answer
        )

    def prompt(self, number: int) -> int:
        """The mean of so many prompts in the longest of many batches."""
        return _longest_mean(self.prompts, number, number)

    def example(self, batch: int, size: int) -> tuple[int, int]:
        """(prompt, answer) of the examples of imitation, as means of the longest pass: a batch is sorted and cut into passes of
        `size`."""
        whole = [prompt + answer for prompt, answer in zip(self.prompts, self.answers, strict=True) if answer]
        total = _longest_mean(whole, batch, size)
        answer = ceil(sum(self.answers) / max(1, sum(map(bool, self.answers))))
        return max(1, total - answer), min(answer, total - 1)


def _longest_mean(values: Sequence[int], batch: int, size: int) -> int:
    rng, values = Random(0), list(values)
    if len(values) <= size:
        return ceil(sum(values) / len(values))
    drawn = (sorted(rng.sample(values, min(batch, len(values)))) for _ in range(DRAWS))
    return ceil(max(sum(one[-size:]) for one in drawn) / size)


class DataLengths:
    """The lengths of a run's data, by split. `of`: None where they are unknown."""

    def __init__(self, config: Config):
        self._config = config
        self._known: dict[str, Lengths | None] = {}
        self._imitates = getattr(config.algorithm, "max_sequence_tokens", 0) if reads(config, "algorithm") else 0

    def of(self, split: str) -> Lengths | None:
        """Of a split; "": of the one that the stage trains on."""
        if self._sources is None:
            return None
        split = split or ("train" if self._imitates else rl_split(self._sources[0]))
        if split not in self._known:
            self._known[split] = self._read(split, *self._sources)
        return self._known[split]

    @cached_property
    def _sources(self) -> tuple[Domain, "Tokenizer"] | None:
        config = self._config
        if getattr(config.environment, "_target_", SINGLE_TURN) != SINGLE_TURN or len(role_names(config)) > 1:
            return None
        folder = _tokenizer(config)
        domain = domain_of(config) if folder else None
        if folder is None or domain is None:
            return None
        from tokenizers import Tokenizer

        return domain, Tokenizer.from_file(str(folder / "tokenizer.json"))

    def _read(self, split: str, domain: Domain, tokenizer: "Tokenizer") -> Lengths | None:
        tasks = domain.splits().get(split, ())
        every = -(-len(tasks) // TASKS) or 1
        tasks = tasks[::every]
        if self._imitates:
            tasks = [shown for one in tasks for shown in domain.demonstrations(one)]
        markup = 0 if self._config.model.chat_template == "never" else MARKUP
        answers = [domain.gold_completion(task) or "" if self._imitates else "" for task in tasks]
        texts = [*map(domain.task_prompt, tasks), *answers]
        counts = [len(one.ids) for one in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
        pairs = zip((count + markup for count in counts), counts[len(tasks) :], strict=False)
        most = self._imitates or self._config.model.max_prompt_tokens
        kept = [(prompt, answer) for prompt, answer in pairs if prompt + answer <= most]
        if not kept:
            return None
        prompts, golds = zip(*kept, strict=True)
        return Lengths(prompts, golds, every)


def _tokenizer(config: Config) -> Path | None:
    """The folder of the tokenizer; None where it is not on this machine, or is made from the data."""
    model = config.model
    if model.scratch.tokenizer:
        return None
    weights = EMBEDDED_MODELS / model.embedded if model.is_embedded else weights_folder(model)
    folder = tokenizer_folder(model, weights) if weights else None
    return folder if folder and (folder / "tokenizer.json").is_file() else None
