"""Losses of single tokens, their weights in a step, and the entropy bonus, as pure functions of (N, T) tensors.

Sources: Schulman et al. 2017 (PPO, arXiv 1707.06347), eq. 7 and 9; the clipped value loss is that of the authors' code
(openai/baselines, ppo2); the weight of replayed tokens is Hilton et al. 2021 (arXiv 2110.00641), eq. 2, truncated as in
Espeholt et al. 2018 (IMPALA, arXiv 1802.01561), section 4.1; the KL estimate is Schulman 2020, "k3".

The loss of a step is sum(weight * per-token loss) over all its tokens. Weights are computed once per step, so that splitting
it into micro-batches, accumulation steps or ranks changes nothing. An expectation over prompts in a paper is the mean over
the step's prompts here. Samples that are not trained on (no verdict, masked) count nowhere.

The entropy bonus can hold the entropy at a target: the adaptive entropy control of Skywork-OR1 (He et al. 2025, arXiv
2505.22312, its section on adaptive entropy control). After each update the weight rises by a fixed step if the policy's mean
entropy of a token was below the target, and falls by it otherwise.

Differences from the paper:
- The weight never falls below 0, and acts whenever it is above: the paper's also requires that the entropy of its step is
  at most the target, which is known here only after the pass that the bonus is part of.
- The entropy is that of the trained tokens, weighted as in the loss.
- The target may be a multiple of the entropy of the run's first update, because policies start from different entropies.

`SamplingCorrection` is between the policy that sampled and the policy that is trained. Both have the same weights, but another
engine computes in another order, type or quantization, so that a token's log-probability differs. The gradient is then that of
the sampler's policy. Importance sampling corrects it: the policy loss of a token has the weight w = pi_trainer / pi_sampler, of
the policy before the update. Weights above a cap would give single samples a large variance, so they are truncated or masked:

    token_truncate   w of the token, at most the cap (Yao et al. 2025, "Your Efficient RL Framework Secretly Brings You
                     Off-Policy RL Training")
    sequence_mask    w of the completion, the product over its tokens; above the cap the completion counts as 0 (TRL's
                     `vllm_importance_sampling_mode`)

Truncation changes the gradient by the part of w above the cap, masking by the masked completions. Without any, the gradient is
exact in expectation. The KL penalty and the entropy bonus are not weighted, as in TRL.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from accelerate import Accelerator

from rlvr_exp.config.algorithm import PPO


def surrogate_loss(
    logprobs: torch.Tensor, old: torch.Tensor, advantages: torch.Tensor, clip_low: float, clip_high: float
) -> torch.Tensor:
    """-min(rho A, clip(rho, 1 - clip_low, 1 + clip_high) A), rho = exp(logprobs - old): eq. 7 with its sign turned."""
    ratio = (logprobs - old).exp()
    clipped = ratio.clamp(1 - clip_low, 1 + clip_high)
    return -torch.min(ratio * advantages, clipped * advantages)


def clipped(
    logprobs: torch.Tensor, old: torch.Tensor, advantages: torch.Tensor, clip_low: float, clip_high: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Whether the clip removes the gradient: (below, above), as booleans."""
    ratio = (logprobs - old).exp()
    return (ratio < 1 - clip_low) & (advantages < 0), (ratio > 1 + clip_high) & (advantages > 0)


def value_loss(values: torch.Tensor, old: torch.Tensor, returns: torch.Tensor, clip: float) -> torch.Tensor:
    """max((V - R)^2, (clip(V, old - clip, old + clip) - R)^2) / 2; without a clip if `clip` is 0."""
    plain = (values - returns).square()
    if clip:
        near = old + (values - old).clamp(-clip, clip)
        plain = torch.max(plain, (near - returns).square())
    return plain / 2


