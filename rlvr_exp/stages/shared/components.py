"""The components of most stages, built from the configuration: the tasks, the policies with the engine that samples from them, the
verifier, and the environment with its roles.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypedDict, TypeVar, cast

import torch

from rlvr_exp.config.algorithm import Drawing
from rlvr_exp.config.data import SINGLE_TURN
from rlvr_exp.config.engine import is_server, receives_weights
from rlvr_exp.config.load import build
from rlvr_exp.config.model import Adapter, continued
from rlvr_exp.config.roles import TEACHER, longest_sequence, of_role, role_names, starts, team_of
from rlvr_exp.config.run import Evaluation
from rlvr_exp.config.schema import OWN_BATCH, Config, reads
from rlvr_exp.core.domains import domains, load
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.seeds import uniform
from rlvr_exp.episodes.environment import Environment
from rlvr_exp.episodes.environments import SingleTurn
from rlvr_exp.episodes.episode import POLICY
from rlvr_exp.evaluation.leakage import apart, check_leakage
from rlvr_exp.launch.preflight import HELD_OUT, no_split, not_for_training, reasons, vote_problems
from rlvr_exp.models.parameters import parameters, unsharded_loading, weights_hash
from rlvr_exp.models.policy import Policies, Policy, load_policy, load_roles
from rlvr_exp.models.random_weights import build_tokenizer, training_texts
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.rollout_files import EvalSample
from rlvr_exp.rollouts.distributed import broadcast_object, rank
from rlvr_exp.rollouts.engines.base import SamplingEngine
from rlvr_exp.rollouts.engines.local import LocalEngine
from rlvr_exp.rollouts.engines.server import ServerEngine, served_policy
from rlvr_exp.rollouts.engines.teacher_server import TeacherServer
from rlvr_exp.rollouts.run_episodes import EpisodeRunner, Player, generate_and_verify
from rlvr_exp.rollouts.sampling_params import LogitFilters, SamplingParams
from rlvr_exp.stages.shared.data_and_verifier import (
    all_tasks,
    build_domain,
    build_verifier,
    check_verifier_match,
    checked_description,
)
from rlvr_exp.stages.shared.reference_checks import check_golds, check_references, unfit
from rlvr_exp.stages.shared.start import check_skip
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.verifiers.base import KeepsOutputs, Verifier, executor_of
from rlvr_exp.verifiers.guarded import NoVerdictGuard

Found = TypeVar("Found")

TRAINED_SERVER = "rlvr_exp.rollouts.engines.trained_server.TrainedServer"
NAMED = 5
"""Maximum number of tasks that a note names. The manifest names all of them."""


class Devices(TypedDict):
    """The devices of the policy, as the manifest has them."""

    gpus: list[str]
    """Names."""
    threads: int
    """CPU threads of torch."""


class Play(ABC):
    """The episodes of a team. A domain implements one for each team.

    Args:
        build_domain: builds the domain of a configuration, as every stage does.
    """

    domain: Domain
    """The domain of the run's tasks."""
    metrics: tuple[str, ...]
    """Names of the rates of an evaluation."""

    @abstractmethod
    def __init__(self, config: Config, build_domain: Callable[[Config], Domain]): ...

    @abstractmethod
    def training(self, config: Config) -> Environment:
        """The environment in training."""

    @abstractmethod
    def evaluation(self, config: Config) -> Environment:
        """The environment in evaluations."""

    @abstractmethod
    def prompts(self, role: str, tasks: Sequence[Task]) -> list[str]:
        """The prompt of the role for each task."""

    @abstractmethod
    def gold(self, task: Task) -> str:
        """The reference answer of the data to a task of the run."""

    @abstractmethod
    def sections(self, results: Sequence[EvalSample]) -> dict[str, Any]:
        """Further sections of an evaluation's file, as plain data."""

    @abstractmethod
    def inference(self, config: Config) -> Environment:
        """The environment of +stage=infer."""


