"""The two sides of `benchmark=training`: our trainer and `trl.GRPOTrainer` as it comes, with the same clock around their phases.

Both have the same model, tasks, verifier, reward, batch, seed, lengths and optimizer. Stock's micro-batches hold as many
tokens as ours may. It is overridden only to read the time, and to take stored rollouts for a comparison of gradients.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.algorithms.gradients import NonFiniteGuard
from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.benchmarks.machine_limit import update_flops
from rlvr_exp.config.parallel import BatchLimits, derive
from rlvr_exp.core.errors import GuardStop, InputError, InputProblem
from rlvr_exp.core.seeds import uniform
from rlvr_exp.curriculum.base import Curriculum
from rlvr_exp.episodes.types import Completion, RewardBreakdown, TokenCount
from rlvr_exp.models.policy import Policy
from rlvr_exp.rewards.compose import Identity, Reward
from rlvr_exp.rollouts.collect import Collector
from rlvr_exp.rollouts.run_episodes import verified
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.training.learner import Learner
from rlvr_exp.verifiers.base import Verifier

PHASES = ("generate", "verify", "update", "other")


@dataclass(frozen=True)
class Lap:
    """One or more steps."""

    seconds: dict[str, float]
    """By phase; they add up to the steps' wall time."""
    samples: int
    tokens: int
    """Drawn, ends of completions included."""
    steps: int = 1
    flops: float = 0.0
    """Floating-point operations that the updates need; 0: not counted."""

    @property
    def total(self) -> float:
        return sum(self.seconds.values())

    def __add__(self, other: "Lap") -> "Lap":
        seconds = {phase: self.seconds[phase] + other.seconds[phase] for phase in PHASES}
        counts = {name: getattr(self, name) + getattr(other, name) for name in ("samples", "tokens", "steps", "flops")}
        return Lap(seconds, **counts)


class Clock(TrainerCallback):
    """A lap for each step, from its begin to the end of its update. It is a callback of a trainer that runs its own loop.

    The caller adds the time of collecting (`collected`) and of its named parts (`phase`, `add`). The rest of a step is its
    update.
    """

    def __init__(self) -> None:
        self.laps: list[Lap] = []
        self.begin()

    def begin(self) -> None:
        """Start the lap of a step."""
        self._began, self._collecting = time.perf_counter(), 0.0
        self._phases = {"generate": 0.0, "verify": 0.0}
        self._samples = self._tokens = 0
        self._flops = 0.0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.add(name, time.perf_counter() - began)

    def add(self, name: str, seconds: float) -> None:
        self._phases[name] += seconds

    def collected(self, seconds: float) -> None:
        """Add the time that a step spent on its batch of rollouts, phases included."""
        self._collecting += seconds

    def count(self, samples: int, tokens: int, flops: float = 0.0) -> None:
        self._samples += samples
        self._tokens += tokens
        self._flops += flops

    def end(self) -> None:
        """End the lap of a step."""
        whole = time.perf_counter() - self._began
        other = self._collecting - sum(self._phases.values())
        seconds = {**self._phases, "other": other, "update": whole - self._collecting}
        self.laps.append(Lap(seconds, self._samples, self._tokens, flops=self._flops))

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.begin()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.end()


LOSSES = {"grpo": "grpo", "dr_grpo": "dr_grpo", "token": "dapo"}
"""Our aggregation of token losses -> TRL's `loss_type` that is the same."""
NEUTRAL: Mapping[str, Any] = {
    "entropy_coef": 0.0,
    "entropy_target": 0.0,
    "pass_k": 1,
    "unlikeliness": 0.0,
    "positive_weight": 1.0,
    "zero_variance": "keep",
    "rollout_steps": 1,
    "iterations": 1,
    "stop": [],
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
}
"""Options with the one value for which TRL's trainer does the same. It does not renormalise over kept tokens."""


