"""The probe of rlvr_exp.rollouts.sync_probe: run before training, after its first step and every so many steps."""

from collections.abc import Callable, Mapping

import torch

from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.config.run import Probe
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.sync_probe import Sequences, SyncProbe


class PeriodicProbe:
    """
    Args:
        options: the `run.probe` node.
        prompts: token ids of a few prompts, the same before and after a resume.
        served: (policy, prompts, completions) -> their scores by an engine with weights of its own; None: it samples with
            the policy's.
    """

    def __init__(
        self,
        options: Probe,
        trainer: PolicyTrainer,
        policy: Policy,
        prompts: list[list[int]],
        served: Callable[..., torch.Tensor] | None = None,
    ):
        self._every = options.every_steps
        self._trainer, self._sequences = trainer, Sequences.of(prompts)
        own = self._sequences
        self.probe = SyncProbe(
            policy.model,
            policy.model,
            own,
            self._trained,
            trainer.temperature,
            options.tolerance,
            served and (lambda: served(policy, own.prompts, own.completions)),
        )
        self._gap: float | None = None

    def begin(self, step: int) -> None:
        """Before the first update of a run, or of its resumption after so many steps."""
        if self._every:
            self.probe.check(step)

    def after(self, step: int) -> None:
        """After an update, counted from 1."""
        if self._every and (step == 1 or step % self._every == 0):
            self._gap = self.probe.check(step)

    def state_dict(self) -> dict[str, float | None]:
        """The gap that the next row must log; the probe itself has no saved state."""
        return {"gap": self._gap}

    def load_state_dict(self, state: Mapping[str, float | None]) -> None:
        self._gap = state["gap"]

    def metrics(self) -> Mapping[str, float]:
        """The gap, where one was measured since the last call."""
        gap, self._gap = self._gap, None
        return {} if gap is None else {"sync/probe_gap": gap}

    def _trained(self) -> torch.Tensor:
        """(completions, tokens) as the trainer scores them."""
        completions = [list(ids) for row in self._sequences.completions for ids in row]
        owners = [place for place, row in enumerate(self._sequences.completions) for _ in row]
        prompts = [list(self._sequences.prompts[owner]) for owner in owners]
        return self._trainer.scored(prompts, completions, owners).cpu()
