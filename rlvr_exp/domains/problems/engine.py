"""Works coding problems out in stages of reasoning: a solver alone, or chosen and criticised by a tester.

With a tester `samples` chains are one episode; the answer is the program that passes the largest share of the valid tests, among
equals the first that was sampled. A test is valid where the reference passes it. Hidden tests decide success and no choice. A solver
alone has nothing but those: the first program that passes is the answer, else the best score, as of every policy alone.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from rlvr_exp.config.compose import compose
from rlvr_exp.config.infer import Infer
from rlvr_exp.config.load import build
from rlvr_exp.config.load import load as load_config
from rlvr_exp.config.model import Model, at_checkpoint
from rlvr_exp.config.needs import weights_missing
from rlvr_exp.config.roles import of_role
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.problems.options import ADVERSARIAL
from rlvr_exp.domains.problems.reasoning import InStages, before
from rlvr_exp.domains.problems.rows import problem_of
from rlvr_exp.domains.problems.solution import Choices, ProblemSolution, readable_problem
from rlvr_exp.domains.problems.solving import Solving, parts_of
from rlvr_exp.domains.problems.tasks import Problems
from rlvr_exp.domains.problems.tested import SOLVER, TESTER
from rlvr_exp.episodes.environments.retry import rank, too_long
from rlvr_exp.episodes.episode import Episode
from rlvr_exp.inference.engine import Engine
from rlvr_exp.inference.solution import Attempt, Solution
from rlvr_exp.launch.inference_inputs import InferenceTask
from rlvr_exp.models.policy import Policy, load_policy
from rlvr_exp.models.role_policies import acting, load_roles
from rlvr_exp.rollouts.engines.base import SamplingEngine
from rlvr_exp.rollouts.run_episodes import EpisodeRunner
from rlvr_exp.tasks.base import Candidate, Domain, Task
from rlvr_exp.tasks.formats.fields import Fields
from rlvr_exp.tasks.rows import Row
from rlvr_exp.verifiers.base import KeepsOutputs, Verifier


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

    def summary(self) -> Choices:
        return Choices(by_tests=isinstance(self._environment, Solving))

    def in_words(self, row: Mapping[str, Any]) -> str:
        return readable_problem(row)

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


NEVER_RUN: Fields = {"solution": "", "tests": [{"args": [], "expected": None}]}
"""Stands in for the keys that only running a program needs."""


def task_of(values: Fields, domain: Problems, runs: bool = True) -> Task:
    """The task of a row.

    Args:
        runs: something is run; else `text` and `entry_point` are all that a row needs.

    Raises:
        InputError: a key is missing, or holds what is not allowed.
    """
    given: dict[str, Any] = {**({} if runs else NEVER_RUN), **values}
    return domain.task(problem_of(Row(given, "problem"), str(given.get("split", ""))))


SOLVING = f"{Solving.__module__}.{Solving.__qualname__}"


def from_checkpoint(
    path: str | Path = "",
    options: Infer | None = None,
    *,
    verifier: Verifier | None = None,
    domain: Problems | None = None,
    environment: Any = None,
    seed: int = 0,
) -> ProblemsEngine:
    """An engine that works problems out in stages.

    Args:
        path: `step_N/` of a run of two roles, with `solver/` and `tester/`; or a folder of a solver alone. Empty: the embedded solver, with
            the embedded tester where the environment has one.
        options: how a problem is searched; by default greedily, one chain.
        verifier: `PythonTests`, which runs programs and tests, and is closed by the caller; None: nothing is run.
        domain: words the problems; None: as in the run that wrote the checkpoint, else as the embedded ones.
        environment: options `Adversarial(...)` or `Reasoning()` (rlvr_exp.domains.problems.options); None: as in the run, else by the folder.
        seed: the seed of the draws.

    Raises:
        InputError: no such checkpoint, a damaged one, or options that cannot work; names every problem.
    """
    folder = Path(path) if path else None
    folders = _by_role(folder)
    config = _written(folder, two=len(folders) > 1 or getattr(environment, "_target_", "") == ADVERSARIAL)
    options, node = replace(options or Infer(), verify=verifier is not None), environment or config.environment
    shown = environment_of(node, domain or config.data)
    models = {role: of_role(config, role).model for role in shown.roles}
    if folders:
        models = {role: at_checkpoint(model, str(folders.get(role, folders[SOLVER]))) for role, model in models.items()}
    needed = [need.problem for model in models.values() for need in weights_missing(model)]
    if problems := [*options.problems(), *node.infer_problems(options), *needed]:
        raise InputError(*problems)
    if len(models) > 1:
        policies = load_roles(models, dict.fromkeys(models, ""), seed)
    else:
        policies = {role: load_policy(model, seed) for role, model in models.items()}
    return ProblemsEngine(policies, options, models, verifier, shown, seed)


def engine_of(
    config: Config, policies: Mapping[str, Policy], verifier: Verifier | None, domain: Domain, sampler: SamplingEngine
) -> ProblemsEngine:
    """The engine of +stage=infer."""
    assert config.infer is not None, "of +stage=infer"
    limits = {role: of_role(config, role).model for role in policies}
    shown = environment_of(config.environment, domain)
    return ProblemsEngine(policies, config.infer, limits, verifier, shown, config.seed, sampler)


def environment_of(node: Any, data: Any) -> InStages:
    """The environment of a node in which problems are solved and nothing is learned.

    Args:
        data: their domain, or its node.

    Raises:
        InputError: the tasks have no stages, or no tests can be written for them.
    """
    used = replace(node, _target_=SOLVING) if node._target_ == ADVERSARIAL else node
    domain = data if isinstance(data, Domain) else build(data)
    return build(used, domain=domain)


def _by_role(folder: Path | None) -> dict[str, Path]:
    """A folder without roles is a solver's."""
    if folder is None:
        return {}
    both = {role: folder / role for role in (SOLVER, TESTER)}
    return both if all(place.is_dir() for place in both.values()) else {SOLVER: folder}


def _written(folder: Path | None, two: bool) -> Config:
    """The options of the run that wrote a checkpoint, as far as there is one and they are of its kind."""
    own = ["environment=adversarial", "roles.tester.model.embedded=tiny_tester"] if two else ["environment=reasoning"]
    fresh = compose(["+stage=infer", "data=problems", *own]).config
    above = list(folder.resolve().parents)[1:3] if folder else []
    run = next((place / "config.yaml" for place in above if (place / "config.yaml").is_file()), None)
    if run is None or folder is None:
        return fresh
    made = load_config(run)
    alike = getattr(made.environment, "_target_", "") == fresh.environment._target_
    found = replace(fresh, data=made.data, model=of_role(made, folder.name).model)
    return replace(found, model=made.model, roles=made.roles, environment=made.environment) if two and alike else found
