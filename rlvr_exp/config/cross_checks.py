"""Checks across nodes: combinations that cannot work."""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from rlvr_exp.config.algorithm import RLOO
from rlvr_exp.config.benchmark import DafnyUniversal, GradientVariance, Landscape
from rlvr_exp.config.cascade import Cascade
from rlvr_exp.config.engine import is_server
from rlvr_exp.config.engine_checks import engine_problems
from rlvr_exp.config.environment import ADVERSARIAL, EDIT_STEPS, REASONING, SINGLE_TURN
from rlvr_exp.config.infer_checks import of_answers
from rlvr_exp.config.model import has_adapter
from rlvr_exp.config.parallel import SHARDING
from rlvr_exp.config.prepare import DafnyCorpus, DafnyUsable
from rlvr_exp.config.ranks import of_ranks
from rlvr_exp.config.roles import of_role, role_names, role_problems
from rlvr_exp.config.schedule import Schedule
from rlvr_exp.config.scheduler import schedule_problems
from rlvr_exp.config.schema import Config
from rlvr_exp.config.scratch_checks import scratch_problems
from rlvr_exp.config.self_play import SelfPlay
from rlvr_exp.config.stages import STAGES, reads, resumable
from rlvr_exp.config.verifier import DafnyVerifierOptions
from rlvr_exp.core.errors import InputProblem


def cross_check(config: Config) -> Iterator[InputProblem]:
    """Combinations of nodes that cannot work, for the stage of the configuration."""
    if config.stage not in STAGES:
        return
    yield from _of_run(config)
    yield from of_ranks(config)
    yield from engine_problems(config)
    yield from role_problems(config, lambda name: reads(config, name))
    proves = isinstance(config.prepare, DafnyCorpus | DafnyUsable) or isinstance(config.benchmark, DafnyUniversal)
    if proves and not isinstance(config.verifier, DafnyVerifierOptions):
        target = getattr(config.verifier, "_target_", "")
        yield InputProblem("verifier", "proves no Dafny program", target, "dafny", "", "verifier=dafny, or drop it")
    checks_golds = reads(config, "data") and getattr(config.data, "usable", "") == "check"
    if checks_golds and not isinstance(config.verifier, DafnyVerifierOptions):
        remedy = "verifier=dafny, or data.usable=trust"
        yield InputProblem("data.usable", "proves golds with Dafny", "check", "check with verifier=dafny", "", remedy)
    if any(node is not None and node.cascade for node in (config.evaluate, config.infer)):
        yield from _data_of_cascade(config)
    if reads(config, "evaluation") and reads(config, "environment"):
        yield from _of_turns(config)
    if reads(config, "environment") and getattr(config.environment, "_target_", "") in (ADVERSARIAL, REASONING):
        yield from _data_of_reasoning(config)
    yield from scratch_problems(config)
    if reads(config, "evaluation") and config.evaluation.bits:
        yield from _of_bits(config)
    if config.infer is not None:
        yield from of_answers(config.infer, config.environment)
    if reads(config, "model") and config.model.random_weights and config.stage != "benchmark":
        what, remedy = "random weights are for benchmarks", "drop it, or +stage=benchmark"
        yield InputProblem("model.random_weights", what, f"+stage={config.stage}", "false", "", remedy)
    yield from _of_benchmark(config)
    if not reads(config, "optimizer"):
        return
    if getattr(config.verifier, "process", "") == "shared":
        what = "a solution in the tests' own process can pass without solving, which a policy learns"
        yield InputProblem("verifier.process", what, "shared", "bridged in stages that train", "", "drop it")
    yield from schedule_problems(config.scheduler, getattr(config.algorithm, "max_steps", 0))
    if config.cascade is not None and config.algorithm is not None:
        yield from _of_cascade(config, config.cascade)
    if config.self_play is not None:
        yield from _of_self_play(config, config.self_play)
    if reads(config, "schedule"):
        yield from _of_schedule(config, config.schedule)
    elif getattr(config.environment, "_target_", "") == ADVERSARIAL:
        what, remedy = "a solver and a tester are paid by each other", "+stage=adversarial"
        yield InputProblem("environment", what, f"adversarial, with +stage={config.stage}", "", "", remedy)
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


