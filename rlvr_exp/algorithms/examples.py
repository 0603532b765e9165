"""What imitation learns from: prompts with their answers as token ids, the loss on the answer alone."""

from collections.abc import Callable, Sequence
from random import Random

from datasets import Dataset

from rlvr_exp.models.policy import Policy
from rlvr_exp.tasks.base import Domain, Task

IGNORED = -100
"""The label of a token without a loss."""
Example = dict[str, list[int]]
"""`input_ids` and `labels`, equally long."""


def example(policy: Policy, prompt: str, answer: str) -> Example:
    """A prompt and the answer to learn after it."""
    given, learned = policy.encode_prompt(prompt), policy.encode_completion(answer)
    return {"input_ids": given + learned, "labels": [IGNORED] * len(given) + learned}


def length(one: Example) -> int:
    """In tokens."""
    return len(one["input_ids"])


class Examples:
    """An example of every demonstration of a task that has a gold and fits.

    Args:
        longest: tokens of the longest example; longer ones are left out.
    """

    def __init__(self, policy: Policy, domain: Domain, tasks: Sequence[Task], longest: int):
        self._policy, self._domain, self._longest = policy, domain, longest
        self._kept: list[tuple[Task, str, Example]] = []
        self._left_out = {"no gold answer": 0, "too long": 0}
        for task in (shown for one in tasks for shown in domain.demonstrations(one)):
            gold = domain.gold_completion(task)
            if gold is None:
                self._left_out["no gold answer"] += 1
                continue
            one = example(policy, domain.task_prompt(task), gold)
            if length(one) > longest:
                self._left_out["too long"] += 1
                continue
            self._kept.append((task, gold, one))

    @property
    def left_out(self) -> dict[str, int]:
        """Tasks that are not imitated, by reason."""
        return {reason: count for reason, count in self._left_out.items() if count}

    @property
    def characters(self) -> int:
        """Of all golds together, without what ends them."""
        return sum(len(gold) for _, gold, _ in self._kept)

    @property
    def dataset(self) -> Dataset:
        return Dataset.from_list([one for _, _, one in self._kept])

    def variant(self, index: int, rng: Random) -> Example:
        """An example in another form of its task (`Domain.variant`); as it is where the other form is too long."""
        task, gold, one = self._kept[index]
        changed = self._domain.variant(task, rng)
        if changed is task:
            return one
        other = example(self._policy, self._domain.task_prompt(changed), gold)
        return other if length(other) <= self._longest else one

    def by(self, key: Callable[[Task], str]) -> dict[str, list[int]]:
        """The indices of examples by a property of their tasks."""
        found: dict[str, list[int]] = {}
        for place, (task, _, _) in enumerate(self._kept):
            found.setdefault(key(task), []).append(place)
        return found

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, index: int) -> Example:
        return self._kept[index][2]
