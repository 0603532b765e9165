"""`benchmark=theory`: known results on problems that are small enough to be computed exactly, against the functions that train
policies. Needs no model and no data.

A check compares an exact quantity with its estimate, and tests whether chance explains the difference. The policy is a tree of completions of one or two tokens. The vocabulary is END, 1 and 2; a completion is END
alone, or 1 or 2 and a second token. Parameters are the logits of the three states that a token is drawn in: before the first
token, after 1, after 2.

The mean of a method's estimate, as a multiple of the exact gradient g:
- REINFORCE (Williams 1992), with any baseline that is independent of the sample: g.
- less the mean of the group, the sample itself in it: (G-1)/G g (Kool et al. 2019, section 3). Dr. GRPO (arXiv:2503.20783)
  divides by the longest length besides.
- GRPO's division by the group's deviation, of rewards 0 and 1 with mean p: c g, where c = sum over k of
  Binomial(k; G, p) sqrt(k (G-k) (G-1) / G^3) / (p (1-p)). It goes to 1/sqrt(p (1-p)) as G rises: tasks that nearly always or
  nearly never succeed weigh more than others.
- GAE (arXiv:1506.02438): g with lambda = 1 and any values, and with exact values and any lambda.

PPO's clipping, generalised advantages and estimates of a KL divergence have checks of their own.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from scipy.stats import binom

from rlvr_exp.algorithms.advantages import gae, group_advantages, reinforce_advantages, token_rewards
from rlvr_exp.algorithms.logprobs import token_logprobs
from rlvr_exp.algorithms.loss import clipped, kl_estimate, surrogate_loss, token_weights
from rlvr_exp.config.schema import Config
from rlvr_exp.core.crossed import holm
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.core.seeds import derive
from rlvr_exp.core.statistics import Estimate, mean_p_value, t_interval
from rlvr_exp.records.context import RunContext

HOLDS, OUTSIDE = "holds", "outside"


@dataclass(frozen=True)
class Check:
    """An exact quantity and its draws. Of several components the first is shown; all have to hold."""

    name: str
    exact: Sequence[float]
    """By component."""
    draws: torch.Tensor
    """(draws, components), independent and each without bias; a single draw was computed and has no chance in it."""
    tolerance: float = 0.0
    """How far rounding may move a single draw."""

    def p_values(self) -> list[float]:
        """For each component, that its mean is exact. A single draw gives 0 or 1, a value that is no number gives 0."""
        if len(self.draws) == 1:
            off = [abs(float(one) - exact) for one, exact in zip(self.draws[0], self.exact, strict=True)]
            return [float(distance <= self.tolerance) for distance in off]
        return [
            mean_p_value(column.tolist(), exact) if math.isfinite(exact) and bool(column.isfinite().all()) else 0.0
            for column, exact in zip(self.draws.T, self.exact, strict=True)
        ]


@dataclass(frozen=True)
class CheckRow:
    """A check with its verdict."""

    name: str
    exact: float
    estimate: Estimate
    """With its 95% interval."""
    p: float
    """The smallest of its components', corrected for all components of all checks (Holm 1979)."""
    verdict: str


def rows_of(checks: Sequence[Check], level: float) -> list[CheckRow]:
    """
    Args:
        level: the chance that any check is outside though all of them hold.
    """
    each = [check.p_values() for check in checks]
    corrected = iter(holm([p for of_check in each for p in of_check]))
    found = []
    for check, of_check in zip(checks, each, strict=True):
        p = min([next(corrected) for _ in of_check])
        shown = t_interval(check.draws[:, 0].tolist())
        found.append(CheckRow(check.name, check.exact[0], shown, p, OUTSIDE if p < level else HOLDS))
    return found


END, VOCABULARY, LONGEST = 0, 3, 2
COMPLETIONS = torch.tensor([[END, END], *([first, second] for first in (1, 2) for second in range(VOCABULARY))])
"""(7, 2), padded after END."""
MASK = torch.tensor([[1, 0], *[[1, 1]] * 6])
STATES = torch.stack([torch.zeros_like(COMPLETIONS[:, 0]), COMPLETIONS[:, 0]], 1)
"""(7, 2): the state before each token."""


