"""The options of a role: those of the run, with the role's own steps and sizes where there are several roles."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.config.load import build
from rlvr_exp.config.roles import of_role, team_node
from rlvr_exp.config.schema import reads


def learning_roles(config, roles: Sequence[str]) -> Callable[[int], Sequence[str]]:
    """Returns a function from a step, counted from 0, to the roles that learn in it: all of an environment's `roles`,
    where no schedule says otherwise."""
    if (team := team_node(config)) is not None:
        return team.learning
    if not reads(config, "schedule"):
        return lambda step: roles
    turns = config.schedule.learn or [*reversed(roles)]  # Who acts last learns first.
    return lambda step: config.schedule.learning(step, turns)


def learner_options(config, role: str, roles: Sequence[str]):
    """The configuration of one of an environment's roles: its own nodes, steps, groups and group size."""
    config = of_role(config, role)
    team, algorithm = team_node(config), config.algorithm
    if team is None and not reads(config, "schedule"):
        return config
    learning = learning_roles(config, roles)
    steps = max(1, sum(role in learning(step) for step in range(algorithm.max_steps)))
    sizes = {"max_steps": steps}
    if team is not None:
        sizes |= team.sizes(role, algorithm)
    return replace(config, algorithm=replace(algorithm, **sizes))


def algorithm_of(config, role: str, roles: Sequence[str]) -> Algorithm:
    own = learner_options(config, role, roles)
    return build(own.algorithm, max_completion_tokens=own.model.max_completion_tokens, checkpoint=own.model.path)
