"""Works coding problems out in stages of reasoning: a solver alone, or chosen and criticised by a tester.

With a tester `samples` chains are one episode; the answer is the program that passes the largest share of the valid tests, among
equals the first that was sampled. A test is valid where the reference passes it. Hidden tests decide success and no choice. A solver
alone has nothing but those: the first program that passes is the answer, else the best score, as of every policy alone.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from rlvr_exp.config.infer import Infer
from rlvr_exp.config.model import Model
from rlvr_exp.episodes.environments.reasoning import InStages, before
from rlvr_exp.episodes.environments.retry import rank, too_long
from rlvr_exp.episodes.environments.solving import Solving
from rlvr_exp.episodes.episode import Episode
from rlvr_exp.inference.engine import Engine
from rlvr_exp.inference.problem_parts import parts_of
from rlvr_exp.inference.problem_rows import task_of
from rlvr_exp.inference.problem_solution import ProblemSolution
from rlvr_exp.inference.solution import Attempt, Solution
from rlvr_exp.launch.inference_inputs import InferenceTask
from rlvr_exp.models.policy import Policy, acting
from rlvr_exp.rollouts.engines.base import SamplingEngine
from rlvr_exp.rollouts.run_episodes import EpisodeRunner
from rlvr_exp.tasks.base import Candidate, Domain, Task
from rlvr_exp.tasks.formats.fields import Fields
from rlvr_exp.tasks.problems.domain import Problems
from rlvr_exp.verifiers.base import Verifier
from rlvr_exp.verifiers.execution import KeepsOutputs


class ProblemsEngine(Engine):
    """
    Args:
        policies: by role, as are their limits.
        verifier: runs programs and tests; None: nothing is run, and the answer is a chain alone, with its critiques.
        environment: `Solving`, or `Reasoning` of a solver alone.
    """

    def __init__(
        self,
        policies: Mapping[str, Policy],
        options: Infer,
        limits: Mapping[str, Model],
        verifier: Verifier | None,
        environment: InStages,
        seed: int = 0,
        engine: SamplingEngine | None = None,
    ):
        self._solver = environment.solver
        domain = environment.domain(self._solver)
        super().__init__(policies[self._solver], options, limits[self._solver], verifier, domain, seed, engine)
        self._policies, self._limits_of, self._environment, self._sampler = policies, limits, environment, engine
        if verifier is not None and environment.keeps_outputs:
            self._verifier = KeepsOutputs(verifier, "environment", remember=False)

    def solve(self, task: InferenceTask | Task | Fields) -> ProblemSolution:
        """Solve one problem; raises as `solve_batch`."""
        return self.solve_batch([task])[0]

    def solve_batch(self, problems: Iterable[InferenceTask | Task | Fields]) -> list[ProblemSolution]:
        """Solve any number of problems, in order: rows as files have them, or tasks of the domain.

        Raises:
            InputError: a row is no problem; names the key.
            GuardStop: a guarded verifier has failed too often.
        """
        return [cast(ProblemSolution, one) for one in self.solve_all(problems)]

    def reasoning_chain(self, problem: InferenceTask | Task | Fields) -> ProblemSolution:
        """The outputs of all stages with their critiques; nothing is run, so that `text` and `entry_point` make a row.

        Raises:
            InputError: a row is no problem; names the key.
        """
        options = replace(self.options, verify=False, samples=1)
        given = (self._policies, options, self._limits_of, None, self._environment, self.seed, self._sampler)
        return ProblemsEngine(*given).solve(problem)

    def _with_domain(self, task: InferenceTask | Task | Fields) -> InferenceTask:
        if isinstance(task, Mapping):
            domain = self._environment.domain(self._solver)
            made = task_of(task, cast(Problems, domain), runs=self._judges)
            return InferenceTask(made.id, made, domain)
        return super()._with_domain(task)

    def _solved(self, items: Sequence[InferenceTask]) -> list[Solution]:
        began = time.perf_counter()
        found = super()._solved(items)
        seconds = time.perf_counter() - began
        return [replace(cast(ProblemSolution, one), seconds=seconds) for one in found]

    def _runner(self, domain: Domain) -> EpisodeRunner:
        players = {
            role: self._player(one, self._environment.domain(role), self._limits_of[role])
            for role, one in self._policies.items()
        }
        return EpisodeRunner(self._environment, players, self._verifier, self._generate)

    def _logprob(self, attempt: Attempt) -> float | None:
        with acting(self._policies, self._solver):
            return super()._logprob(attempt)

    def _end(self, episode: Episode) -> int:
        """The last output of the chosen chain."""
        if isinstance(self._environment, Solving):
            return self._environment.chosen(episode)
        return max(self._environment.in_order(episode), key=lambda index: rank(episode.turns[index].completion))

    def _attempts(self, episode: Episode) -> list[Attempt]:
        """The programs of the chosen chain, or the output that ended it."""
        shown, end = self._environment, self._end(episode)
        programs = [*reversed([index for index in before(episode, end) if shown.is_code(episode, index)]), end]
        found = []
        for number, index in enumerate(programs, 1):
            turn = episode.turns[index]
            one = turn.completion
            if not shown.is_code(episode, index):
                one = replace(one, candidate=Candidate(None, f"the chain ended at {shown.stage_of(episode, index)}"))
            if not too_long(one):
                found.append(Attempt(number, turn.prompt_ids, one))
        return found

    def _chosen(self, attempts: list[Attempt]) -> Attempt:
        return attempts[-1]

    def _solution(self, item: InferenceTask, episode: Episode) -> ProblemSolution:
        found = vars(super()._solution(item, episode))
        return ProblemSolution(**found, **parts_of(self._environment, episode, self._end(episode), self._judges))
