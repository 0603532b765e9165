"""Learners: the updates of one role, by a TRL trainer whose loop is rlvr_exp.training.loop.

`Learner.update` shows an update from top to bottom. A subclass may prepare the data of the role (`take`), and adds to its
rows of metrics (`row`). `RLLearner` learns from the verified completions of each step; `PeriodicProbe` compares sampler and
trainer. `SFTLearner` learns from reference answers; `GoldFeed` serves them.
"""

import dataclasses
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

import torch
from peft import PeftModel
from transformers.trainer import TRAINER_STATE_NAME
from trl import GRPOConfig

from rlvr_exp.algorithms.base import Algorithm, shared_arguments
from rlvr_exp.algorithms.gradients import Clipping, GradientCosine, NonFiniteGuard
from rlvr_exp.algorithms.loss import correction_of
from rlvr_exp.algorithms.optimizers import parts_of
from rlvr_exp.algorithms.sft import Example, Examples, ImitationTrainer
from rlvr_exp.algorithms.stepped import Stepped
from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.config.engine import is_exact
from rlvr_exp.config.load import build
from rlvr_exp.config.parallel import BatchLimits
from rlvr_exp.config.run import Probe
from rlvr_exp.config.schema import Config
from rlvr_exp.core.measures import HELD_OUT_BITS, HELD_OUT_LOSS
from rlvr_exp.core.seeds import derive, stream
from rlvr_exp.models.adapters import activate, adapter_metrics
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.collect import Rollouts
from rlvr_exp.rollouts.distributed import shard
from rlvr_exp.rollouts.engines.base import HoldsWeights
from rlvr_exp.rollouts.sync_probe import Sequences, SyncProbe
from rlvr_exp.training.example_order import Order
from rlvr_exp.training.step_log import StepLog

NAMES = {
    "loss": "loss",
    "learning_rate": "learning_rate",
    "kl": "kl",
    "clip_ratio/low_mean": "clip/low",
    "clip_ratio/high_mean": "clip/high",
    "num_tokens": "tokens/seen",
    "policy/loss": "policy/loss",
    "value/loss": "value/loss",
    "value/clipped": "value/clipped",
    "value/explained_variance": "value/explained_variance",
    "kl/old": "kl/old",
    "entropy/coef": "entropy/coef",
    "sampling/gap": "sampling/gap",
    "sampling/gap_max": "sampling/gap_max",
    "sampling/over_cap": "sampling/over_cap",
    "sampling/ess": "sampling/ess",
    "distill/taught": "distill/taught",
    "distill/divergence": "distill/divergence",
    "distill/gain": "distill/gain",
    "replay/groups": "replay/groups",
    "replay/weight": "replay/weight",
    "mean_token_accuracy": "token_accuracy",
}
"""TRL's name of a metric -> ours, so that a run's files do not change with TRL. Metrics that are not listed are not
logged."""
OF_MACHINE = ("step_time",)
"""TRL's metrics that depend on the machine; no row logs them."""


class Stateful(Protocol):
    """Anything whose state is part of a checkpoint."""

    def state_dict(self) -> Mapping[str, Any]: ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


