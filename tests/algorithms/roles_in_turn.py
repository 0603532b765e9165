"""Two roles, adapters on a small model, trained in turn; used in a single process and, under ZeRO-2, in two."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from tiny_step import EVERYTHING, experience, policy, trainer

from rlvr_exp.algorithms.base import parallel_arguments
from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.config.model import Adapter
from rlvr_exp.config.parallel import Parallel
from rlvr_exp.models.adapters import activate, adapter_parameters
from rlvr_exp.models.policy import Policy, add_adapter
from rlvr_exp.training.learner import Learner

NAMES = ("default", "critic")
Turns = list[tuple[str, int]]
"""Roles and their steps."""


@dataclass
class Seen:
    """The results of the runs."""

    weights: dict[str, list[float]]
    """The weights of each role's adapter, at the end."""
    idle_kept: bool
    """In every turn the weights and the optimizer state of the other role stayed bit for bit unchanged."""
    learned: bool
    """Every turn changed the role's own weights."""
    steps: list[int]
    """Steps of the role after each turn."""
    rows: dict[str, list[dict[str, float]]]
    """Each role's metrics, a row for each of its turns."""


class Pair:
    """A learner for each adapter of one base.

    Args:
        saved: the folder of `save` that the pair is resumed from.
    """

    def __init__(self, parallel: Parallel, scratch: str, saved: Path | None = None):
        self.who = policy()
        for number, name in enumerate(NAMES):
            self.who = add_adapter(self.who, name, Adapter(kind="lora", rank=2, alpha=4.0), seed=number)
        self.learners = {name: Learner(name, _trainer(self.who, name, parallel, scratch), {}) for name in NAMES}
        for name, learner in self.learners.items():
            if saved is not None:
                for value, kept in zip(self._weights(name), torch.load(saved / name / "weights"), strict=True):
                    value.data.copy_(kept)
            learner.begin(None if saved is None else saved / name)

    def train(self, turns: Turns) -> Seen:
        seen = Seen({}, True, True, [], {name: [] for name in NAMES})
        for name, count in turns:
            (other,) = set(NAMES) - {name}
            idle, own = self._state(other), self.flat(name)
            learner = self.learners[name]
            for _ in range(count):
                learner.take(experience())
                learner.update()
            seen.rows[name].append(learner.row())
            seen.steps.append(learner.steps)
            seen.idle_kept &= _equal(idle, self._state(other))
            seen.learned &= not torch.equal(own, self.flat(name))
        seen.weights = {name: self.flat(name).tolist() for name in NAMES}
        return seen

    def save(self, folder: Path) -> Path:
        for name, learner in self.learners.items():
            (folder / name).mkdir(parents=True)
            torch.save([value.detach() for value in self._weights(name)], folder / name / "weights")
            learner.save(folder / name)
        return folder

    def flat(self, name: str) -> torch.Tensor:
        return torch.cat([value.detach().flatten().clone() for value in self._weights(name)])

    def _weights(self, name: str) -> list[torch.Tensor]:
        return adapter_parameters(self.who.model, name)

    def _state(self, name: str) -> list[torch.Tensor]:
        return [self.flat(name), *(value.clone() for value in _moments(self.learners[name].trainer))]


def trained(parallel: Parallel, turns: Turns) -> Seen:
    """Give the roles these turns."""
    with TemporaryDirectory() as scratch:
        return Pair(parallel, scratch).train(turns)


def _trainer(who: Policy, name: str, parallel: Parallel, folder: str) -> PolicyTrainer:
    class OfRole(PolicyTrainer):
        def __init__(self, _policy, args, _optimizer, *rest, **options):
            own = [value for value in who.model.parameters() if value.requires_grad]
            assert {id(value) for value in own} == {id(value) for value in adapter_parameters(who.model, name)}
            super().__init__(who, args, torch.optim.AdamW(own, lr=0.05), *rest, **options)

    activate(who.model, name)
    more = {**parallel_arguments(parallel), "max_steps": 4, "learning_rate": 0.05}
    return trainer(folder, EVERYTHING, kind=OfRole, **more)


def _moments(trainer: PolicyTrainer) -> Iterator[torch.Tensor]:
    """The state of AdamW, inside the wrappers of Accelerate and DeepSpeed; nothing before its first step."""
    inner = trainer.optimizer
    while hasattr(inner, "optimizer"):
        inner = inner.optimizer
    return (value for state in inner.state.values() for value in state.values() if torch.is_tensor(value))


def _equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return len(one) == len(other) and all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