@dataclass(frozen=True)
class RunComponents:
    """The objects that a stage works with."""

    domain: Domain
    """The domain of the run's tasks."""
    policies: Mapping[str, Policy]
    """The policy of each role."""
    verifier: Verifier
    held_out: tuple[Task, ...]
    """The tasks that measure success. They are the same for every run with the same data and split seed."""
    engine: SamplingEngine
    """The engine that samples completions."""
    play: Play | None = None
    """The play of a team. None without a team."""
    teacher: Policy | TeacherServer | None = None
    """The policy or the server of `roles.teacher`. None without that role."""

    @property
    def policy(self) -> Policy:
        """The policy that acts first."""
        return next(iter(self.policies.values()))

    @property
    def checkpointed(self) -> Policies:
        """The policies in the form of a checkpoint: one folder for each role if there are several roles."""
        return self.policies if len(self.policies) > 1 else self.policy


@contextmanager
def build_components(config: Config, context: RunContext) -> Iterator[RunComponents]:
    """Build the components, record them in the manifest, and stop the verifier's workers at exit."""
    if config.parallel.threads:
        torch.set_num_threads(config.parallel.threads)
    context.progress(kind="wait", name="load the data")
    play = play_of(config, context)
    domain = play.domain if play else build_domain(config, context, in_first_process)
    held_out = held_out_tasks(domain, config.evaluation)
    engine = start_engine(config, context)
    context.progress(kind="wait", name="load the policy")
    policies = load_policies(config, engine, domain, context)
    teacher = load_teacher(config, policies, domain, context)
    context.progress(kind="wait", name="start the verifier")
    with NoVerdictGuard(build_verifier(config), config.verifier.max_no_verdict_rate) as verifier:
        check_verifier_match(verifier, all_tasks(domain))
        if config.evaluation.vote:
            check_vote(domain, verifier, config.evaluation.split)
        if note := domain.splits_note():
            context.progress(kind="note", text=note)
        manifest.update(
            context.directory,
            data={
                name: {"tasks": len(tasks), "fingerprint": domain.fingerprint(name)}
                for name, tasks in domain.splits().items()
            },
            device=device(),
            model=_model_section(policies, engine, config, context),
            verifier=checked_description(verifier, context),
        )
        if rank() == 0:  # Once is enough; where a reference fails, this rank ends the run.
            check_references(domain, verifier, held_out, config.verifier.validate, context)
        yield RunComponents(domain, policies, verifier, held_out, engine, play, teacher)


def start_engine(config: Config, context: RunContext) -> SamplingEngine:
    """Build and start the configured engine. Its remarks become notes, and the manifest records its features.

    Raises:
        InputError: the engine cannot sample.
    """
    if config.engine is None:  # A run from before there were engines.
        return LocalEngine()
    if is_server(config.engine):
        context.progress(kind="wait", name="ask the server what it does")
    infer = config.infer  # An answer's row has log-probabilities at temperature 1 without filters.
    exact = infer is not None and (infer.decoding == "greedy" or LogitFilters.of(infer) == LogitFilters())
    node = config.engine
    engine = build(
        replace(node, _target_=TRAINED_SERVER) if receives_weights(node) else node,
        system=config.model.system,
        wants_logprobs=exact,
        filters=_filters(config),
        interrupted=lambda: context.interrupted,
        config=config,
        directory=context.directory,
    )
    section = engine.begin(lambda text: context.progress(kind="note", text=text))
    if section:
        manifest.update(context.directory, engine=dict(section))
    return engine


def _filters(config: Config) -> dict[str, float]:
    """The options that exclude tokens, by their path."""
    nodes = (name for name in ("algorithm", "evaluation", *OWN_BATCH) if reads(config, name))
    found = {name: LogitFilters.of(node) for name in nodes if isinstance(node := getattr(config, name), Drawing)}
    return {f"{name}.{one}": value for name, filters in found.items() for one, value in filters.excluding().items()}


