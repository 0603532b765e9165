"""What is known of PPO's clipping, of generalised advantages and of estimates of a KL divergence, against our own functions."""

import torch

from rlvr_exp.algorithms.advantages import gae
from rlvr_exp.algorithms.loss import clipped, kl_estimate, surrogate_loss
from rlvr_exp.benchmarks.theory_checks import Check
from rlvr_exp.core.seeds import derive

CLIP = (0.2, 0.28)
GAMMA = 0.9
ROUNDING = 1e-9
TOKENS = 8


def _generator(seed: int, name: str) -> torch.Generator:
    return torch.Generator().manual_seed(derive(seed, "theory", name))


def clipping_checks(draws: int, seed: int) -> list[Check]:
    """Schulman et al. 2017 (PPO, arXiv:1707.06347), section 3: the clipped objective is a lower bound of the unclipped one, equals
    it near the old policy, and has no gradient where it is clipped."""
    draw = _generator(seed, "clipping")
    old, new, advantages = (torch.randn(draws, generator=draw, dtype=torch.double) for _ in range(3))
    new = (old + 0.5 * new).requires_grad_()
    objective, ratio = -surrogate_loss(new, old, advantages, *CLIP), (new - old).exp()
    above = (objective - ratio * advantages).clamp(min=0).max()
    near = (ratio > 1 - CLIP[0]) & (ratio < 1 + CLIP[1])
    apart = (objective - ratio * advantages)[near].abs().max()
    (slope,) = torch.autograd.grad(objective.sum(), new)
    low, high = clipped(new, old, advantages, *CLIP)
    expected = torch.where(low | high, 0.0, ratio * advantages)
    return [
        _computed("clipped objective above the unclipped, at most", 0.0, above),
        _computed("clipped less unclipped objective inside the range", 0.0, apart),
        _computed(
            "gradient of what counts as clipped, and of the rest less A rho", 0.0, (slope - expected).abs().max()
        ),
    ]


def gae_checks(draws: int, seed: int) -> list[Check]:
    """Schulman et al. 2016 (GAE, arXiv:1506.02438), eq. 17 and 18: the ends of lambda."""
    draw = _generator(seed, "gae")
    rewards, values = (torch.randn(draws, TOKENS, generator=draw, dtype=torch.double) for _ in range(2))
    lengths = torch.randint(1, TOKENS + 1, (draws, 1), generator=draw)
    mask = (torch.arange(TOKENS) < lengths).double()
    rewards, inside = rewards * mask, values * mask
    ahead = torch.cat([inside[:, 1:], torch.zeros(draws, 1)], 1)
    errors = (rewards + GAMMA * ahead - values) * mask
    later = torch.arange(TOKENS, dtype=torch.double)[:, None] - torch.arange(TOKENS)
    returns = rewards @ torch.tril(GAMMA ** later.clamp(min=0))
    ends = {0.0: errors, 1.0: (returns - values) * mask}
    named = {0.0: "the TD error", 1.0: "the return less the value"}
    return [
        _computed(
            f"GAE with lambda {lam:.0f} less {named[lam]}",
            0.0,
            _most(gae(rewards, values, mask, GAMMA, lam)[0] - exact),
        )
        for lam, exact in ends.items()
    ]


def kl_checks(draws: int, seed: int) -> list[Check]:
    """Schulman 2020, "Approximating KL divergence": with d = log q - log p and tokens of p, k1 = -d and k3 = exp(d) - 1 - d have
    the mean KL(p || q), k2 = d^2 / 2 has not; k1 has the largest variance where p and q are near. Ours is k3; k1 is how the
    penalty in a reward counts."""
    draw = _generator(seed, "kl")
    logits = torch.randn(TOKENS, generator=draw, dtype=torch.double)
    p, q = (
        one.log_softmax(0) for one in (logits, logits + 0.3 * torch.randn(TOKENS, generator=draw, dtype=torch.double))
    )
    chances, ratio = p.exp(), q - p
    exact = float(chances @ (p - q))
    each = {"k1": -ratio, "k2": ratio.square() / 2, "k3 (ours)": kl_estimate(p, q)}
    means = {name: float(chances @ of) for name, of in each.items()}
    spread = {name: float(chances @ (of - means[name]).square()) for name, of in each.items()}
    drawn = torch.multinomial(chances, draws, replacement=True, generator=draw)
    found = []
    for name, of in each.items():
        bias = f", bias {means[name] - exact:+.2g}" if name == "k2" else ""
        known = means[name] if name == "k2" else exact  # The others have to have the divergence itself.
        found.append(Check(f"KL by {name}: mean{bias}", [known], of[drawn][:, None]))
        squares = (of[drawn] - means[name]).square()
        found.append(Check(f"KL by {name}: variance", [spread[name]], squares[:, None]))
    return found


def _computed(name: str, exact: float, value: torch.Tensor) -> Check:
    return Check(name, [exact], value.detach().reshape(1, 1), ROUNDING)


def _most(difference: torch.Tensor) -> torch.Tensor:
    return difference.abs().max()
