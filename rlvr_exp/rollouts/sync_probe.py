"""Whether the weights that sample are the weights that train.

Fixed sequences are scored along the sampler's own path (prompts computed once, then token by token from the cache) and by
the trainer. A gap above tolerance stops the run and names its cause, found by rescoring: without the adapter, in another
dtype, or with the trainer's scores of an earlier step. Never draws a random number; the sequences depend on the prompts
alone, so that a resumed run measures the same values as an uninterrupted run.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from rlvr_exp.core.errors import GuardStop
from rlvr_exp.models.adapters import adapters_off
from rlvr_exp.models.parameters import gathered_parameters, gathered_weights
from rlvr_exp.rollouts.sampler import causal_model, score

COMPLETIONS, TOKENS, PROMPT = 4, 12, 256
"""Completions of each prompt, tokens of each completion, and the most tokens of a prompt."""
FINE, ROUGH = 1e-3, 0.1
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class Sequences:
    """The sequences to score: completions that repeat parts of their prompt."""

    prompts: tuple[tuple[int, ...], ...]
    completions: tuple[tuple[tuple[int, ...], ...], ...]

    @classmethod
    def of(cls, prompts: Sequence[Sequence[int]]) -> "Sequences":
        cut = tuple(tuple(prompt[:PROMPT]) for prompt in prompts)
        return cls(cut, tuple(tuple(_part(prompt, i) for i in range(COMPLETIONS)) for prompt in cut))


def _part(prompt: Sequence[int], number: int) -> tuple[int, ...]:
    start = number * len(prompt) // COMPLETIONS
    return tuple(prompt[(start + place) % len(prompt)] for place in range(TOKENS))


class SyncProbe:
    """Compares the engine with the trainer.

    Args:
        engine: the model that samples.
        learner: the model that is trained: the same object for a local engine.
        trained: the trainer's current log-probabilities of the sequences, (completions, tokens).
        temperature: the temperature of both scores.
        tolerance: the largest allowed gap; 0 for a default that suits the dtype.
        served: the engine's own scores of the sequences, if it samples with weights outside of `engine`.
        served_dtype: the type of those weights.
    """

    def __init__(
        self,
        engine: nn.Module,
        learner: nn.Module,
        sequences: Sequences,
        trained: Callable[[], torch.Tensor],
        temperature: float,
        tolerance: float,
        served: Callable[[], torch.Tensor] | None = None,
        served_dtype: torch.dtype | None = None,
    ):
        self._served = served
        self._engine, self._learner, self._sequences = engine, learner, sequences
        self._trained, self._temperature = trained, temperature
        # Quantised layers round their inputs depending on the rest of the batch.
        models: list[Any] = [causal_model(engine), causal_model(learner)]
        self._engine_dtype: torch.dtype = served_dtype or models[0].dtype
        precise = all(one in (torch.float32, torch.float64) for one in (self._engine_dtype, models[1].dtype))
        fine = precise and not any(getattr(one, "is_quantized", False) for one in models)
        self.tolerance = tolerance or (FINE if fine else ROUGH)
        self._before: dict[int, torch.Tensor] = {}
        """The trainer's scores by step."""

    def check(self, step: int) -> float:
        """The mean difference of log-probabilities.

        Raises:
            GuardStop: the difference is above tolerance, or a trained adapter changes nothing.
        """
        sampled, trained = self._sampled(), self._trained()
        gap = _gap(sampled, trained)
        if not gap <= self.tolerance:  # NaN, too
            raise GuardStop(
                f"step {step}: the engine that samples is not the policy that is trained: their log-probabilities of the same "
                f"tokens differ by {gap:.3g} on average, and {self.tolerance:g} is taken for rounding (run.probe.tolerance). "
                f"Cause: {self._cause(sampled, gap)}"
            )
        self._check_adapter(step, sampled, trained, gap)
        self._before[step] = trained
        return gap

    def _sampled(self) -> torch.Tensor:
        with gathered_weights(self._engine):
            if self._served is not None:
                return self._served()
            return score(self._engine, self._sequences.prompts, self._sequences.completions, self._temperature)

    def _cause(self, sampled: torch.Tensor, gap: float) -> str:
        """The first explanation that makes the two scores agree."""
        limit = min(self.tolerance, gap / 4)
        with adapters_off(self._learner):
            if _gap(sampled, self._trained()) <= limit:
                return "adapter ignored: it samples from the base. Load the adapter into the engine, and reload it after each step"
        stale = min(self._before, key=lambda step: _gap(sampled, self._before[step]), default=None)
        if stale is not None and _gap(sampled, self._before[stale]) <= limit:
            return f"stale weights: it has those of step {stale}. Update it with the trained weights after each step"
        own = causal_model(self._learner).dtype
        for dtype in _DTYPES:
            # Two low-precision computations round differently, so an engine known to use that dtype need not agree exactly.
            enough = gap if dtype == self._engine_dtype else limit
            if dtype != own and self._gap_in(dtype, sampled) < enough:
                return (
                    f"wrong dtype: it computes in {_name(dtype)}, the trainer in {_name(own)}. Give both the same dtype"
                )
        return "neither an adapter left out, another dtype nor older weights; look for layers that are scaled, tied or masked otherwise"

    def _gap_in(self, dtype: torch.dtype, sampled: torch.Tensor) -> float:
        with _cast(self._learner, dtype):
            return _gap(sampled, self._trained())

    def _check_adapter(self, step: int, sampled: torch.Tensor, trained: torch.Tensor, gap: float) -> None:
        """A trained adapter must change scores, and the engine's scores must be nearer to those with it than without it."""
        if not self._adapter_moved():
            return
        with adapters_off(self._learner):
            base = self._trained()
        if torch.equal(base, trained):
            raise GuardStop(
                f"step {step}: the adapter changes nothing: its weights are not zero, and the policy scores as its base does. "
                "Its layers are not in the model's forward pass: look at model.adapter.targets and what wraps the model"
            )
        if 4 * _gap(sampled, base) < gap:
            raise GuardStop(
                f"step {step}: adapter ignored: the engine scores as the base does (off by {_gap(sampled, base):.2g}), not as the "
                f"trained policy ({gap:.2g}). Load the adapter into the engine, and reload it after each step"
            )

    def _adapter_moved(self) -> bool:
        """Whether the adapter weights that start at zero (B of B A) have changed."""
        named = [
            value for name, value in self._learner.named_parameters() if ".lora_B." in name and value.requires_grad
        ]
        with gathered_parameters(named):
            return bool(named) and bool(torch.stack([value.any() for value in named]).any())  # One transfer for all.


def _gap(one: torch.Tensor, other: torch.Tensor) -> float:
    return (one - other).abs().mean().item()


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@contextmanager
def _cast(model: nn.Module, dtype: torch.dtype) -> Iterator[None]:
    """Inside the block the model's floating-point weights have another dtype; afterwards the original tensors return."""
    kept = [(value, value.data) for value in model.parameters() if value.is_floating_point()]
    try:
        for value, data in kept:
            value.data = data.to(dtype)
        yield
    finally:
        for value, data in kept:
            value.data = data
