"""Solves edits in steps: an action, the text that it makes, the next action, until the policy says that it is done."""

from collections.abc import Mapping
from dataclasses import replace

from rlvr_exp.config.infer import Infer
from rlvr_exp.config.load import build
from rlvr_exp.config.model import Model
from rlvr_exp.config.schema import Config
from rlvr_exp.episodes.environment import Environment
from rlvr_exp.episodes.environments.retry import rank, too_long
from rlvr_exp.episodes.episode import POLICY, Episode
from rlvr_exp.inference.engine import Engine
from rlvr_exp.inference.solution import Attempt, Solution
from rlvr_exp.launch.inference_inputs import InferenceTask
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.engines.base import SamplingEngine
from rlvr_exp.rollouts.run_episodes import EpisodeRunner
from rlvr_exp.tasks.base import Domain
from rlvr_exp.verifiers.base import Verifier
from rlvr_exp.verifiers.execution import KeepsOutputs


def engine_of(
    config: Config,
    policies: Mapping[str, Policy],
    verifier: Verifier | None,
    domain: Domain,
    sampler: SamplingEngine,
) -> "StepsEngine":
    """Raises InputError if the environment does not fit the data, or needs another verifier."""
    options = config.infer
    assert options is not None and verifier is not None, "without a verifier steps are refused"
    shown = build(config.environment, domain=domain)
    return StepsEngine(policies[POLICY], options, config.model, verifier, domain, shown, config.seed, sampler)


class StepsEngine(Engine):
    """An `Engine` whose answer is the last action of a branch, with the text that all of them have made: the right one, else the
    best of `samples` branches. `attempt` counts its steps.

    Args:
        environment: `environment=edits` of the domain; what it shows needs a verifier that keeps texts.
    """

    def __init__(
        self,
        policy: Policy,
        options: Infer,
        limits: Model,
        verifier: Verifier,
        domain: Domain,
        environment: Environment,
        seed: int = 0,
        engine: SamplingEngine | None = None,
    ):
        super().__init__(policy, options, limits, verifier, domain, seed, engine)
        self._environment = environment
        self._keeps = KeepsOutputs(verifier, "environment", remember=False)

    def _runner(self, domain: Domain) -> EpisodeRunner:
        players = {POLICY: self._player(self.policy, domain)}
        return EpisodeRunner(self._environment, players, self._keeps, self._generate)

    def _attempts(self, episode: Episode) -> list[Attempt]:
        """The steps of the best branch."""
        ends = [index for index in self._environment.rewarded(episode) if not too_long(episode.turns[index].completion)]
        found: list[Attempt] = []
        at = max(ends, key=lambda index: rank(episode.turns[index].completion), default=None)
        while at is not None:
            turn = episode.turns[at]
            found.insert(0, Attempt(episode.depth(at) + 1, turn.prompt_ids, turn.completion))
            at = turn.parent
        return found

    def _chosen(self, attempts: list[Attempt]) -> Attempt:
        return attempts[-1]

    def _solution(self, item: InferenceTask, episode: Episode) -> Solution:
        found = super()._solution(item, episode)
        made = found.completion.verdict.outputs
        return replace(found, edited=made[0] if made else None)
