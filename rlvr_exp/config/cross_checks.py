"""Checks across nodes: combinations that cannot work."""

from collections.abc import Iterator
from dataclasses import fields, replace
from functools import partial

from rlvr_exp.config.algorithm import queues, without_queues
from rlvr_exp.config.engine import is_server
from rlvr_exp.config.engine_checks import engine_problems
from rlvr_exp.config.environment import SINGLE_TURN
from rlvr_exp.config.infer_checks import of_answers
from rlvr_exp.config.model import has_adapter
from rlvr_exp.config.ranks import of_ranks
from rlvr_exp.config.roles import of_role, role_names, role_problems
from rlvr_exp.config.scheduler import schedule_problems
from rlvr_exp.config.schema import Config
from rlvr_exp.config.scratch_checks import scratch_problems
from rlvr_exp.config.stages import STAGES, reads, resumable
from rlvr_exp.core.errors import InputProblem


def cross_check(config: Config) -> Iterator[InputProblem]:
    """Combinations of nodes that cannot work, for the stage of the configuration."""
    if config.stage not in STAGES:
        return
    yield from _of_run(config)
    yield from of_ranks(config)
    yield from engine_problems(config)
    yield from role_problems(config, lambda name: reads(config, name))
    yield from scratch_problems(config)
    if reads(config, "evaluation") and config.evaluation.bits:
        yield from _of_bits(config)
    if config.infer is not None:
        yield from of_answers(config.infer, config.environment)
    if reads(config, "model") and config.model.random_weights and config.stage != "benchmark":
        what, remedy = "random weights are for benchmarks", "drop it, or +stage=benchmark"
        yield InputProblem("model.random_weights", what, f"+stage={config.stage}", "false", "", remedy)
    for spec in fields(config):
        node = getattr(config, spec.name)
        if reads(config, spec.name) and hasattr(node, "conflicts"):
            yield from node.conflicts(config, partial(reads, config))
    if not reads(config, "optimizer"):
        return
    yield from schedule_problems(config.scheduler, getattr(config.algorithm, "max_steps", 0))
    yield from _of_learner(config)
    for role in config.roles:
        found = (replace(one, where=f"roles.{role}.{one.where}") for one in _of_learner(of_role(config, role)))
        yield from (one for one in found if getattr(config.roles[role], one.where.split(".")[2]) is not None)


def _of_run(config: Config) -> Iterator[InputProblem]:
    if config.run.resume and not resumable(config.stage):
        what, allowed = "this stage cannot be resumed", ", ".join(filter(resumable, STAGES))
        yield InputProblem("run.resume", what, f"+stage={config.stage}", allowed)
    if config.run.trial and (STAGES[config.stage].algorithm is None or config.run.resume or config.parallel.nodes > 1):
        what, got = "a trial is of a run that trains, from its first step, on one machine", f"+stage={config.stage}"
        got += f", run.resume={config.run.resume}" * bool(config.run.resume)
        got += f", parallel.nodes={config.parallel.nodes}" * (config.parallel.nodes > 1)
        allowed = ", ".join(name for name, stage in STAGES.items() if stage.algorithm)
        yield InputProblem("run.trial", what, got, allowed, "", "drop it")


def _of_learner(config: Config) -> Iterator[InputProblem]:
    """Combinations that a policy cannot learn with."""
    model, algorithm = config.model, config.algorithm
    turns = getattr(config.environment, "_target_", SINGLE_TURN)
    learns_in_turns = reads(config, "environment") and turns != SINGLE_TURN and config.stage != "srl"
    if learns_in_turns and queues(algorithm):
        what, remedy = "groups of episodes with several turns do not wait for later steps", without_queues(algorithm)
        got, allowed = algorithm._target_, "zero_variance=keep or mask, rollout_steps=1"
        yield InputProblem("algorithm", what, got, allowed, "", f"{remedy}, or environment=single_turn")
    for node in vars(config).values():
        if algorithm is not None and hasattr(node, "of_learner"):
            yield from node.of_learner(algorithm)
    if model.quantization != "none" and not has_adapter(model):
        what = "quantized weights take no gradient"
        remedy = "model.adapter.kind=lora, or model.quantization=none"
        yield InputProblem("model.quantization", what, model.quantization, "none without an adapter", "", remedy)
    sync = getattr(algorithm, "reference_sync_steps", 0)
    if sync and has_adapter(model):
        what = "the reference of an adapter is its base, which stays as it is"
        yield InputProblem("algorithm.reference_sync_steps", what, str(sync), "0 with an adapter", "", "drop it")


def _of_bits(config: Config) -> Iterator[InputProblem]:
    """Whose golds cannot be scored."""
    if is_server(config.engine) or len(role_names(config)) > 1:
        what = "golds are scored by the one policy of a run, whose weights are here"
        got = "engine=server" if is_server(config.engine) else "several roles"
        yield InputProblem("evaluation.bits", what, got, "one policy, sampled here", "", "drop it")