def method(options: Any) -> Mapping[str, Any]:
    """The fields of GRPOConfig with which TRL's own loss equals that of the `algorithm` node.

    Raises:
        InputError: TRL has no such algorithm.
    """
    if not hasattr(options, "advantage_scale"):
        what, got = "trl.GRPOTrainer has nothing to compare it with", options._target_
        raise InputError(InputProblem("algorithm", what, got, "algorithm=grpo"))
    allowed = {name: str(value) for name, value in NEUTRAL.items() if getattr(options, name) != value}
    if options.loss not in LOSSES:
        allowed["loss"] = ", ".join(LOSSES)
    if allowed:
        what = "trl.GRPOTrainer does not do the same"
        raise InputError(
            *(
                InputProblem(f"algorithm.{name}", what, str(getattr(options, name)), one)
                for name, one in allowed.items()
            )
        )
    return {"loss_type": LOSSES[options.loss], "scale_rewards": options.advantage_scale}


class Stock(GRPOTrainer):
    """TRL's trainer for one turn.

    Args:
        tasks: the tasks of its steps, in order.
        common: fields of GRPOConfig that both sides share.
        tokens: tokens of one forward and backward pass.
        stored: rollouts to learn from in place of its own.
    """

    def __init__(
        self,
        policy: Policy,
        domain: Domain,
        tasks: Sequence[Task],
        reward_function: "RewardFunction",
        common: Mapping[str, Any],
        tokens: int,
        optimizer: torch.optim.Optimizer,
        clock: Clock,
        stored: TrainingBatch | None = None,
    ):
        self._clock, self._stored = clock, stored
        texts = [domain.task_prompt(task) for task in tasks]
        longest = max(len(policy.encode_prompt(text)) for text in texts) + common["max_completion_length"]
        prompts = len(tasks) // common["max_steps"]
        plan = derive(prompts * common["num_generations"], longest, tokens)
        args = GRPOConfig(
            **common,
            per_device_train_batch_size=plan.micro_batch,
            gradient_accumulation_steps=plan.accumulation,
            steps_per_generation=plan.accumulation,
            shuffle_dataset=False,
            chat_template_kwargs={"enable_thinking": policy.thinking} if policy.chat else {},
        )
        worded = [[{"role": "user", "content": text}] for text in texts] if policy.chat else texts
        super().__init__(
            model=policy.model,
            reward_funcs=[reward_function],
            args=args,
            train_dataset=Dataset.from_dict({"prompt": worded, "place": list(range(len(tasks)))}),
            processing_class=policy.tokenizer,
            callbacks=[clock],
            optimizers=(optimizer, None),
        )
        self.remove_callback(PrinterCallback)

    def _generate(self, prompts: Any) -> Any:
        with self._clock.phase("generate"):
            return super()._generate(prompts)

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> Any:
        self._clock.count(len(completion_ids_list), sum(map(len, completion_ids_list)))
        with self._clock.phase("verify"):
            return super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        if self._stored is not None:
            return self._given(self._stored)
        began = time.perf_counter()
        scored = super()._generate_and_score_completions(inputs)
        self._clock.collected(time.perf_counter() - began)
        return scored

    def _given(self, stored: TrainingBatch) -> dict[str, torch.Tensor]:
        """The stored rollouts in TRL's form."""
        names = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "advantages")
        given = {name: getattr(stored, name).to(self.accelerator.device) for name in names}
        ids = torch.cat([given["prompt_ids"], given["completion_ids"]], dim=1)
        mask = torch.cat([given["prompt_mask"], given["completion_mask"]], dim=1)
        if self.beta != 0.0:
            with torch.no_grad():
                kept = given["completion_ids"].shape[1]
                size = self.args.per_device_train_batch_size
                reference, *_ = self._get_per_token_logps_and_entropies(
                    self.ref_model, ids, mask, kept, batch_size=size
                )
            given["ref_per_token_logps"] = reference
        return {**given, "num_items_in_batch": given["completion_mask"].sum()}


class RewardFunction:
    """Our verifier and reward as a reward function of TRL's."""

    __name__ = "verified"

    def __init__(self, policy: Policy, domain: Domain, tasks: Sequence[Task], verifier: Verifier, reward: Reward):
        self._policy, self._domain, self._tasks = policy, domain, tasks
        self._verifier, self._reward = verifier, reward

    def __call__(self, completions: Any, completion_ids: Any, place: Any, **_: Any) -> list[float | None]:
        tasks = [self._tasks[index] for index in place]
        texts = [one if isinstance(one, str) else one[0]["content"] for one in completions]
        drawn = []
        for i, (task, text, ids) in enumerate(zip(tasks, texts, completion_ids, strict=True)):
            cut = not any(token in self._policy.eos_ids for token in ids)
            drawn.append(Completion(task, i, TokenCount(len(ids), cut), text, self._domain.parse(text, task)))
        return [paid.total for paid in self._reward(verified(self._verifier, drawn))]