def check_vote(domain: Domain, verifier: Verifier, split: str) -> None:
    """Raise InputError if the data or the verifier do not support a vote. The start has checked built-in data, but a
    user's class is only known here."""
    if problems := tuple(vote_problems(domain, split)):
        raise InputError(*problems)
    executor_of(verifier, "evaluation.vote")


def _model_section(
    policies: Mapping[str, Policy], engine: SamplingEngine, config: Config, context: RunContext
) -> dict[str, object]:
    """Parameter counts for the manifest. A note reports a run that trains only a part of the parameters."""
    if POLICY in policies and reads(config, "optimizer"):
        counted = parameters(policies[POLICY].model)
        if counted.trained < counted.total:
            context.progress(kind="note", text=str(counted))
    return model_section(policies, engine)


def load_policies(config: Config, engine: SamplingEngine, domain: Domain, context: RunContext) -> dict[str, Policy]:
    """Load the policy of each role. With `model.scratch.tokenizer`, build the tokenizer from the domain's train
    split."""
    roles = role_names(config)
    found: dict[str, Policy]
    if isinstance(engine, ServerEngine):
        found = {POLICY: served_policy(config.model, engine.features.chat)}
    elif roles in ((), (POLICY,)):
        scratch, texts = config.model.scratch, training_texts(domain)
        tokenizer = build_tokenizer(scratch, texts) if scratch.tokenizer else None
        found = {POLICY: load_policy(config.model, config.seed, tokenizer)}
    else:
        own = starts(config) or dict.fromkeys(roles, "")
        found = load_roles({role: of_role(config, role).model for role in own}, own, config.seed)
    for note in dict.fromkeys(note for policy in found.values() for note in policy.notes):
        context.progress(kind="note", text=note)
    return found


def load_teacher(
    config: Config, policies: Mapping[str, Policy], domain: Domain, context: RunContext
) -> Policy | TeacherServer | None:
    """Load the policy of `roles.teacher`, whole on each device, or check the server that holds it.

    Raises:
        InputError: it reads other tokens than the policy that it teaches, or does not answer.
    """
    if TEACHER not in config.roles:
        return None
    if (served := config.roles[TEACHER].engine) is not None:
        (policy,) = policies.values()
        server = TeacherServer(served, policy, config.algorithm.distillation_top_k, longest_sequence(config))
        texts = [" ".join(policy.tokenizer.get_added_vocab()), *map(domain.task_prompt, all_tasks(domain)[:8])]
        described = server.begin(texts)
        _same_teacher(manifest.section(context.directory, TEACHER).get("model"), described["model"])
        manifest.update(context.directory, teacher=dict(described))
        return server
    with unsharded_loading() if config.parallel.strategy == "zero3" else nullcontext():
        model = of_role(config, TEACHER).model
        # A new adapter, as presets have it, would change nothing.
        teacher = load_policy(model if continued(model) else replace(model, adapter=Adapter()), config.seed)
    theirs = teacher.tokenizer.get_vocab()
    for policy in policies.values():
        own = policy.tokenizer.get_vocab()
        if own != theirs:
            differing = sorted(token for token in own.keys() | theirs.keys() if own.get(token) != theirs.get(token))
            got = f"{len(differing):,} tokens differ, such as {differing[0]!r}"
            remedy = "a teacher of the same family of models"
            what, allowed = "the teacher has another tokenizer", "the tokenizer of the policy"
            raise InputError(InputProblem(f"roles.{TEACHER}.model", what, got, allowed, "", remedy))
    return teacher


def _same_teacher(before: str | None, now: str) -> None:
    """Refuse to continue a run with another model as its teacher."""
    if before not in (None, now):
        what, remedy = "the run began with another teacher", f"serve {before}, or a new run.dir"
        raise InputError(InputProblem(f"roles.{TEACHER}.engine.model", what, now, str(before), "", remedy))


