"""Episodes on an OpenEnv server, until the server ends them. The reward of an answer is that of its episode."""

from typing import Any, ClassVar

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.domains.remote import options
from rlvr_exp.domains.remote.tasks import RemoteTasks
from rlvr_exp.domains.remote.verifier import REWARD
from rlvr_exp.episodes.environment import Run
from rlvr_exp.episodes.environments import LastAnswerPays
from rlvr_exp.episodes.episode import Episode, all_turns
from rlvr_exp.episodes.types import Completion
from rlvr_exp.rewards.base import Term, ValueRange
from rlvr_exp.tasks.base import Domain


class RemoteEpisodes(LastAnswerPays, options.RemoteEpisodes):
    """A verdict has an output if its episode continues: the next observation.

    Raises:
        InputError: the tasks are not those of a server.
    """

    name = "remote"

    def __init__(self, domain: Domain, **given: Any):
        super().__init__(**given)
        if not isinstance(domain, RemoteTasks):
            what = "the tasks of a server are its own"
            raise InputError(InputProblem("environment", what, domain.name, "data=openenv"))
        self._domain = domain

    def domain(self, role: str) -> Domain:
        return self._domain

    def run(self, episode: Episode) -> Run:
        domain = self._domain
        [turns] = yield [episode.ask(domain.task_prompt(episode.task))]
        for number in range(1, self.turns):
            requests = []
            for turn in turns:
                done, verdict = turn.completion, turn.completion.verdict
                if verdict.outputs:
                    observed, earned = verdict.outputs[0], verdict.measures[REWARD]
                    task = domain.after(done.task, done.candidate.text or "", observed, earned)
                    requests.append(
                        episode.ask(domain.task_prompt(task), task=task, parent=turn, path=("turn", number))
                    )
            turns = all_turns((yield requests))


ANY = ValueRange(float("-inf"), float("inf"))


class RemoteReward(Term, options.RemoteReward):
    """The sum of rewards; 0 for an answer that was not played, such as a truncated one."""

    when_correct: ClassVar[ValueRange] = ANY
    when_wrong: ClassVar[ValueRange] = ANY

    def __call__(self, completion: Completion) -> float:
        return completion.verdict.measures.get(REWARD, 0.0)
