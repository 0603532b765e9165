"""One prompt, one completion, one verdict."""

from rlvr_exp.config import data as options
from rlvr_exp.episodes.environment import Environment, Run
from rlvr_exp.episodes.episode import Episode
from rlvr_exp.tasks.base import Domain


class SingleTurn(Environment, options.SingleTurn):
    name = "single_turn"
    one_group = True

    def __init__(self, domain: Domain):
        self._domain = domain

    def domain(self, role: str) -> Domain:
        return self._domain

    def run(self, episode: Episode) -> Run:
        yield [episode.ask(self._domain.task_prompt(episode.task))]