def kl_estimate(logprobs: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """exp(d) - 1 - d with d = other - logprobs: for tokens drawn from the policy an unbiased estimate of KL(policy || other),
    never negative."""
    difference = other - logprobs
    return difference.expm1() - difference


def importance_weights(old: torch.Tensor, behaviour: torch.Tensor, limit: float) -> torch.Tensor:
    """min(limit, exp(old - behaviour)): how much likelier a replayed token is now than when it was drawn."""
    return (old - behaviour).exp().clamp(max=limit)


def policy_loss(
    logprobs: torch.Tensor,
    entropies: torch.Tensor | None,
    reference: torch.Tensor | None,
    given: Mapping[str, torch.Tensor],
    settings: PPO,
) -> torch.Tensor:
    """Importance * surrogate - entropy_coef * entropy + kl_coef * KL: eq. 9 without its value term.

    Args:
        entropies: of each token; None: no bonus.
        reference: log-probabilities of the reference if the penalty is part of the loss.
        given: `old_logprobs`, `advantages` and `importance` of the same tokens.
    """
    at = (logprobs, given["old_logprobs"], given["advantages"], settings.clip_low, settings.clip_high)
    loss = given["importance"] * surrogate_loss(*at)
    if entropies is not None:
        loss = loss - settings.entropy_coef * entropies
    return loss if reference is None else loss + settings.kl_coef * kl_estimate(logprobs, reference)


def token_metrics(
    logprobs: torch.Tensor,
    values: torch.Tensor,
    reference: torch.Tensor | None,
    given: Mapping[str, torch.Tensor],
    settings: PPO,
) -> dict[str, torch.Tensor]:
    """Metrics of each token: whether the clips act, and the distances from the old policy and the reference."""
    old = given["old_logprobs"]
    low, high = clipped(logprobs, old, given["advantages"], settings.clip_low, settings.clip_high)
    far = (values - given["old_values"]).abs() > (settings.value_clip or torch.inf)
    figures = {
        "clip_ratio/low_mean": low,
        "clip_ratio/high_mean": high,
        "value/clipped": far,
        "kl/old": kl_estimate(old, logprobs),
    }
    return figures if reference is None else figures | {"kl": kl_estimate(logprobs, reference)}


MODES = ("grpo", "dapo", "dr_grpo", "token", "sequence")


def token_weights(
    mask: torch.Tensor, mode: str, max_completion_tokens: int, groups: torch.Tensor | None = None
) -> torch.Tensor:
    """(samples, T) mask of live completion tokens -> (samples, T) weights, zero off the mask.

    Args:
        mode: "grpo": mean over a sample's tokens, then over samples (DeepSeekMath, eq. 3; GSPO, eq. 5);
            "dapo": mean over the tokens of all of a prompt's samples, then over prompts (DAPO, eq. 8 and 12; MiniMax-M1,
            eq. 4);
            "dr_grpo": sum over tokens divided by the constant completion limit, mean over samples (Dr. GRPO, section 3.2);
            "token": mean over all tokens of the step, as DAPO's and PPO's implementations have it;
            "sequence": sum over a sample's tokens, mean over samples (RLOO: the log-probability of a complete answer).
        groups: (samples,) the group of each sample, counted from 0; "dapo" alone needs it, and calls it a prompt.
    """
    mask = mask.float()
    samples = (mask.sum(1) > 0).sum().clamp(min=1)
    if mode == "grpo":
        return mask / mask.sum(1, keepdim=True).clamp(min=1) / samples
    if mode == "dapo":
        if groups is None:
            raise ValueError("token_weights: mode 'dapo' needs the group of each sample")
        tokens = torch.zeros(int(groups.max()) + 1).index_add(0, groups, mask.sum(1))
        return mask / tokens.clamp(min=1)[groups][:, None] / (tokens > 0).sum().clamp(min=1)
    if mode == "dr_grpo":
        return mask / (samples * max_completion_tokens)
    if mode == "token":
        return mask / mask.sum().clamp(min=1)
    if mode == "sequence":
        return mask / samples
    raise ValueError(f"token_weights: mode is {mode!r}, allowed {', '.join(MODES)}")


class TokenMeans:
    """Weighted sums of per-token metrics since the last `means`."""

    def __init__(self) -> None:
        self._sums: dict[str, torch.Tensor] = {}
        self._weight: torch.Tensor | float = 0.0

    def add(self, weights: torch.Tensor, figures: Mapping[str, torch.Tensor]) -> None:
        """Add a pass: (N, T) weights, zero if a token does not count, and (N, T) metrics by name."""
        for name, values in figures.items():
            counted = values.detach().masked_fill(weights == 0, 0)  # What does not count may be infinite.
            self._sums[name] = self._sums.get(name, 0.0) + (weights * counted).sum()
        self._weight = self._weight + weights.sum()

    def means(self, accelerator: Accelerator) -> dict[str, float]:
        """The mean of each metric over all processes, NaN if nothing counted; resets the sums. All processes call it."""
        names, sums = list(self._sums), torch.stack([*self._sums.values(), self._weight])
        self._sums, self._weight = {}, 0.0
        *totals, weight = accelerator.reduce(sums, "sum").tolist()
        return {name: total / weight if weight else float("nan") for name, total in zip(names, totals, strict=True)}


class EntropyControl:
    """The weight of the entropy bonus, and how it follows the entropy.

    Args:
        coef: the weight at the start.
        target: mean entropy of a token that is held; 0: the weight is constant.
        step: change of the weight after each update.
        unit: of the target: "nats", or "start", the entropy of the run's first update.
    """

    def __init__(self, coef: float, target: float = 0.0, step: float = 0.0, unit: str = "nats"):
        self.coef, self._target, self._step = coef, target, step
        self._unit: float | None = 1.0 if unit == "nats" else None
        """In nats; None: not known before the first update."""

    @classmethod
    def of(cls, options: Any) -> "EntropyControl":
        """From the options of an algorithm."""
        return cls(options.entropy_coef, options.entropy_target, options.entropy_step, options.entropy_unit)

    @property
    def adapts(self) -> bool:
        return self._target > 0

    @property
    def active(self) -> bool:
        """The entropy of every counted sample is needed, also in updates in which its weight is 0."""
        return self.adapts or self.coef != 0.0

    def observe(self, entropy: float) -> None:
        """Move the weight after an update on tokens of this mean entropy, in nats; NaN, of no token, leaves it."""
        if not self.adapts or math.isnan(entropy):
            return
        if self._unit is None:
            self._unit = entropy
        self.coef = max(0.0, self.coef + (self._step if entropy < self._target * self._unit else -self._step))

    def state_dict(self) -> dict[str, float | None]:
        return {"coef": self.coef, "unit": self._unit}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.coef, self._unit = state["coef"], state["unit"]


class SamplingCorrection:
    """
    Args:
        mode: "sequence_mask", "token_truncate", or "none": no token is weighted.
        cap: the largest weight.
    """

    def __init__(self, mode: str = "none", cap: float = 3.0):
        self.mode, self._cap = mode, cap
        self._sums: torch.Tensor | None = None
        self._largest = torch.zeros(())

    @property
    def active(self) -> bool:
        return self.mode != "none"

    def weights(self, logprobs: torch.Tensor, drawn: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
        """The weights of tokens, and their figures for `metrics`.

        Args:
            logprobs: (samples, T) by the trainer, before the update.
            drawn: (samples, T) by the engine that sampled.
            counted: (samples, T) whether a token is part of the loss.

        Returns:
            (samples, T), or (samples, 1) if completions are weighted.
        """
        gaps = torch.where(counted, logprobs - drawn, torch.zeros_like(drawn))
        whole = self.mode == "sequence_mask"
        ratios = gaps.sum(1, keepdim=True).exp() if whole else gaps.exp()
        over = ratios > self._cap
        weights = ratios.masked_fill(over, 0.0) if whole else ratios.clamp(max=self._cap)
        of = counted.any(1, keepdim=True) if whole else counted
        figures = (counted, gaps.abs(), of, of & over, weights * of, weights.square() * of)
        sums = torch.stack([one.sum().double() for one in figures])
        self._sums = sums if self._sums is None else self._sums + sums
        self._largest = torch.maximum(self._largest.to(gaps.device), gaps.abs().max())
        return weights

    def metrics(self, accelerator: Accelerator) -> dict[str, float]:
        """Since the last call, over all processes: the mean and the largest gap |log pi_trainer - log pi_sampler| of a token, the
        share of tokens (of completions) above the cap, and the effective sample size (sum w)^2 / sum w^2 as a share of their
        number. Empty if no token was weighted. All processes call it."""
        if not self.active:
            return {}
        sums = torch.zeros(6, dtype=torch.float64) if self._sums is None else self._sums
        tokens, gap, number, over, total, squares = accelerator.reduce(sums.to(accelerator.device), "sum").tolist()
        largest = accelerator.gather(self._largest.to(accelerator.device).reshape(1)).max().item()
        self._sums, self._largest = None, torch.zeros(())
        if not tokens:
            return {}
        return {
            "sampling/gap": gap / tokens,
            "sampling/gap_max": largest,
            "sampling/over_cap": over / number,
            "sampling/ess": total * total / squares / number if squares else 0.0,
        }


def correction_of(options: Any, exact: bool) -> SamplingCorrection:
    """The correction of an algorithm's options.

    Args:
        exact: whether the engine's log-probabilities are the trainer's own.
    """
    mode = options.correction
    if mode == "auto":
        mode = "none" if exact else "sequence_mask"
    return SamplingCorrection(mode, options.correction_cap)
