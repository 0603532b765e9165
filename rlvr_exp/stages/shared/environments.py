"""The environment of a run, for training and for evaluation, and who plays its roles."""

from functools import partial

from rlvr_exp.config.load import build
from rlvr_exp.config.roles import of_role
from rlvr_exp.config.schema import reads
from rlvr_exp.episodes.environment import Environment
from rlvr_exp.episodes.environments.single_turn import SingleTurn
from rlvr_exp.rollouts.run_episodes import EpisodeRunner, Player, generate_and_verify
from rlvr_exp.rollouts.sampling_params import SamplingParams
from rlvr_exp.stages.shared.components import RunComponents
from rlvr_exp.verifiers.base import KeepsOutputs


def training_environment(components: RunComponents, config) -> Environment:
    if config.stage == "srl":  # Rows are a teacher's states, one action each; what the student makes has no teacher.
        return SingleTurn(components.domain)
    if components.play is not None:
        return components.play.training(config)
    scheduled = {"schedule": config.schedule} if reads(config, "schedule") else {}
    return build(config.environment, domain=components.domain, **scheduled)


def evaluation_environment(components: RunComponents, config) -> Environment:
    if components.play is not None:
        return components.play.evaluation(config)
    return build(config.environment, domain=components.domain)


def runner_of(environment: Environment, components: RunComponents, config, drawing, batch_size: int) -> EpisodeRunner:
    """
    Args:
        drawing: the `evaluation` node; None: the `algorithm` node of each role.
    """
    players = {}
    for role, policy in components.policies.items():
        own, domain = of_role(config, role), environment.domain(role)
        longest, room = own.model.max_completion_tokens, own.model.max_prompt_tokens
        sampling = SamplingParams.of(drawing or own.algorithm, policy, longest, batch_size, domain)
        players[role] = Player(policy, sampling, min(room, policy.max_tokens - longest))
    generate = partial(generate_and_verify, engine=components.engine)
    verifier = components.verifier
    if environment.keeps_outputs:
        verifier = KeepsOutputs(verifier, "environment", remember=False)
    return EpisodeRunner(environment, players, verifier, generate)


def evaluation_runner(components: RunComponents, config, evaluation=None) -> EpisodeRunner:
    """
    Args:
        evaluation: in place of the `evaluation` node.
    """
    node = evaluation or config.evaluation
    return runner_of(evaluation_environment(components, config), components, config, node, node.batch_size)
