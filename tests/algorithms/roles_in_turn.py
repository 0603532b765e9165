"""Two roles, adapters on a small model, trained in turn; used in a single process and, under ZeRO-2, in two."""

from collections.abc import Iterator
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import torch
from test_trainer_seams import EVERYTHING, experience, policy, trainer

from rlvr_exp.algorithms.parallel_arguments import parallel_arguments
from rlvr_exp.algorithms.role_scheduler import RoleScheduler
from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.config.adapter import Adapter
from rlvr_exp.config.parallel import Parallel
from rlvr_exp.models.adapters import adapter_parameters
from rlvr_exp.models.policy import Policy, add_adapter

NAMES = ("default", "critic")


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


def trained(parallel: Parallel, turns: list[tuple[str, int]]) -> Seen:
    """Give the roles these turns, each a role and its steps."""
    who = policy()
    settings = Adapter(kind="lora", rank=2, alpha=4.0)
    for number, name in enumerate(NAMES):
        who = add_adapter(who, name, settings, seed=number)
    made: dict[str, PolicyTrainer] = {}
    kept, learned, steps = True, True, []
    with TemporaryDirectory() as folder, RoleScheduler(dict.fromkeys(NAMES, who.model)) as roles:
        for name in NAMES:
            roles.add(name, lambda turn, name=name: made.setdefault(name, _trainer(who, name, turn, parallel, folder)))
        for name, count in turns:
            (other,) = set(NAMES) - {name}
            idle, own = _state(who, other, made), _state(who, name, {})
            steps.append(roles.train(name, count))
            kept = kept and _equal(idle, _state(who, other, made))
            learned = learned and not _equal(own, _state(who, name, {}))
    return Seen({name: _flat(who, name).tolist() for name in NAMES}, kept, learned, steps)


def _trainer(who: Policy, name: str, turn, parallel: Parallel, folder: str) -> PolicyTrainer:
    class OfRole(PolicyTrainer):
        def __init__(self, _policy, args, _optimizer, entropy_coef, collect, _callbacks, limits):
            own = [value for value in who.model.parameters() if value.requires_grad]
            assert {id(value) for value in own} == {id(value) for value in adapter_parameters(who.model, name)}
            super().__init__(who, args, torch.optim.AdamW(own, lr=0.05), entropy_coef, collect, [turn], limits)

    more = {**parallel_arguments(parallel), "max_steps": 4, "learning_rate": 0.05}
    return trainer(folder, experience(), EVERYTHING, kind=OfRole, **more)[0]


def _flat(who: Policy, name: str) -> torch.Tensor:
    return torch.cat([value.detach().flatten().clone() for value in adapter_parameters(who.model, name)])


def _state(who: Policy, name: str, made: dict[str, PolicyTrainer]) -> list[torch.Tensor]:
    return (
        [_flat(who, name), *(value.clone() for value in _moments(made[name]))] if name in made else [_flat(who, name)]
    )


def _moments(trainer: PolicyTrainer) -> Iterator[torch.Tensor]:
    """The state of AdamW, inside the wrappers of Accelerate and DeepSpeed."""
    inner = trainer.optimizer
    while hasattr(inner, "optimizer"):
        inner = inner.optimizer
    found = [value for state in inner.state.values() for value in state.values() if torch.is_tensor(value)]
    assert found, "it has stepped"
    yield from found


def _equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return len(one) == len(other) and all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
