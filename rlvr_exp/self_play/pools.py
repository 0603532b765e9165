"""What the rows of all rounds so far are to imitation: prompts and answers."""

from collections.abc import Sequence
from random import Random

from rlvr_exp.algorithms.examples import Example, Examples, example, length
from rlvr_exp.models.policy import Policy
from rlvr_exp.self_play.found import Found
from rlvr_exp.tasks.base import Domain


class Fixed:
    """Examples that have one form."""

    def __init__(self, examples: Sequence[Example]):
        self._examples = examples

    def __len__(self) -> int:
        return len(self._examples)

    def variant(self, index: int, rng: Random) -> Example:
        return self._examples[index]


def pool_of(policy: Policy, domain: Domain, rows: Sequence[Found], kind: str, longest: int) -> Examples | Fixed:
    """The examples of rows of one kind; those above `longest` tokens are left out."""
    if kind != "refined":
        return Examples(policy, domain, [row.solved for row in rows], longest)
    made = []
    for row in rows:
        answer = domain.gold_completion(row.solved)
        prompt = domain.retry_prompt(row.host, row.previous, row.feedback)
        made.append(example(policy, prompt, answer or row.solution.program))
    return Fixed([one for one in made if length(one) <= longest])
