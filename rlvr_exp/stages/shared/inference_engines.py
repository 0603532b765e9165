"""The engine of +stage=infer that fits the environment."""

from collections.abc import Mapping
from typing import Any

from rlvr_exp.config.environment import ADVERSARIAL, EDIT_STEPS, REASONING
from rlvr_exp.config.load import build
from rlvr_exp.config.roles import of_role
from rlvr_exp.config.schema import Config
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.episodes.episode import POLICY
from rlvr_exp.inference.choices import Choices
from rlvr_exp.inference.engine import Engine
from rlvr_exp.inference.problem_text import readable_problem
from rlvr_exp.inference.problems_engine import ProblemsEngine
from rlvr_exp.inference.problems_loading import environment_of
from rlvr_exp.inference.steps_engine import StepsEngine
from rlvr_exp.inference.summary import Summary, readable
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.engines.base import SamplingEngine
from rlvr_exp.stages.shared.play import Play
from rlvr_exp.tasks.base import Domain
from rlvr_exp.verifiers.base import Verifier


def engine_of(
    config: Config,
    policies: Mapping[str, Policy],
    verifier: Verifier | None,
    domain: Domain,
    play: Play | None,
    sampler: SamplingEngine,
) -> Engine:
    """
    Args:
        play: of a team.

    Raises:
        InputError: the environment does not fit the data, or needs another verifier.
    """
    options, seed = config.infer, config.seed
    assert options is not None, "of +stage=infer"
    limits = {role: of_role(config, role).model for role in policies}
    if play is not None:
        return play.engine(config, policies, limits, verifier, sampler)
    if in_stages(config):
        shown = environment_of(config.environment, domain)
        return ProblemsEngine(policies, options, limits, verifier, shown, seed, sampler)
    if config.environment._target_ == EDIT_STEPS:
        assert verifier is not None, "without one steps are refused"
        shown = build(config.environment, domain=domain)
        return StepsEngine(policies[POLICY], options, config.model, verifier, domain, shown, seed, sampler)
    return Engine(policies[POLICY], options, config.model, verifier, domain, seed, sampler)


def in_stages(config: Config) -> bool:
    """Whether problems are worked out in stages of reasoning."""
    return config.environment._target_ in (REASONING, ADVERSARIAL)


def summary_of(config: Config) -> Summary:
    by_tests = config.environment._target_ == ADVERSARIAL
    return Choices(by_tests) if in_stages(config) else Summary()


def in_words(row: Mapping[str, Any]) -> str:
    """An answer's row for a person."""
    return readable_problem(row) if "stages" in row else readable(row)


def turns_of(config: Config) -> dict[str, Any]:
    """What of an environment with several turns determines the answers."""
    if config.environment._target_ == EDIT_STEPS:
        return {"steps": config.environment.steps}
    if not in_stages(config):
        return {}
    names = ("tests", "attempts", "critiques")
    given = {name: getattr(config.environment, name) for name in names if hasattr(config.environment, name)}
    return {"environment": given, "reasoning": content_hash([*config.data.reasoning.items()])}
