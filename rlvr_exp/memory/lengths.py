"""Lengths of the data in tokens, for a memory plan of the passes that a run will have and not of the longest allowed.

Read with the checkpoint's own tokenizer.json, without torch. Unknown where that file is not on this machine, where prompts
grow from turn to turn, and where the data are not here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from random import Random

from rlvr_exp.config.checkpoint_files import tokenizer_folder
from rlvr_exp.config.environment import SINGLE_TURN
from rlvr_exp.config.needs import EMBEDDED_MODELS, weights_folder
from rlvr_exp.config.roles import role_names
from rlvr_exp.config.schema import Config
from rlvr_exp.config.stages import reads
from rlvr_exp.launch.data_check import domain_of, rl_split
from rlvr_exp.tasks.base import Task

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


def lengths_of(config: Config, split: str) -> Lengths | None:
    """None where they are unknown. "": the split that the stage trains on."""
    if getattr(config.environment, "_target_", SINGLE_TURN) != SINGLE_TURN or len(role_names(config)) > 1:
        return None
    folder = _tokenizer(config)
    domain = domain_of(config) if folder else None
    if folder is None or domain is None:
        return None
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    imitates = getattr(config.algorithm, "max_sequence_tokens", 0) if reads(config, "algorithm") else 0
    tasks: Sequence[Task] = domain.splits().get(split or ("train" if imitates else rl_split(domain)), ())
    tasks = tasks[:: max(1, len(tasks) // TASKS)]
    markup = 0 if config.model.chat_template == "never" else MARKUP

    def count(text: str | None) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids) if text else 0

    pairs = [
        (count(domain.task_prompt(task)) + markup, count(domain.gold_completion(task)) * bool(imitates))
        for task in tasks
    ]
    most = imitates or config.model.max_prompt_tokens
    kept = [(prompt, answer) for prompt, answer in pairs if prompt + answer <= most]
    return Lengths(*zip(*kept, strict=True)) if kept else None


def _tokenizer(config: Config) -> Path | None:
    """The folder of the tokenizer; None where it is not on this machine, or is made from the data."""
    model = config.model
    if model.scratch.tokenizer:
        return None
    weights = EMBEDDED_MODELS / model.embedded if model.is_embedded else weights_folder(model)
    folder = tokenizer_folder(model, weights) if weights else None
    return folder if folder and (folder / "tokenizer.json").is_file() else None