def _of_benchmark(config: Config) -> Iterator[InputProblem]:
    benchmark, algorithm = config.benchmark, config.algorithm
    chooses = isinstance(algorithm, RLOO) and not algorithm.kl_coef
    if isinstance(benchmark, GradientVariance) and not chooses:
        what = "only REINFORCE without a KL penalty has a baseline to choose"
        got = f"{algorithm._target_}, kl_coef={getattr(algorithm, 'kl_coef', 0)}"
        yield InputProblem("algorithm", what, got, remedy="algorithm=reinforce")
    if isinstance(benchmark, Landscape) and 0 < config.evaluation.tasks < benchmark.batches:
        got, allowed = str(config.evaluation.tasks), f"0, or benchmark.batches={benchmark.batches} and more"
        yield InputProblem("evaluation.tasks", "fewer than batches", got, allowed, "", "fewer benchmark.batches")


def _of_learner(config: Config) -> Iterator[InputProblem]:
    """Combinations that a policy cannot learn with."""
    model, algorithm = config.model, config.algorithm
    turns = getattr(config.environment, "_target_", SINGLE_TURN)
    learns_in_turns = reads(config, "environment") and turns != SINGLE_TURN and config.stage != "srl"
    if learns_in_turns and _queues(algorithm):
        what, remedy = "groups of episodes with several turns do not wait for later steps", _without_queues(algorithm)
        got, allowed = algorithm._target_, "zero_variance=keep or mask, rollout_steps=1"
        yield InputProblem("algorithm", what, got, allowed, "", f"{remedy}, or environment=single_turn")
    if config.cascade is not None and algorithm is not None:
        yield from _waiting(algorithm)
    if model.quantization != "none" and not has_adapter(model):
        what = "quantized weights take no gradient"
        remedy = "model.adapter.kind=lora, or model.quantization=none"
        yield InputProblem("model.quantization", what, model.quantization, "none without an adapter", "", remedy)
    sync = getattr(algorithm, "reference_sync_steps", 0)
    if sync and config.cascade is None and has_adapter(model):
        what = "the reference of an adapter is its base, which stays as it is"
        yield InputProblem("algorithm.reference_sync_steps", what, str(sync), "0 with an adapter", "", "drop it")


def _of_turns(config: Config) -> Iterator[InputProblem]:
    """What an evaluation of several turns cannot measure."""
    turns = getattr(config.environment, "_target_", SINGLE_TURN)
    if config.evaluation.vote and turns != SINGLE_TURN:
        what = "a second turn has seen what was expected, which a vote must not"
        got, remedy = str(config.evaluation.vote), "environment=single_turn, or evaluation.vote=0"
        yield InputProblem("evaluation.vote", what, got, "0 with several turns", "", remedy)
    if config.evaluation.excess_code and turns == EDIT_STEPS:
        what, remedy = "an episode's last action alone does not make the edited program", "environment=single_turn"
        yield InputProblem("evaluation.excess_code", what, "true", "false with environment=edits", "", remedy)


def _of_bits(config: Config) -> Iterator[InputProblem]:
    """Whose golds cannot be scored."""
    if is_server(config.engine) or len(role_names(config)) > 1:
        what = "golds are scored by the one policy of a run, whose weights are here"
        got = "engine=server" if is_server(config.engine) else "several roles"
        yield InputProblem("evaluation.bits", what, got, "one policy, sampled here", "", "drop it")


def _data_of_cascade(config: Config) -> Iterator[InputProblem]:
    if not getattr(config.data, "_target_", "").endswith("dafny.domain.DafnyDomain"):
        yield InputProblem(
            "data", "a cascade writes and annotates Dafny", config.data._target_, "data=dafny", "", "data=dafny"
        )


def _data_of_reasoning(config: Config) -> Iterator[InputProblem]:
    if not hasattr(config.data, "reasoning"):
        what, target = "has no stages of reasoning", getattr(config.data, "_target_", "")
        remedy = "data=problems, which reads the rows of data=code that have a solution; or environment=single_turn"
        yield InputProblem("data", what, target, "data=problems", "", remedy)