def model_section(policies: Mapping[str, Policy], engine: SamplingEngine) -> dict[str, object]:
    """Parameter counts for the manifest, by role if there are several roles."""
    if isinstance(engine, ServerEngine):
        return {"served": engine.features.model}
    counted = {role: parameters(policy.model).to_dict() for role, policy in policies.items()}
    return counted.get(POLICY, counted)


def sampled_weights(policies: Mapping[str, Policy], engine: SamplingEngine) -> dict[str, Any]:
    """Identify the weights that sample, by role: a hash of the weights, or the model name of an endpoint."""
    if isinstance(engine, ServerEngine):
        served = {"served": engine.features.model, "chat": engine.features.chat}
        return dict.fromkeys(policies, served)
    return {role: weights_hash(policy.model) for role, policy in policies.items()}


def play_of(config: Config, context: RunContext) -> Play | None:
    """The play of the configuration's team. None without a team."""
    team = team_of(config)
    return load(team.play)(config, lambda own: build_domain(own, context, in_first_process)) if team else None


def in_first_process(find: Callable[[], Found]) -> Found:
    """Call a function in the first process only, and return its result in every process."""
    return cast(Found, broadcast_object(find() if rank() == 0 else None))


def device() -> Devices:
    """The devices of the policy, for the manifest."""
    gpus = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {"gpus": gpus, "threads": torch.get_num_threads()}


def held_out_tasks(domain: Domain, evaluation: Evaluation) -> tuple[Task, ...]:
    """The first `evaluation.tasks` tasks of the split after `evaluation.skip`. Their order depends on their ids only,
    so that runs with different seeds are measured on the same tasks.

    Raises:
        InputError: no task is left.
    """
    tasks = held_out_order(split_tasks(domain, evaluation.split))
    check_skip(evaluation, len(tasks))
    return tuple(tasks[evaluation.skip :][: evaluation.tasks or None])


def held_out_order(tasks: Sequence[Task]) -> list[Task]:
    """Sort tasks in an order that depends on their ids only."""
    return sorted(tasks, key=lambda task: uniform("held out", task.id))


def split_tasks(domain: Domain, name: str) -> Sequence[Task]:
    """The tasks of a split. Raises InputError, which names the existing splits, if the split has no tasks."""
    splits = domain.splits()
    if not splits.get(name):
        raise InputError(no_split([name], domain.sizes(), reasons(domain), domain.no_split_remedy))
    return splits[name]


def training_tasks(components: RunComponents, config: Config, context: RunContext, split: str = "train") -> list[Task]:
    """The tasks of a split, separate from the held-out tasks, without prompts that are too long for the policy.

    Raises:
        InputError: a task is both trained on and held out, no task is left, no prompt fits, or the data are not for
            training.
        GuardStop: a reference answer of the first `verifier.validate` tasks does not pass.
    """
    if reason := components.domain.no_training():
        raise InputError(not_for_training(reason))
    tasks = split_tasks(components.domain, split)
    check_leakage(tasks, components.held_out)
    tasks, shared = apart(components.domain, tasks, never_trained(components, config))
    limit = min(config.model.max_prompt_tokens, components.policy.max_tokens - config.model.max_completion_tokens)
    policy, domain = components.policy, components.domain
    context.progress(kind="wait", name="measure the training prompts")
    fitting = [task for task in tasks if policy.prompt_fits(domain.task_prompt(task), limit)]
    if not fitting:
        raise InputError(
            InputProblem("model.max_prompt_tokens", f"no prompt of {len(tasks)} fits", str(limit), remedy="raise it")
        )
    left_out = len(tasks) - len(fitting)
    unjudged = _unjudged(components, config, context, fitting)
    kept = [task for task in fitting if task.id not in unjudged] or fitting  # where none is left, the golds say why
    section = {"split": split, "tasks": len(kept), "left_out_prompt_too_long": left_out, "left_out_by_tests": unjudged}
    manifest.update(context.directory, train=section | {"left_out_shared_content": shared})
    if shared:
        pairs = ", ".join(f"{name} ({held_out})" for name, held_out in list(shared.items())[:NAMED])
        text = f"{len(shared)} {split} tasks are left out, they share their content with held-out ones: {pairs}"
        context.progress(kind="note", text=text)
    if unjudged:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in list(unjudged.items())[:NAMED])
        text = f"{len(unjudged)} of {len(tasks)} {split} tasks are left out, their tests cannot judge: {reasons}"
        context.progress(kind="note", text=text)
    if left_out:
        text = f"{left_out} of {len(tasks)} {split} tasks are left out: their prompts pass {limit} tokens"
        context.progress(kind="note", text=text)
    if rank() == 0:  # Once is enough; where a gold fails, this rank ends the run.
        check_golds(components.domain, components.verifier, kept, config.verifier.validate, context)
    return kept


