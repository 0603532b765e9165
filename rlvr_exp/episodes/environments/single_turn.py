"""One prompt, one completion, one verdict."""

from collections.abc import Sequence

from rlvr_exp.config import data as options
from rlvr_exp.episodes.environment import Environment
from rlvr_exp.episodes.episode import POLICY, Episode, Sample
from rlvr_exp.tasks.base import Domain


class SingleTurn(Environment, options.SingleTurn):
    name = "single_turn"
    one_group = True

    def __init__(self, domain: Domain):
        self._domain = domain

    def domain(self, role: str) -> Domain:
        return self._domain

    def asks(self, episode: Episode) -> Sequence[Sample]:
        if episode.turns:
            return ()
        task = episode.task
        keys = tuple(episode.draws.key(task, index) for index in episode.samples)
        return [Sample(POLICY, task, self._domain.task_prompt(task), keys)]