def _of_cascade(config: Config, cascade: Cascade) -> Iterator[InputProblem]:
    """Combinations that two roles learning from the same cascades rule out."""
    algorithm = config.algorithm
    yield from _data_of_cascade(config)
    if getattr(config.data, "role", "writer") != "writer":
        what = "the tasks of a cascade are the writer's; the annotator annotates what it wrote"
        yield InputProblem("data.role", what, config.data.role, "writer", "", "drop it")
    if cascade.mode == "alternating" and algorithm.max_steps <= cascade.every_steps:
        what, remedy = "the writer would have no step", f"algorithm.max_steps={2 * cascade.every_steps} or more"
        got = f"{cascade.every_steps} of {algorithm.max_steps} steps"
        yield InputProblem("cascade.every_steps", what, got, "fewer than algorithm.max_steps", "", remedy)


def _of_schedule(config: Config, schedule: Schedule) -> Iterator[InputProblem]:
    """A schedule of a solver and a tester over stages of reasoning."""
    target = getattr(config.environment, "_target_", "")
    if target != ADVERSARIAL:
        what, got = "this stage trains a solver and a tester", target.rpartition(".")[2]
        yield InputProblem("environment", what, got, "adversarial", "", "drop it, or +stage=grpo")
        return
    names = role_names(config)
    if unknown := [role for role in schedule.learn if role not in names]:
        yield InputProblem("schedule.learn", "the environment has no such role", ", ".join(unknown), ", ".join(names))
    if not config.environment.tests and schedule.learn != ["solver"]:
        what, got = "without tests a tester has nothing to learn from", ", ".join(schedule.learn) or "all"
        yield InputProblem("schedule.learn", what, got, "solver", "", "schedule.learn=[solver]")
    stages = len(getattr(config.data, "reasoning", {}))
    if schedule.start_stage > max(1, stages):
        what = "there are fewer stages of reasoning"
        yield InputProblem("schedule.start_stage", what, str(schedule.start_stage), f"at most {stages}")
    steps, least = config.algorithm.max_steps, schedule.least_steps(stages)
    if steps < least:
        what, remedy = "the last stages of reasoning would have no step", f"algorithm.max_steps={least} or more"
        got = f"{steps} steps, {schedule.steps_of_stage()} for each of {stages} stages"
        yield InputProblem("schedule", what, got, "", "", f"{remedy}, or fewer of schedule.alone, alternating")


def _of_self_play(config: Config, options: SelfPlay) -> Iterator[InputProblem]:
    steps = getattr(config.algorithm, "max_steps", options.rounds)
    if steps < options.rounds:
        what, remedy = "a round would have no update", f"algorithm.max_steps={options.rounds} or more"
        got = f"{options.rounds} rounds, {steps} steps"
        yield InputProblem("self_play.rounds", what, got, "at most algorithm.max_steps", "", remedy)
    if options.from_base and config.parallel.strategy in SHARDING:
        what = "DeepSpeed holds weights of its own, which no round can go back from"
        yield InputProblem("self_play.weights", what, "base", "last under ZeRO", "", "self_play.weights=last")


def _waiting(algorithm: Any) -> Iterator[InputProblem]:
    """What waits for later steps, which roles that learn from the same cascades cannot."""
    if _queues(algorithm):
        what, remedy = "groups of a cascade do not wait: both roles learn from one step's", _without_queues(algorithm)
        yield InputProblem(
            "algorithm", what, algorithm._target_, "zero_variance=keep or mask, rollout_steps=1", "", remedy
        )
    if getattr(algorithm, "reference_sync_steps", 0):
        what = "the references of a cascade stay as they are"
        yield InputProblem(
            "algorithm.reference_sync_steps", what, str(algorithm.reference_sync_steps), "0", "", "drop it"
        )


def _without_queues(algorithm: Any) -> str:
    """The words that change what queues."""
    resamples = getattr(algorithm, "zero_variance", "") == "resample"
    words = ["algorithm.zero_variance=keep"] * resamples
    usual = {spec.name: spec.default for spec in fields(algorithm)}.get("resample_budget")
    if resamples and algorithm.resample_budget != usual:
        words.append(f"algorithm.resample_budget={usual}")
    words += ["algorithm.rollout_steps=1"] * (getattr(algorithm, "rollout_steps", 1) > 1)
    return " ".join(words)


def _queues(algorithm: Any) -> bool:
    """Whether groups may wait for later steps, or others be sampled in their place."""
    return getattr(algorithm, "zero_variance", "") == "resample" or getattr(algorithm, "rollout_steps", 1) > 1
