"""The engine of +stage=infer that fits the environment."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from rlvr_exp.config.data import SINGLE_TURN
from rlvr_exp.config.load import build
from rlvr_exp.config.roles import of_role
from rlvr_exp.config.schema import Config
from rlvr_exp.core.domains import domains, load
from rlvr_exp.episodes.environment import Environment
from rlvr_exp.episodes.episode import POLICY
from rlvr_exp.inference.engine import Engine, EpisodeEngine
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.engines.base import SamplingEngine
from rlvr_exp.stages.shared.components import Play
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
    if maker := _maker(config):
        return load(maker)(config, policies, verifier, domain, sampler)
    if config.environment._target_ != SINGLE_TURN:
        build(config.environment, domain=domain)  # Refuses data that it cannot play with.
        own = partial(_environment, config.environment)
        return EpisodeEngine(own, policies[POLICY], options, config.model, verifier, domain, seed, sampler)
    return Engine(policies[POLICY], options, config.model, verifier, domain, seed, sampler)


def _environment(node: Any, domain: Domain) -> Environment:
    return build(node, domain=domain)


def _maker(config: Config) -> str:
    """Path of the maker of the engine that a domain has for the environment; else empty."""
    target = config.environment._target_
    return next((one.engines[target] for one in domains().values() if target in one.engines), "")


def turns_of(config: Config) -> dict[str, Any]:
    """What of an environment with several turns determines the answers."""
    own = getattr(config.environment, "of_answers", None)
    if own:
        return own(config.data)
    if config.environment._target_ != SINGLE_TURN:
        return {name: value for name, value in vars(config.environment).items() if name != "_target_"}
    return {}