TRIES = 10
"""Most batches sampled to find one with a gradient."""


@dataclass(frozen=True)
class Bench:
    """The run that is measured. Sides share the policy; each turn starts from its first weights."""

    policy: Policy
    domain: Domain
    collector: Collector
    """Ours, with our verifier."""
    verifier: Verifier
    """Stock's own, so that neither side reuses verdicts of the other."""
    reward: Reward
    """Stock's own, for the same reason."""
    curriculum: Curriculum
    algorithm: Algorithm
    options: Any
    """The `algorithm` node."""
    arguments: Callable[[Path], Mapping[str, Any]]
    """Fields of both sides' GRPOConfig, from a folder that TRL may write to."""
    optimizer: Callable[[], torch.optim.Optimizer]
    limits: BatchLimits

    def trainer(self, scratch: Path, optimizer: torch.optim.Optimizer, **more: Any) -> PolicyTrainer:
        """Ours. `more`: further fields of its GRPOConfig."""
        common = {**self.arguments(scratch), **self.algorithm.trl_arguments(), **more}
        size = {"per_device_train_batch_size": self.options.group_size, "steps_per_generation": 1}
        return self.algorithm.trainer(
            self.policy, GRPOConfig(**common, **size), optimizer, NonFiniteGuard(), self.limits
        )


def _kept_gradient(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """A list that receives the gradient of each step as the optimizer gets it, flat and on the CPU; first an empty one."""
    kept = [torch.zeros(0)]

    def keep(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        grads = [value.grad for group in optimizer.param_groups for value in group["params"] if value.grad is not None]
        kept.append(torch.cat([grad.detach().float().flatten().cpu() for grad in grads]))

    optimizer.register_step_pre_hook(keep)
    return kept


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
        ours, stock = map(_kept_gradient, optimizers)
        self._run_ours(lambda: stored, 1, threads, Clock(), optimizers[0], unclipped)
        self._run_stock(self._places(first, 1), 1, threads, Clock(), optimizers[1], unclipped, stored)
        return ours[-1], stock[-1]

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
        more: Mapping[str, Any] | None = None,
    ) -> None:
        bench = self._bench
        self._restart(threads)
        with TemporaryDirectory() as scratch:
            trainer = bench.trainer(Path(scratch), optimizer, **{"max_steps": steps, **(more or {})})
            learner = Learner("policy", trainer, {})
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
        more: Mapping[str, Any] | None = None,
        stored: TrainingBatch | None = None,
    ) -> None:
        bench = self._bench
        self._restart(threads)
        tasks = [bench.curriculum.pick(place, 1)[0] for place in places]
        reward_function = RewardFunction(bench.policy, bench.domain, tasks, bench.verifier, bench.reward)
        with TemporaryDirectory() as scratch:
            ours = bench.algorithm.trl_arguments()
            common = {**bench.arguments(Path(scratch)), **ours, **self._method, "max_steps": steps, **(more or {})}
            tokens = bench.limits.tokens
            Stock(bench.policy, bench.domain, tasks, reward_function, common, tokens, optimizer, clock, stored).train()

    def _restart(self, threads: int) -> None:
        """First weights, and a model that no trainer has put a head on."""
        model = self._bench.policy.model
        inner = model.get_base_model() if hasattr(model, "get_base_model") else model
        vars(inner).pop("forward", None)
        model.load_state_dict(self._first)
        model.zero_grad()
        torch.set_num_threads(threads)


@dataclass
class DrawnReward(Reward):
    """0 or 1, drawn from the task and the text: both sides of a comparison reward a completion alike.

    For policies that solve nothing: random weights would leave every group without a signal to learn from.
    """

    def __post_init__(self) -> None:
        self.terms, self.normalizer, self._nonfinite = {}, Identity(), []

    def __call__(self, completions: Sequence[Completion]) -> list[RewardBreakdown]:
        drawn = [float(uniform("drawn reward", one.task.id, one.text) < 0.5) for one in completions]
        return [RewardBreakdown(value, value, {"drawn": value}) for value in drawn]
