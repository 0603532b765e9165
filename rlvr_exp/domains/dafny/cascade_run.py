"""A cascade in the stages: its environments, the engine of +stage=infer, and the sections of an evaluation: rates of each role and by
length of the gold's body, who failed and how, and the similarity of the writer's bodies to the golds."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rlvr_exp.config.load import build
from rlvr_exp.config.model import Model
from rlvr_exp.config.schema import Config
from rlvr_exp.config.stage_options import Infer
from rlvr_exp.domains.dafny.cascade import ANNOTATOR, ROLES, Cascade, Widths
from rlvr_exp.domains.dafny.tasks import TwoStage
from rlvr_exp.episodes.episode import Episode
from rlvr_exp.evaluation.metrics import METRICS, Rate, of_role, rates_from
from rlvr_exp.evaluation.text_similarity import metrics_by_role
from rlvr_exp.inference.engine import Engine
from rlvr_exp.inference.solution import Attempt
from rlvr_exp.models.policy import Policy
from rlvr_exp.models.role_policies import acting
from rlvr_exp.records.rollout_files import EvalSample
from rlvr_exp.rollouts.engines.base import SamplingEngine
from rlvr_exp.rollouts.run_episodes import EpisodeRunner
from rlvr_exp.stages.shared.components import Play
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.verifiers.base import Verifier

ROLE_METRICS = tuple(f"{role}/{metric}" for role in ROLES for metric in ("pass_at_1", "pass_at_1_greedy"))
CASCADE_METRICS = (*METRICS, *ROLE_METRICS)
LENGTHS = (3, 6, 12)
"""Upper limits of the groups by length: lines of a gold's body."""


def cascade_sections(writer: Domain, results: Sequence[EvalSample]) -> dict[str, Any]:
    """Sections of an evaluation's file, as plain data."""
    lengths = {
        name: {metric: rate.to_dict() for metric, rate in rates.items()} for name, rates in by_length(results).items()
    }
    written = [
        replace(one, completion=replace(one.completion, text=_about(one)["written"]))
        for one in of_role(results, "writer")
    ]
    return {"lengths": lengths, "blame": failure_counts(results), "roles": metrics_by_role(writer, written)}


def by_length(results: Sequence[EvalSample]) -> Mapping[str, Mapping[str, Rate]]:
    """The cascade's rates by the lines of the gold's body, short bodies first."""
    found: dict[int, list[EvalSample]] = defaultdict(list)
    for row in results:
        found[next((most for most in LENGTHS if _about(row)["lines"] <= most), 0)].append(row)
    names = {most: f"up to {most} lines" for most in LENGTHS} | {0: f"more than {LENGTHS[-1]} lines"}
    return {names[most]: rates_from(found[most]) for most in (*LENGTHS, 0) if most in found}


def failure_counts(results: Sequence[EvalSample]) -> dict[str, int]:
    """Cascades by who failed and how, of all modes."""
    counts: dict[str, int] = defaultdict(int)
    for row in results:
        about = _about(row)
        who = about.get("failed_by")
        if who is not None:
            counts[f"{who}/{about['failure']}"] += 1
    return dict(sorted(counts.items()))


def _about(row: EvalSample) -> Mapping[str, Any]:
    assert row.about is not None, "the cascade's environment describes each sample"
    return row.about


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


class CascadePlay(Play):
    metrics = CASCADE_METRICS

    def __init__(self, config: Config, build_domain: Callable[[Config], Domain]):
        writer, annotator = (replace(config.data, role=role) for role in ROLES)
        self.stages = TwoStage(build_domain(replace(config, data=writer)), build(annotator))
        self.domain = self.stages.writer

    def training(self, config: Any) -> Cascade:
        options = config.cascade
        counterfactual = options.credit == "counterfactual"
        by_gold = counterfactual and options.counterfactual == "gold"
        resamples = options.resamples if counterfactual and not by_gold else 0
        widths = Widths(options.annotations, options.attempts, resamples, graft_all=by_gold)
        return Cascade(self.stages, widths, counterfactual)

    def evaluation(self, config: Any) -> Cascade:
        return Cascade(self.stages, Widths(attempts=(config.cascade or config.evaluate).attempts))

    def prompts(self, role: str, tasks: Sequence[Task]) -> list[str]:
        two = self.stages
        if role == ANNOTATOR:
            return [two.annotator.task_prompt(two.annotation(task, two.gold_body(task), None)) for task in tasks]
        return [two.writer.task_prompt(task) for task in tasks]

    def gold(self, task: Task) -> str:
        return self.stages.example(task).annotated_body

    def sections(self, results: Sequence[EvalSample]) -> dict[str, Any]:
        return cascade_sections(self.domain, results)

    def engine(
        self,
        config: Config,
        policies: Mapping[str, Policy],
        limits: Mapping[str, Model],
        verifier: Verifier | None,
        sampler: SamplingEngine,
    ) -> CascadeEngine:
        assert config.infer is not None, "of +stage=infer"
        return CascadeEngine(policies, config.infer, limits, verifier, self.stages, config.seed, sampler)
