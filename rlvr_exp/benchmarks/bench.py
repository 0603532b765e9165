"""The parts of both sides of `benchmark=training`, and one turn of each."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from trl import GRPOConfig

from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.algorithms.gradients import NonFiniteGuard
from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.benchmarks.clock import Clock, Lap
from rlvr_exp.benchmarks.machine_limit import update_flops
from rlvr_exp.benchmarks.stock import RewardFunction, Stock, method
from rlvr_exp.config.parallel import BatchLimits
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.core.seeds import uniform
from rlvr_exp.curriculum.base import Curriculum
from rlvr_exp.episodes.types import Completion, RewardBreakdown
from rlvr_exp.models.policy import Policy
from rlvr_exp.rewards.compose import Identity, Reward
from rlvr_exp.rollouts.collect import Collector
from rlvr_exp.tasks.base import Domain
from rlvr_exp.training.learner import Learner
from rlvr_exp.verifiers.base import Verifier

EMPTY: Mapping[str, Any] = {}
TRIES = 10
"""Most batches sampled to find one with a gradient."""


@dataclass(frozen=True)
class Bench:
    """The run that is measured. Sides share the policy; each turn starts from its first weights."""

    policy: Policy
    domain: Domain
    collector: Collector
    """Ours; its verifier is ours as well."""
    verifier: Verifier
    """Stock's own, so that neither side finds verdicts that the other has paid for."""
    reward: Reward
    """Stock's own, for the same reason."""
    curriculum: Curriculum
    algorithm: Algorithm
    options: Any
    """The `algorithm` node."""
    arguments: Callable[[Path], Mapping[str, Any]]
    """Fields of both sides' GRPOConfig, given where TRL may write."""
    optimizer: Callable[[], torch.optim.Optimizer]
    limits: BatchLimits

    def trainer(self, scratch: Path, optimizer: torch.optim.Optimizer, **more: Any) -> PolicyTrainer:
        """Ours. `more`: further fields of its GRPOConfig."""
        common = {**self.arguments(scratch), **self.algorithm.trl_arguments(), **more}
        size = {"per_device_train_batch_size": self.options.group_size, "steps_per_generation": 1}
        return self.algorithm.trainer(
            self.policy, GRPOConfig(**common, **size), optimizer, NonFiniteGuard(), self.limits
        )