def _generator(seed: int, name: str) -> torch.Generator:
    return torch.Generator().manual_seed(derive(seed, "theory", name))


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
        """(7, 2): the mean reward from the state before each token; 0 after the end."""
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
        draw = _generator(seed, name)
        return torch.multinomial(self.chances, draws * samples, replacement=True, generator=draw).view(draws, samples)


def random_tree(seed: int, rewards: torch.Tensor) -> Tree:
    return Tree(torch.randn(3, VOCABULARY, generator=_generator(seed, "tree")), rewards)


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
    share, factor = (MEMBERS - 1) / MEMBERS, deviation_factor(judged.value)
    return [
        *plain,
        _check("mean of the group, itself in it", tree, share, "sequence", _grouped("none"), draws, seed),
        _check("Dr. GRPO", tree, share / LONGEST, "dr_grpo", _grouped("none"), draws, seed),
        _check("divided by the deviation", judged, factor, "sequence", _grouped("group"), draws, seed),
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


CLIPS = (0.2, 0.28)
GAMMA = 0.9
ROUNDING = 1e-9
TOKENS = 8


def clipping_checks(draws: int, seed: int) -> list[Check]:
    """Schulman et al. 2017 (PPO, arXiv:1707.06347), section 3: the clipped objective is a lower bound of the unclipped one, equals
    it near the old policy, and has no gradient if it is clipped."""
    draw = _generator(seed, "clipping")
    old, new, advantages = (torch.randn(draws, generator=draw, dtype=torch.double) for _ in range(3))
    new = (old + 0.5 * new).requires_grad_()
    objective, ratio = -surrogate_loss(new, old, advantages, *CLIPS), (new - old).exp()
    above = (objective - ratio * advantages).clamp(min=0).max()
    near = (ratio > 1 - CLIPS[0]) & (ratio < 1 + CLIPS[1])
    apart = (objective - ratio * advantages)[near].abs().max()
    (slope,) = torch.autograd.grad(objective.sum(), new)
    low, high = clipped(new, old, advantages, *CLIPS)
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
            (gae(rewards, values, mask, GAMMA, lam)[0] - exact).abs().max(),
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


def measure(config: Config, context: RunContext) -> tuple[str, dict[str, Any]]:
    """The table of all checks, and each by its name.

    Raises:
        GuardStop: chance does not explain the difference of a check.
    """
    draws, level = config.benchmark.draws, config.benchmark.level
    makers = (gradient_checks, clipping_checks, gae_checks, kl_checks)
    checks = []
    for place, make in enumerate(makers):
        context.progress(kind="phase", name="checks", done=place, total=len(makers))
        checks += make(draws, config.seed)
    rows = rows_of(checks, level)
    text = table(rows, draws)
    if outside := [row.name for row in rows if row.verdict == OUTSIDE]:
        raise GuardStop(f"{len(outside)} of {len(rows)} known results do not hold: {'; '.join(outside)}\n{text}")
    return text, {row.name: {"exact": row.exact, **row.estimate._asdict(), "p_holm": row.p} for row in rows}


def table(rows: Sequence[CheckRow], draws: int) -> str:
    wide = max(len(row.name) for row in rows)
    head = f"{'quantity':<{wide}}{'exact':>11}  {'estimate [95%]':<32}{'p, Holm':>8}  verdict"
    lines = []
    for row in rows:
        value, low, high = row.estimate
        shown = f"{value:.5g}" if low == high else f"{value:.5g} [{low:.5g}, {high:.5g}]"
        lines.append(f"{row.name:<{wide}}{row.exact:>11.5g}  {shown:<32}{row.p:>8.3g}  {row.verdict}")
    return "\n".join([f"known results, {draws:,} draws", head, *lines])