class Learner:
    """
    Args:
        role: its name; with a `trainer` of several adapters, the adapter that is trained.
        measured: further parts whose state only rows of metrics depend on, by name.
    """

    figures: ClassVar[Mapping[str, str]] = {"loss": "loss"}
    """The few metrics of its row that are shown while it trains, by their names there."""

    def __init__(self, role: str, trainer: Stepped, measured: Mapping[str, Stateful]):
        self.role, self.trainer, self.guard = role, trainer, trainer.guard
        self._clipping = Clipping()
        self._measured = {"clipping": self._clipping, **measured}
        self._loss: torch.Tensor | float = 0.0
        """The sum of the losses of updates applied since the last row."""
        self._updates = [0, 0]
        """Updates since the last row: applied, all."""
        self._rate = 0.0
        """The learning rate of the last update."""
        self._began = time.time()
        self.ready = True
        """The last rollouts hold something for the role; otherwise it has no update until the next."""

    @property
    def steps(self) -> int:
        """Updates done."""
        return self.trainer.state.global_step

    @property
    def needs_rollouts(self) -> bool:
        """Whether `take` comes before the next update."""
        return self.trainer.needs_batch

    def compare_gradients(self) -> None:
        """Log the cosine between the gradients of consecutive updates. Called before `begin`."""
        self._clipping.cosine = GradientCosine()

    def begin(self, folder: Path | None = None) -> None:
        """Prepare model, optimizer and schedule for the first update.

        Args:
            folder: the state that `save` wrote, to resume from; weights are loaded already.
        """
        self.activate()
        if folder is not None:
            self._load(folder)
        self.trainer.train(resume_from_checkpoint=None if folder is None else str(folder))

    def take(self, rollouts: Any) -> None:
        """Prepare the next updates: rollouts, as the trainer takes them."""
        self.trainer.take(rollouts)

    def update(self) -> None:
        """One optimizer update.

        Raises:
            GuardStop: too many updates in a row were skipped.
        """
        trainer, step = self.trainer, self.steps + 1
        self.activate()
        self.guard.check(self.steps)
        torch.manual_seed(derive(trainer.args.seed, "update", self.role, step, trainer.args.process_index))
        loss = trainer.gradient()
        clip, limit = trainer._clip_grad_norm, trainer.args.max_grad_norm
        norm = self._clipping.clip(trainer.model_wrapped, clip, limit, trainer.under_deepspeed)
        applied = self.guard.applies(step, norm)
        self._updates = [self._updates[0] + applied, self._updates[1] + 1]
        if applied:
            self._loss = self._loss + loss
        if applied or trainer.under_deepspeed:  # DeepSpeed itself skips a broken update.
            trainer.optimizer.step()
        self._rate = trainer._get_learning_rate()
        if (
            applied and not trainer.accelerator.optimizer_step_was_skipped
        ):  # The schedule stands still with the optimizer.
            trainer.lr_scheduler.step()
        trainer.model_wrapped.zero_grad()
        trainer.state.global_step = step
        # TRL renews a reference that follows the policy in a callback.
        trainer.callback_handler.on_step_end(trainer.args, trainer.state, trainer.control)

    def restart(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Train from these weights with a new optimizer and a new schedule. Steps go on being counted. Not under DeepSpeed,
        which holds weights of its own."""
        trainer = self.trainer
        trainer.accelerator.unwrap_model(trainer.model).load_state_dict(weights)
        for part in parts_of(trainer.optimizer):
            part.state.clear()
        schedule = trainer.lr_scheduler
        schedule.last_epoch = -1
        schedule.step()

    def end(self) -> None:
        """After the last update. Raises GuardStop if none was applied."""
        self.guard.check(self.steps, ended=True)
        # Transformers sums up losses that its own loop would have noted; nobody reads the sum.
        self.trainer._tr_loss, self.trainer._total_loss_scalar = torch.tensor(0.0), 0.0
        self.trainer._finalize_training(None, 0, self._began)

    def row(self) -> dict[str, float]:
        """Metrics since the last row; empty if there was no update."""
        if not self._updates[1]:
            return {}
        applied, trainer = self._updates[0], self.trainer
        loss = trainer.accelerator.gather(self._loss).mean().item() / applied if applied else math.nan
        values = trainer._metrics["train"]  # Of TRL. Values that are not numbers do not count.
        numbers = {name: [one for one in values[name] if not math.isnan(one)] for name in values if name in NAMES}
        values.clear()
        means = {name: sum(each) / len(each) for name, each in numbers.items() if each}
        row = {
            NAMES[name]: float(value) for name, value in {**means, "loss": loss, "learning_rate": self._rate}.items()
        }
        self._loss, self._updates = 0.0, [0, 0]
        return {**row, **self._clipping.metrics(), **self.guard.metrics()}

    @property
    def checkpoint_parts(self) -> Mapping[str, Any]:
        """Objects that belong to a checkpoint besides the policy, by name."""
        return {"guard": self.guard, **self.trainer.checkpoint_parts}

    def save(self, folder: Path) -> None:
        """Write the training state into an existing folder. All ranks call this."""
        trainer = self.trainer
        self.activate()
        trainer._save_optimizer_and_scheduler(str(folder))
        if trainer.args.should_save:
            bare = dataclasses.replace(trainer.state, log_history=[], stateful_callbacks={})
            bare.save_to_json(str(folder / TRAINER_STATE_NAME))
        metrics = trainer._metrics["train"]
        state = {
            "loss": self._loss,
            "updates": self._updates,
            "metrics": {name: list(values) for name, values in metrics.items() if name not in OF_MACHINE},
            "measured": {name: dict(part.state_dict()) for name, part in self._measured.items()},
            "trainer": dict(trainer.trainer_state()),
        }
        torch.save(state, self._own_file(folder))

    def activate(self) -> None:
        """Let a role that shares its model with others train its own adapter: theirs take no gradient meanwhile."""
        model = self.trainer.accelerator.unwrap_model(self.trainer.model)
        if isinstance(model, PeftModel) and self.role in model.peft_config:
            activate(model, self.role)

    def _load(self, folder: Path) -> None:
        device = self.trainer.args.device
        # A rank without an accelerator has the device "cpu:0", which torch does not load to.
        where = device if device.type == "cuda" else device.type
        state = torch.load(self._own_file(folder), map_location=where, weights_only=True)
        self._loss, self._updates = state["loss"], list(state["updates"])
        self.trainer._metrics["train"].update({name: list(values) for name, values in state["metrics"].items()})
        for name, part in self._measured.items():
            part.load_state_dict(state["measured"][name])
        self.trainer.load_trainer_state(state["trainer"])

    def _own_file(self, folder: Path) -> Path:
        return folder / f"rank_{self.trainer.args.process_index}.pt"


class PeriodicProbe:
    """
    Args:
        options: the `run.probe` node.
        prompts: token ids of a few prompts, the same before and after a resume.
        engine: an engine with its own copy of the weights; None: the policy's weights sample.
    """

    def __init__(
        self,
        options: Probe,
        trainer: PolicyTrainer,
        policy: Policy,
        prompts: list[list[int]],
        engine: HoldsWeights | None = None,
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
            None
            if engine is None
            else lambda: engine.scored(policy, own.prompts, own.completions, trainer.temperature),
            None if engine is None else engine.weights_dtype(policy),
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
        """The gap, if one was measured since the last call."""
        gap, self._gap = self._gap, None
        return {} if gap is None else {"sync/probe_gap": gap}

    def _trained(self) -> torch.Tensor:
        """(completions, tokens) as the trainer scores them."""
        completions = [list(ids) for row in self._sequences.completions for ids in row]
        owners = [place for place, row in enumerate(self._sequences.completions) for _ in row]
        prompts = [list(self._sequences.prompts[owner]) for owner in owners]
        return self._trainer.scored(prompts, completions, owners).cpu()


class RLLearner(Learner):
    """
    Args:
        config: of the role: its `algorithm` node has the role's own steps and group size.
        prompts: token ids of a few prompts, for the probe.
        scratch: a folder that TRL may write to.
        engine: as in `PeriodicProbe`.
    """

    # Not the loss: that of a policy gradient is near 0 whatever is learned.
    figures: ClassVar = {
        "reward": "reward/mean",
        "success": "success/mean",
        "entropy": "entropy",
        "KL(ref)": "kl",
        "KL(old)": "kl/old",
    }

    def __init__(
        self,
        role: str,
        policy: Policy,
        algorithm: Algorithm,
        config: Config,
        prompts: list[list[int]],
        scratch: Path,
        engine: HoldsWeights | None = None,
    ):
        self.policy, self.algorithm = policy, algorithm
        self.log = StepLog(algorithm.regularised, algorithm.group_filter().mode != "keep")
        self.learned: TrainingBatch | None = None
        """The batch of the current step; None if the role takes none in it."""
        trainer = algorithm.trainer(
            policy,
            trainer_arguments(policy, config, algorithm, scratch),
            build(config.optimizer).make(policy.model),
            NonFiniteGuard(config.run.guards.max_skipped),
            BatchLimits(
                config.algorithm.max_tokens_per_device, config.model.max_prompt_tokens, config.algorithm.filtered
            ),
        )
        trainer.correction = correction_of(algorithm, is_exact(config.engine))
        self._probe = PeriodicProbe(config.run.probe, trainer, policy, prompts, engine)
        super().__init__(role, trainer, {"steps": self.log, "probe": self._probe})

    def begin(self, folder: Path | None = None) -> None:
        super().begin(folder)
        self._probe.begin(self.steps)

    def take(self, rollouts: Rollouts) -> None:
        """Raises GuardStop if the step's sample accounting does not add up."""
        self.activate()
        self.ready = self.role in rollouts.groups
        if not self.ready:
            self.learned = None
            return
        groups = rollouts.groups[self.role]
        self.guard.rewards(rollouts.nonfinite)
        batch = self.algorithm.experience(groups, self.policy.pad_id)
        self.log.record(groups, batch)
        self.learned = self.trainer.take(batch)

    def update(self) -> None:
        super().update()
        self.log.updated()
        self._probe.after(self.steps)

    def row(self) -> dict[str, float]:
        self.activate()
        row = super().row()
        return (
            {**row, **self.log.metrics(), **adapter_metrics(self.policy.model), **self._probe.metrics()} if row else {}
        )


def trainer_arguments(policy: Policy, config: Config, algorithm: Algorithm, scratch: Path) -> GRPOConfig:
    """TRL's configuration of the run. Its batch size is a formality: the trainer splits each step's batch itself."""
    return GRPOConfig(
        **{**shared_arguments(config, scratch, policy.model.dtype), **algorithm.trl_arguments()},
        per_device_train_batch_size=config.algorithm.group_size,
        gradient_accumulation_steps=1,
        steps_per_generation=1,
    )


class SFTLearner(Learner):
    """
    Args:
        every_steps: steps between measurements of the held-out loss.
        characters: of the held-out golds.
    """

    trainer: ImitationTrainer

    def __init__(self, role: str, trainer: ImitationTrainer, every_steps: int, characters: int):
        self._every, self._characters = every_steps, characters
        super().__init__(role, trainer, {})

    def row(self) -> dict[str, float]:
        row = super().row()
        return {**row, **adapter_metrics(self.trainer.model)} if row else {}

    def due(self, step: int) -> bool:
        """Whether the held-out loss is measured after a step."""
        return step % self._every == 0

    def held_out_loss(self) -> dict[str, float]:
        nats, tokens = self.trainer.held_out_loss()
        return {HELD_OUT_LOSS: nats / tokens, HELD_OUT_BITS: nats / math.log(2) / self._characters}


class GoldFeed:
    """The examples of each update, in another form on every pass (`Examples.variant`).

    Args:
        order: of the examples.
        batch_size: examples of an update on all processes.
    """

    def __init__(self, examples: Examples, order: Order, batch_size: int, seed: int):
        self._examples, self._order, self._batch_size, self._seed = examples, order, batch_size, seed
        self._seen = 0
        """Examples so far in the run."""
        self.rows = ()

    def collect(self, step: int) -> list[Example]:
        """This process's examples in a step, counted from 0."""
        first, self._seen = step * self._batch_size, (step + 1) * self._batch_size
        return [
            self._examples.variant(index, stream(self._seed, "form of an example", number, index))
            for index, number in shard(self._order.between(first, self._seen))
        ]

    def metrics(self) -> dict[str, float]:
        """Examples of each source so far."""
        return {f"mix/{source}": float(count) for source, count in self._order.sources(self._seen).items()}

    def write(self, learners: Mapping[str, Learner]) -> None:
        """Nothing: the examples are the data's."""
