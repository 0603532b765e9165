"""A policy that is small enough to be computed exactly: a tree of completions of one or two tokens.

The vocabulary is END, 1 and 2; a completion is END alone, or 1 or 2 and a second token. Parameters are the logits of the three
states that a token is drawn in: before the first token, after 1, after 2.
"""

import torch

from rlvr_exp.algorithms.logprobs import token_logprobs
from rlvr_exp.core.seeds import derive

END, VOCABULARY, LONGEST = 0, 3, 2
COMPLETIONS = torch.tensor([[END, END], *([first, second] for first in (1, 2) for second in range(VOCABULARY))])
"""(7, 2); what stands behind END is padding."""
MASK = torch.tensor([[1, 0], *[[1, 1]] * 6])
STATES = torch.stack([torch.zeros_like(COMPLETIONS[:, 0]), COMPLETIONS[:, 0]], 1)
"""(7, 2): the state in which each token is drawn."""


class Tree:
    """
    Args:
        rewards: (7,) of the completions.
    """

    def __init__(self, logits: torch.Tensor, rewards: torch.Tensor):
        self.logits, self.rewards = logits.double(), rewards.double()
        self.chances = self.logprobs(self.logits[None], torch.arange(7)[None])[0].sum(-1).exp()

    def logprobs(self, logits: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        """(draws, 3, 3) logits and (draws, samples) places of completions -> (draws, samples, 2), 0 behind the end."""
        draws, samples = drawn.shape
        rows = torch.arange(draws)[:, None, None].expand(draws, samples, LONGEST)
        chosen = logits[rows, STATES[drawn]].flatten(0, 2)
        found, _ = token_logprobs(chosen, COMPLETIONS[drawn].flatten(), 1.0)
        return found.view(draws, samples, LONGEST).double() * MASK[drawn]

    @property
    def value(self) -> float:
        """The mean reward."""
        return float(self.chances @ self.rewards)

    def state_values(self) -> torch.Tensor:
        """(7, 2): the mean reward from the state in which each token is drawn; 0 behind the end."""
        after = torch.zeros(VOCABULARY, dtype=torch.double)
        for first in (1, 2):
            own = COMPLETIONS[:, 0] == first
            after[first] = (self.chances * self.rewards)[own].sum() / self.chances[own].sum()
        return torch.stack([torch.full((7,), self.value, dtype=torch.double), after[COMPLETIONS[:, 0]]], 1) * MASK

    def gradient(self) -> torch.Tensor:
        """(9,) of the mean reward, by the sum over all completions."""
        logits = self.logits.clone().requires_grad_()
        chances = self.logprobs(logits[None], torch.arange(7)[None])[0].sum(-1).exp()
        return torch.autograd.grad(chances @ self.rewards, logits)[0].flatten()

    def sample(self, draws: int, samples: int, seed: int, name: str) -> torch.Tensor:
        """(draws, samples) places of completions."""
        draw = torch.Generator().manual_seed(derive(seed, "theory", name))
        return torch.multinomial(self.chances, draws * samples, replacement=True, generator=draw).view(draws, samples)


def random_tree(seed: int, rewards: torch.Tensor) -> Tree:
    draw = torch.Generator().manual_seed(derive(seed, "theory", "tree"))
    return Tree(torch.randn(3, VOCABULARY, generator=draw), rewards)
