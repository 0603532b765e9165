"""Estimates of the policy gradient, by the advantages, weights and loss that train policies, against the exact gradient.

What a method's estimate is of the exact gradient g, on average:
- REINFORCE (Williams 1992), with any baseline that is independent of the sample: g.
- less the mean of the group, the sample itself in it: (G-1)/G g (Kool et al. 2019, section 3). Dr. GRPO (arXiv:2503.20783)
  divides by the longest length besides.
- GRPO's division by the group's deviation, of rewards 0 and 1 with mean p: c g, where c = sum over k of
  Binomial(k; G, p) sqrt(k (G-k) (G-1) / G^3) / (p (1-p)). It goes to 1/sqrt(p (1-p)) as G rises: tasks that nearly always or
  nearly never succeed weigh more than others.
- GAE (arXiv:1506.02438): g with lambda = 1 and any values, and with exact values and any lambda.
"""

from collections.abc import Callable

import torch
from scipy.stats import binom

from rlvr_exp.algorithms.advantages import gae, group_advantages, reinforce_advantages, token_rewards
from rlvr_exp.algorithms.loss import surrogate_loss, token_weights
from rlvr_exp.benchmarks.theory_checks import Check
from rlvr_exp.benchmarks.theory_tree import LONGEST, MASK, Tree, random_tree

GROUPS, MEMBERS = 2, 4
CLIP = 0.2
ANY = torch.tensor([0.3, 1.0, -0.5, 0.2, 0.0, 0.8, -1.0])
PASSES = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
"""Rewards of the completions: any, and those of a verifier."""


def gradient_checks(draws: int, seed: int) -> list[Check]:
    tree, judged = random_tree(seed, ANY), random_tree(seed, PASSES)
    plain = [
        _check(f"REINFORCE, baseline {name}", tree, 1.0, "sequence", _reinforce(name), draws, seed)
        for name in ("none", "group", "batch")
    ]
    share = (MEMBERS - 1) / MEMBERS
    return [
        *plain,
        _check("mean of the group, itself in it", tree, share, "sequence", _grouped("none"), draws, seed),
        _check("Dr. GRPO", tree, share / LONGEST, "dr_grpo", _grouped("none"), draws, seed),
        _check(
            "divided by the deviation",
            judged,
            deviation_factor(judged.value),
            "sequence",
            _grouped("group"),
            draws,
            seed,
        ),
        *_of_values(tree, draws, seed),
    ]


def deviation_factor(p: float, members: int = MEMBERS) -> float:
    """The share of the exact gradient that remains under division by the group's deviation, of rewards 0 and 1 with mean p."""
    counts = range(members + 1)
    return sum(
        float(binom.pmf(k, members, p)) * (k * (members - k) * (members - 1) / members**3) ** 0.5 for k in counts
    ) / (p * (1 - p))


Advantages = Callable[[torch.Tensor], torch.Tensor]
"""(draws, groups, G) rewards -> the same shape; each draw is a batch of its own."""


def _reinforce(baseline: str) -> Advantages:
    return lambda rewards: torch.stack([reinforce_advantages(batch, baseline) for batch in rewards])


def _grouped(scale: str) -> Advantages:
    return lambda rewards: group_advantages(rewards.flatten(0, 1), scale).view_as(rewards)


def _check(name: str, tree: Tree, share: float, mode: str, advantages: Advantages, draws: int, seed: int) -> Check:
    drawn = tree.sample(draws, GROUPS * MEMBERS, seed, name)
    each = advantages(tree.rewards[drawn].view(draws, GROUPS, MEMBERS)).flatten(1)[:, :, None]
    return _gradient_check(f"{name}: share of the gradient", tree, share, drawn, each.expand(-1, -1, LONGEST), mode)


def _of_values(tree: Tree, draws: int, seed: int) -> list[Check]:
    """A batch of PPO: advantages of single tokens."""
    exact = tree.state_values()
    wrong = 0.7 - 0.5 * exact  # Of the state alone, as any value is.
    found = []
    for name, values, lam in (("lambda 1, wrong values", wrong, 1.0), ("lambda 0.5, exact values", exact, 0.5)):
        drawn = tree.sample(draws, GROUPS * MEMBERS, seed, name)
        flat, mask = drawn.flatten(), MASK[drawn.flatten()]
        rewards = token_rewards(tree.rewards[flat], mask, torch.zeros(mask.shape, dtype=torch.double))
        advantages, _ = gae(rewards, values[flat], mask, 1.0, lam)
        shaped = advantages.view(*drawn.shape, LONGEST)
        found.append(_gradient_check(f"GAE, {name}: share of the gradient", tree, 1.0, drawn, shaped, "sequence"))
    return found


def _gradient_check(
    name: str, tree: Tree, share: float, drawn: torch.Tensor, advantages: torch.Tensor, mode: str
) -> Check:
    """Each draw's estimate along the exact gradient, as a share of it, and across it.

    Args:
        drawn: (draws, samples) places of completions.
        advantages: (draws, samples, 2)
    """
    logits = tree.logits.expand(len(drawn), -1, -1).clone().requires_grad_()
    logprobs = tree.logprobs(logits, drawn)
    losses = surrogate_loss(logprobs, logprobs.detach(), advantages, CLIP, CLIP)
    mask = MASK[drawn].flatten(0, 1)
    weights = token_weights(mask, mode, LONGEST).view(losses.shape) * len(drawn)  # Each draw is a batch of its own.
    (descent,) = torch.autograd.grad((weights * losses).sum(), logits)
    exact = tree.gradient()
    frame = torch.linalg.qr(torch.cat([exact[:, None], torch.eye(len(exact), dtype=torch.double)], 1)).Q
    frame = frame * torch.sign(frame[:, 0] @ exact)
    found = -descent.flatten(1) @ frame / exact.norm()
    # A direction that no draw has is no component: logits of a state count by their differences.
    keep = ~(found.abs().amax(0) <= 1e-9)
    keep[0] = True
    return Check(name, [share, *[0.0] * (int(keep.sum()) - 1)], found[:, keep])
