"""The engine of a stage, ready to sample, and the policies that it samples from."""

from collections.abc import Mapping
from typing import Any

from rlvr_exp.config.engine import is_server
from rlvr_exp.config.load import build
from rlvr_exp.models.parameters import weights_hash
from rlvr_exp.models.policy import Policy
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext
from rlvr_exp.rollouts.engines.base import SamplingEngine
from rlvr_exp.rollouts.engines.local import LocalEngine


def start_engine(config, context: RunContext) -> SamplingEngine:
    """The configured engine; what it found about itself is noted once, and recorded in the manifest.

    Raises:
        InputError: it cannot sample.
    """
    if config.engine is None:  # A run from before there were engines.
        return LocalEngine()
    if is_server(config.engine):
        context.progress(kind="wait", name="ask the server what it does")
    engine = build(
        config.engine,
        system=config.model.system,
        wants_logprobs=_wants_logprobs(config),
        interrupted=lambda: context.interrupted,
        config=config,
    )
    section = engine.begin(lambda text: context.progress(kind="note", text=text))
    if section:
        manifest.update(context.directory, engine=dict(section))
    return engine


def _wants_logprobs(config) -> bool:
    """Only where those of the draws are those at temperature 1 without filters, which an answer's row holds."""
    infer = config.infer
    return infer is not None and (infer.decoding == "greedy" or (infer.temperature == 1 and infer.top_p == 1))


def sampled_weights(policies: Mapping[str, Policy], engine: SamplingEngine) -> dict[str, Any]:
    """What tells apart the weights that sample, by role: their content, or what an endpoint calls them."""
    if is_server(engine):
        served = {"served": engine.features.model, "chat": engine.features.chat}
        return dict.fromkeys(policies, served)
    return {role: weights_hash(policy.model) for role, policy in policies.items()}