class Gradient:
    """The gradient that a step hands to its optimizer, flat and on the CPU."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.value = torch.zeros(0)
        optimizer.register_step_pre_hook(self._keep)

    def _keep(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        grads = [value.grad for group in optimizer.param_groups for value in group["params"] if value.grad is not None]
        self.value = torch.cat([grad.detach().float().flatten().cpu() for grad in grads])


class Sides:
    """Turns of both sides: each some steps from the policy's first weights, on the same tasks in the same order.

    Raises:
        InputError: TRL's trainer has no algorithm like the bench's.
    """

    def __init__(self, bench: Bench):
        self._bench, self._method = bench, method(bench.options)
        self._first = {name: value.detach().clone() for name, value in bench.policy.model.state_dict().items()}
        self._collected = 0
        """Steps of ours so far; draws and tasks depend on them."""

    def ours(self, steps: int, threads: int) -> tuple[list[Lap], list[int]]:
        """A lap for each step, and the positions of its tasks."""
        clock, first = Clock(), self._collected
        self._run_ours(lambda: self._collect(clock), steps, threads, clock, self._bench.optimizer())
        return clock.laps, self._places(first, steps)

    def next_tasks(self, steps: int) -> list[int]:
        """The positions of the tasks of our next turn."""
        return self._places(self._collected, steps)

    def stock(self, places: Sequence[int], steps: int, threads: int) -> list[Lap]:
        """A lap for each step, on the tasks at these positions."""
        clock = Clock()
        self._run_stock(places, steps, threads, clock, self._bench.optimizer())
        return clock.laps

    def gradients(self, threads: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(ours, stock's) of one step on the same rollouts, stored from the first weights, before clipping.

        Raises:
            GuardStop: no batch of the first few had anything to learn from.
        """
        self._restart(threads)
        stored = self._collect(Clock())
        while not stored.live().any():
            if self._collected >= TRIES:
                raise GuardStop(
                    f"in every group of {TRIES} batches all rewards were equal: there is no gradient to compare. Take more "
                    "algorithm.prompts_per_step, a larger algorithm.group_size, or tasks that the policy solves at times"
                )
            stored = self._collect(Clock())
        first = self._collected - 1
        unclipped = {"max_grad_norm": math.inf}
        optimizers = self._bench.optimizer(), self._bench.optimizer()
        ours, stock = map(Gradient, optimizers)
        self._run_ours(lambda: stored, 1, threads, Clock(), optimizers[0], unclipped)
        self._run_stock(self._places(first, 1), 1, threads, Clock(), optimizers[1], unclipped, stored)
        return ours.value, stock.value

    def _collect(self, clock: Clock) -> TrainingBatch:
        began = time.perf_counter()
        (groups,) = self._bench.collector.collect(self._collected).groups.values()
        self._collected += 1
        experience = self._bench.algorithm.experience(groups, self._bench.policy.pad_id)
        for phase, seconds in groups.seconds.items():
            clock.add(phase, seconds)
        flops = update_flops(self._bench.policy.model, experience, getattr(self._bench.options, "kl_coef", 0.0) > 0)
        clock.count(len(experience.completion_ids), int(experience.completion_mask.sum()), flops)
        clock.collected(time.perf_counter() - began)
        return experience

    def _places(self, first: int, steps: int) -> list[int]:
        prompts = self._bench.options.prompts_per_step
        return list(range(first * prompts, (first + steps) * prompts))

    def _run_ours(
        self,
        collect: Callable[[], TrainingBatch],
        steps: int,
        threads: int,
        clock: Clock,
        optimizer: torch.optim.Optimizer,
        more: Mapping[str, Any] = EMPTY,
    ) -> None:
        bench = self._bench
        self._restart(threads)
        with TemporaryDirectory() as scratch:
            trainer = bench.trainer(Path(scratch), optimizer, **{"max_steps": steps, **more})
            learner = Learner("policy", trainer, EMPTY)
            learner.begin()
            for _ in range(steps):
                clock.begin()
                learner.take(collect())
                learner.update()
                clock.end()
            learner.end()

    def _run_stock(
        self,
        places: Sequence[int],
        steps: int,
        threads: int,
        clock: Clock,
        optimizer: torch.optim.Optimizer,
        more: Mapping[str, Any] = EMPTY,
        stored: TrainingBatch | None = None,
    ) -> None:
        bench = self._bench
        self._restart(threads)
        tasks = [bench.curriculum.pick(place, 1)[0] for place in places]
        reward_function = RewardFunction(bench.policy, bench.domain, tasks, bench.verifier, bench.reward)
        with TemporaryDirectory() as scratch:
            ours = bench.algorithm.trl_arguments()
            common = {**bench.arguments(Path(scratch)), **ours, **self._method, "max_steps": steps, **more}
            tokens = bench.limits.tokens
            Stock(
                bench.policy,
                bench.domain,
                tasks,
                reward_function,
                common,
                tokens,
                optimizer,
                clock,
                stored,
            ).train()

    def _restart(self, threads: int) -> None:
        """First weights, and a model that no trainer has put a head on."""
        model = self._bench.policy.model
        inner = model.get_base_model() if hasattr(model, "get_base_model") else model
        vars(inner).pop("forward", None)
        model.load_state_dict(self._first)
        model.zero_grad()
        torch.set_num_threads(threads)


def merge_laps(laps: Sequence[Lap]) -> Lap:
    """The sum of several laps."""
    return reduce(add, laps)


@dataclass
class DrawnReward(Reward):
    """0 or 1, drawn from the task and the text alone: both sides of a comparison pay a completion alike.

    For policies that solve nothing: random weights would leave every group without a signal to learn from.
    """

    def __post_init__(self) -> None:
        self.terms, self.normalizer, self._nonfinite = {}, Identity(), []

    def __call__(self, completions: Sequence[Completion]) -> list[RewardBreakdown]:
        drawn = [float(uniform("drawn reward", one.task.id, one.text) < 0.5) for one in completions]
        return [RewardBreakdown(value, value, {"drawn": value}) for value in drawn]
