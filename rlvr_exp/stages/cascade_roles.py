"""The roles of a cascade that learn, each with its own algorithm, optimizer and steps, the same as a policy that learns
alone."""

from dataclasses import replace
from pathlib import Path

from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.config import build
from rlvr_exp.models.role_policies import acting
from rlvr_exp.rollouts.cascade import ANNOTATOR, ROLES
from rlvr_exp.stages.cascade_components import CascadeComponents
from rlvr_exp.training.rl_learner import RLLearner


def of_role(config, role: str):
    """The configuration of a role: its own steps, groups and group size."""
    options, algorithm = config.cascade, config.algorithm
    steps = max(1, options.steps_of(role, algorithm.max_steps))
    sizes = {"max_steps": steps}
    if role == ANNOTATOR:
        bodies = 1 if options.bodies == "gold" else algorithm.group_size
        sizes |= {"prompts_per_step": algorithm.prompts_per_step * bodies, "group_size": options.annotations}
    return replace(config, algorithm=replace(algorithm, **sizes))


def algorithm_of(config, role: str) -> Algorithm:
    longest, folder = config.model.max_completion_tokens, config.model.path
    return build(of_role(config, role).algorithm, max_completion_tokens=longest, checkpoint=folder)


def learners_of(components: CascadeComponents, config, scratch: Path) -> dict[str, RLLearner]:
    """A learner for each role that learns in any step.

    Args:
        scratch: a temporary folder of this process.
    """
    names = [role for role in ROLES if config.cascade.steps_of(role, config.algorithm.max_steps)]
    return {role: _learner(role, components, config, scratch / role) for role in names}


def _learner(role: str, components: CascadeComponents, config, scratch: Path) -> RLLearner:
    policy = components.policies[role]
    prompts = [policy.encode_prompt(text) for text in _prompts(role, components)]
    with acting(components.policies, role):
        return RLLearner(role, policy, algorithm_of(config, role), of_role(config, role), prompts, scratch)


def _prompts(role: str, components: CascadeComponents) -> list[str]:
    """Two of a role's prompts."""
    domain, tasks = components.domain, components.writer.held_out[:2]
    if role == ANNOTATOR:
        return [domain.annotator.prompt(domain.annotation(task, domain.gold_body(task), None)) for task in tasks]
    return [domain.writer.prompt(task) for task in tasks]
