"""The training of a role of a cascade: an algorithm, an optimizer, a trainer and a log of its own, the same as for a
policy that learns alone. Its metrics are under its name in the row of the run's step, times under `time/ROLE/...`."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.algorithms.resumable import Resumable
from rlvr_exp.algorithms.role_scheduler import RoleScheduler
from rlvr_exp.algorithms.sync_probe_callback import SyncProbeCallback
from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.config import build
from rlvr_exp.config.batching import BatchLimits
from rlvr_exp.models.adapters import adapter_metrics
from rlvr_exp.records.context import RunContext
from rlvr_exp.rollouts.cascade import ANNOTATOR
from rlvr_exp.rollouts.distributed import rank
from rlvr_exp.rollouts.groups import Groups
from rlvr_exp.stages.cascade_components import CascadeComponents
from rlvr_exp.stages.reinforcement import trainer_arguments
from rlvr_exp.training.callbacks import MetricsLogger
from rlvr_exp.training.guards import Guards
from rlvr_exp.training.step_log import StepLog


def of_role(config, role: str):
    """The configuration for a role's trainer: its own steps, groups and group size."""
    options, algorithm = config.cascade, config.algorithm
    steps = max(1, options.steps_of(role, algorithm.max_steps))
    sizes = {"max_steps": steps}
    if role == ANNOTATOR:
        bodies = 1 if options.bodies == "gold" else algorithm.group_size
        sizes |= {"prompts_per_step": algorithm.prompts_per_step * bodies, "group_size": options.annotations}
    return replace(config, algorithm=replace(algorithm, **sizes))


def algorithm_of(config, role: str) -> Algorithm:
    longest, folder = config.model.max_completion_tokens, config.model.path
    return build(of_role(config, role).algorithm, max_completion_tokens=longest, checkpoint=folder)


class RoleGuards(Guards):
    """The guards of a role: its skipped updates. The process's resources are watched once, for all roles."""

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_):
        """Nothing: the run's own loop watches resources."""

    def metrics(self) -> Mapping[str, float]:
        return self.updates.metrics()


class Learner:
    """A role that is trained, in the steps of rlvr_exp.stages.cascade_learning."""

    def __init__(self, role: str, components: CascadeComponents, config, steps, scratch: Path):
        self.role, self._steps, self.policy = role, steps, components.policies[role]
        self.algorithm, config = algorithm_of(config, role), of_role(config, role)
        self.guards = RoleGuards(config.run.guards, steps.context)
        self.log = StepLog(self.algorithm.regularised, self.algorithm.group_filter().mode != "keep")
        self.learned: TrainingBatch | None = None
        """The batch of the current step."""
        own = replace(components.writer, policy=self.policy)
        self.trainer = self.algorithm.trainer(
            self.policy,
            trainer_arguments(own, config, self.algorithm, scratch),
            build(config.optimizer).make(self.policy.model),
            self.experience,
            [MetricsLogger(_Named(role, steps), _Quiet(steps.context), self.row, self.log.updated), self.guards],
            BatchLimits(config.algorithm.max_tokens_per_device, config.model.max_prompt_tokens),
        )
        self.trainer.on_batch, self.trainer.guard = self.on_batch, self.guards.updates
        self.probing = SyncProbeCallback(config.run.probe, self.trainer, self.policy, _prompts(role, components))
        self.trainer.add_callback(self.probing)
        self.trainer.metric_state |= {"steps": self.log, "probe": self.probing, "clipping": self.trainer.clipping}

    def experience(self, _: int) -> TrainingBatch:
        """The role's batch of the run's step. Raises GuardStop where its sample accounting does not add up."""
        groups: Groups = self._steps.collected().of(self.role)
        learned = self.algorithm.experience(groups, self.policy.pad_id)
        self.log.record(groups, learned)
        return learned

    def on_batch(self, learned: TrainingBatch) -> None:
        self.learned = learned

    def row(self) -> dict[str, float]:
        """Metrics since the last row."""
        own = {**self.log.metrics(), **adapter_metrics(self.policy.model)}
        return {**own, **self.probing.metrics(), **self.guards.metrics()}


class Learners:
    """The training state of all roles that learn, written into the same checkpoint: `training/ROLE/`. A role that has
    not started has none.

    Args:
        scratch: a temporary folder of this process.
    """

    def __init__(self, roles: RoleScheduler, learners: Mapping[str, Learner], scratch: Path):
        self._roles, self._learners, self._scratch = roles, learners, scratch
        self._waiting: dict[str, Path] = {}
        """State of roles that have not had a turn since the run was resumed: it is written as it was read."""

    def begin(self) -> None:
        """Let every role start at its first turn, or resume from the loaded state."""
        for name in self._learners:
            folder = self._waiting.get(name)
            self._roles.add(name, partial(self._make, name), None if folder is None else str(folder))

    def _make(self, name: str, turn: TrainerCallback) -> Resumable:
        self._waiting.pop(name, None)
        trainer = self._learners[name].trainer
        trainer.add_callback(turn)
        return trainer

    def save_training(self, folder: Path) -> None:
        """Write into an existing folder. All ranks call this."""
        for name, one in self._learners.items():
            if name in self._waiting:
                if rank() == 0:
                    shutil.copytree(self._waiting[name], folder / name)
            elif one.trainer.state.global_step:
                (folder / name).mkdir(exist_ok=True)
                with self._roles.numbers(name):
                    one.trainer.save_training(folder / name)

    def load_training(self, folder: Path) -> None:
        """Called before `begin`, with weights restored. The folder may be removed while a role still waits."""
        for name, one in self._learners.items():
            if (folder / name).is_dir():
                one.trainer.load_training(folder / name)
                self._waiting[name] = self._scratch / "going on" / name
                shutil.copytree(folder / name, self._waiting[name])


class _Named:
    """The tracker from a role's side: its metrics under its name, in the row of the run's step."""

    def __init__(self, role: str, steps):
        self._role, self._steps = role, steps

    def log(self, _: int, metrics: Mapping[str, float]) -> None:
        named = {self._name(name): value for name, value in metrics.items() if name != "time/step"}
        self._steps.tracker.log(self._steps.now + 1, named)

    def _name(self, name: str) -> str:
        head, _, rest = name.partition("/")
        return f"{head}/{self._role}/{rest}" if head in ("time", "system") else f"{self._role}/{name}"


class _Quiet:
    """The run's context from a role's side: its steps are not the run's."""

    def __init__(self, context: RunContext):
        self._context = context

    def progress(self, **_: Any) -> None:
        self._context.heartbeat()


def _prompts(role: str, components: CascadeComponents) -> list[list[int]]:
    """Two of a role's prompts, for its probe."""
    domain, tasks = components.domain, components.writer.held_out[:2]
    if role == ANNOTATOR:
        prompts = [domain.annotator.prompt(domain.annotation(task, domain.gold_body(task), None)) for task in tasks]
    else:
        prompts = [domain.writer.prompt(task) for task in tasks]
    return [components.policies[role].encode_prompt(text) for text in prompts]
