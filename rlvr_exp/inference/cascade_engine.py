"""Solves tasks with the two roles of a trained cascade: a body is written, then annotated until Dafny proves it."""

from collections.abc import Mapping

from rlvr_exp.config.infer import Infer
from rlvr_exp.config.model import Model
from rlvr_exp.episodes.environments.cascade import ANNOTATOR, Cascade, Widths
from rlvr_exp.episodes.episode import Episode
from rlvr_exp.inference.engine import Engine
from rlvr_exp.inference.solution import Attempt
from rlvr_exp.models.policy import Policy
from rlvr_exp.models.role_policies import acting
from rlvr_exp.rollouts.engines.base import SamplingEngine
from rlvr_exp.rollouts.run_episodes import EpisodeRunner
from rlvr_exp.tasks.base import Domain
from rlvr_exp.tasks.dafny.two_stage import TwoStage
from rlvr_exp.verifiers.base import Verifier


class CascadeEngine(Engine):
    """An `Engine` whose answers are annotated programs; `samples` bodies are written, each annotated once, with as many
    further attempts as the options have. A body that cannot be annotated is an answer that fails.

    Args:
        policies: by role, as are their limits.
        domain: both roles' view of the tasks.
    """

    def __init__(
        self,
        policies: Mapping[str, Policy],
        options: Infer,
        limits: Mapping[str, Model],
        verifier: Verifier | None,
        domain: TwoStage,
        seed: int = 0,
        engine: SamplingEngine | None = None,
    ):
        super().__init__(policies[ANNOTATOR], options, limits[ANNOTATOR], verifier, domain.writer, seed, engine)
        self._policies, self._limits_of = policies, limits
        self._environment = Cascade(domain, Widths(attempts=options.max_attempts))

    def _runner(self, domain: Domain) -> EpisodeRunner:
        players = {
            role: self._player(one, self._environment.domain(role), self._limits_of[role])
            for role, one in self._policies.items()
        }
        return EpisodeRunner(self._environment, players, self._verifier, self._generate)

    def _attempts(self, episode: Episode) -> list[Attempt]:
        found: list[Attempt] = []
        for body in self._environment.bodies(episode):
            chains = body.chains or ((body.index,),)
            turns = [[episode.turns[place] for place in chain] for chain in chains]
            found += [
                Attempt(place, one.prompt_ids, one.completion) for chain in turns for place, one in enumerate(chain, 1)
            ]
        return found

    def _logprob(self, attempt: Attempt) -> float | None:
        with acting(self._policies, ANNOTATOR):
            return super()._logprob(attempt)
