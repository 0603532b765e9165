"""What the stages ask of a team: its tasks, its environments, and what is measured of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rlvr_exp.config.schema import Config
from rlvr_exp.episodes.environment import Environment
from rlvr_exp.inference.engine import Engine
from rlvr_exp.models.policy import Policy
from rlvr_exp.records.rollout_files import EvalSample
from rlvr_exp.rollouts.engines.base import SamplingEngine
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.verifiers.base import Verifier


class Play(ABC):
    """
    Args:
        build_domain: makes the domain of a configuration, as every stage does.
    """

    domain: Domain
    """Its tasks are the run's."""
    metrics: tuple[str, ...]
    """Names of the rates of an evaluation."""

    @abstractmethod
    def __init__(self, config: Config, build_domain: Callable[[Config], Domain]): ...

    @abstractmethod
    def training(self, config: Config) -> Environment:
        """The environment in training."""

    @abstractmethod
    def evaluation(self, config: Config) -> Environment:
        """The environment in evaluations."""

    @abstractmethod
    def prompts(self, role: str, tasks: Sequence[Task]) -> list[str]:
        """A prompt of the role for each task."""

    @abstractmethod
    def gold(self, task: Task) -> str:
        """The answer of the data to a task of the run."""

    @abstractmethod
    def sections(self, results: Sequence[EvalSample]) -> dict[str, Any]:
        """Sections of an evaluation's file, as plain data."""

    @abstractmethod
    def engine(
        self,
        config: Config,
        policies: Mapping[str, Policy],
        limits: Mapping[str, Any],
        verifier: Verifier | None,
        sampler: SamplingEngine,
    ) -> Engine:
        """The engine of +stage=infer. `limits`: the model node of each role."""