def never_trained(components: RunComponents, config: Config) -> list[Task]:
    """The tasks of every held-out split, even if this run does not measure them."""
    names = {*HELD_OUT, config.evaluation.split, config.run.select.split}
    return [task for name, tasks in components.domain.splits().items() if name in names for task in tasks]


def _unjudged(components: RunComponents, config: Config, context: RunContext, tasks: Sequence[Task]) -> dict[str, str]:
    """By task id, why the tests of a task cannot judge. A resumed run leaves out the same tasks."""
    known = None
    if manifest.resumed_from(context.directory):
        known = manifest.section(context.directory, "train").get("left_out_by_tests")
    if known is None and rank() == 0 and config.verifier.validate:
        known = unfit(components.domain, components.verifier, tasks, getattr(config.data, "weak", False), context)
    return broadcast_object(known) or {}


def training_environment(components: RunComponents, config: Config) -> Environment:
    if config.stage == "srl":  # Rows are a teacher's states, one action each; what the student makes has no teacher.
        return SingleTurn(components.domain)
    if components.play is not None:
        return components.play.training(config)
    scheduled = {"schedule": getattr(config, "schedule", None)} if reads(config, "schedule") else {}
    return build(config.environment, domain=components.domain, **scheduled)


def evaluation_environment(components: RunComponents, config: Config) -> Environment:
    if components.play is not None:
        return components.play.evaluation(config)
    return build(config.environment, domain=components.domain)


def inference_environment(config: Config, domain: Domain, play: Play | None) -> Environment | None:
    """The environment of +stage=infer. None stands for a single turn with retries. Raises InputError if the environment
    does not fit the data."""
    if play is not None:
        return play.inference(config)
    node = config.environment
    if node._target_ == SINGLE_TURN:
        return None
    target = next((one.inference[node._target_] for one in domains().values() if node._target_ in one.inference), "")
    return build(replace(node, _target_=target or node._target_), domain=domain)


def runner_of(
    environment: Environment, components: RunComponents, config: Config, drawing: Drawing | None, batch_size: int
) -> EpisodeRunner:
    """Build the runner of an environment's episodes.

    Args:
        drawing: the node with the sampling options. None: the `algorithm` node of each role.
    """
    players = {}
    for role, policy in components.policies.items():
        own, domain = of_role(config, role), environment.domain(role)
        longest, room = own.model.max_completion_tokens, own.model.max_prompt_tokens
        sampling = SamplingParams.of(drawing or own.algorithm, policy, longest, batch_size, domain)
        sampling = replace(sampling, planned_prompt=room)
        players[role] = Player(policy, sampling, min(room, policy.max_tokens - longest))
    generate = partial(generate_and_verify, engine=components.engine)
    verifier = components.verifier
    if environment.keeps_outputs:
        verifier = KeepsOutputs(verifier, "environment", remember=False)
    return EpisodeRunner(environment, players, verifier, generate)


def evaluation_runner(components: RunComponents, config: Config, evaluation: Evaluation | None = None) -> EpisodeRunner:
    """Build the runner of an evaluation.

    Args:
        evaluation: replaces the `evaluation` node.
    """
    node = evaluation or config.evaluation
    return runner_of(evaluation_environment(components, config), components, config, node, node.batch_size)
