"""The components of most stages: the domain and its tasks, the policy and the verifier, built from the
configuration."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from rlvr_exp.config import build
from rlvr_exp.config.cross_checks import advice
from rlvr_exp.config.stages import reads
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.phase import EVALUATE, phase
from rlvr_exp.core.seeds import uniform
from rlvr_exp.evaluation.evaluate_policy import evaluate_policy
from rlvr_exp.evaluation.leakage import check_leakage
from rlvr_exp.evaluation.metrics import Rate
from rlvr_exp.evaluation.saved import save, saved_rates
from rlvr_exp.evaluation.text_similarity import metrics_by_role
from rlvr_exp.models.policy import Policy, load_policy
from rlvr_exp.models.report import parameters
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.rollout_files import When
from rlvr_exp.report.task_index import save_task_index
from rlvr_exp.rollouts.distributed import broadcast_object, rank
from rlvr_exp.stages.gold_check import check_golds
from rlvr_exp.stages.screening import unfit
from rlvr_exp.stages.verifier_match import all_tasks, check_verifier_match
from rlvr_exp.stages.verifier_setup import build_verifier, checked_description
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.verifiers.base import Verifier
from rlvr_exp.verifiers.guarded import NoVerdictGuard

PRACTICE = "practice"
NAMED = 5
"""Tasks named in a note; the manifest has all."""


@dataclass(frozen=True)
class RunComponents:
    """The objects of a stage."""

    domain: Domain
    policy: Policy
    verifier: Verifier
    held_out: tuple[Task, ...]
    """The tasks that success is measured on, the same for every run with the same data and split seed."""


@contextmanager
def build_components(config, context: RunContext) -> Iterator[RunComponents]:
    """Build the components, record them in the manifest, and end the verifier's workers at exit."""
    if config.parallel.threads:
        torch.set_num_threads(config.parallel.threads)
    domain = build(config.data)
    held_out = held_out_tasks(domain, config.evaluation)
    policy = load_policy(config.model, config.seed)
    with NoVerdictGuard(build_verifier(config), config.verifier.max_no_verdict_rate) as verifier:
        check_verifier_match(verifier, all_tasks(domain))
        manifest.update(
            context.directory,
            data={
                name: {"tasks": len(tasks), "fingerprint": domain.fingerprint(name)}
                for name, tasks in domain.splits().items()
            },
            device=device(),
            model=_model_section(policy, config, context),
            verifier=checked_description(verifier, context),
        )
        yield RunComponents(domain, policy, verifier, held_out)


def _model_section(policy: Policy, config, context: RunContext) -> dict[str, object]:
    """The policy's parameters, for the manifest; a run that trains only a part of them reports so, with any advice."""
    counted = parameters(policy.model)
    if reads(config, "optimizer") and counted.trained < counted.total:
        context.progress(kind="note", text=str(counted))
    for text in advice(config):
        context.progress(kind="note", text=text)
    return counted.to_dict()


def device() -> dict[str, object]:
    """The devices of the policy, for the manifest."""
    gpus = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {"gpus": gpus, "threads": torch.get_num_threads()}


def held_out_tasks(domain: Domain, evaluation) -> tuple[Task, ...]:
    """The first `evaluation.tasks` of the split after `evaluation.skip`, in an order that depends on the tasks' ids alone,
    so that runs with different seeds are measured on the same tasks.

    Raises:
        InputError: none are left.
    """
    tasks = held_out_order(split_tasks(domain, evaluation.split))
    found = tasks[evaluation.skip :][: evaluation.tasks or None]
    if not found:
        got, allowed = str(evaluation.skip), f"at most {len(tasks) - 1} of split {evaluation.split!r}"
        raise InputError(
            InputProblem("evaluation.skip", "leaves no task to measure on", got, allowed, remedy="skip fewer")
        )
    return tuple(found)


def held_out_order(tasks: Sequence[Task]) -> list[Task]:
    """An order that depends on the tasks' ids alone."""
    return sorted(tasks, key=lambda task: uniform("held out", task.id))


def split_tasks(domain: Domain, name: str) -> Sequence[Task]:
    """The tasks of a split. Raises InputError where there are none, naming the existing splits."""
    splits = domain.splits()
    if not splits.get(name):
        there = ", ".join(f"{split} ({len(tasks)} tasks)" for split, tasks in splits.items())
        raise InputError(
            InputProblem(
                "data", f"no tasks in split {name!r}", allowed=there, remedy="name another split, or other data"
            )
        )
    return splits[name]


def rl_split(domain: Domain) -> str:
    """The split for reinforcement learning: `practice`, whose gold answers no policy was shown, where the data has it;
    else `train`. Gains on tasks that were imitated transfer less to others (docs/dafny_corpus.md)."""
    return PRACTICE if domain.splits().get(PRACTICE) else "train"


def training_tasks(components: RunComponents, config, context: RunContext, split: str = "train") -> list[Task]:
    """The tasks of a split, separate from the held-out tasks, without prompts that are too long for the policy.

    Raises:
        InputError: a task is on both sides, or no prompt fits.
        GuardStop: a gold of the first `verifier.validate` tasks does not pass.
    """
    tasks = split_tasks(components.domain, split)
    check_leakage(tasks, components.held_out)
    limit = min(config.model.max_prompt_tokens, components.policy.max_tokens - config.model.max_completion_tokens)
    policy, domain = components.policy, components.domain
    fitting = [task for task in tasks if policy.prompt_fits(domain.prompt(task), limit)]
    if not fitting:
        raise InputError(
            InputProblem("model.max_prompt_tokens", f"no prompt of {len(tasks)} fits", str(limit), remedy="raise it")
        )
    left_out = len(tasks) - len(fitting)
    unjudged = _unjudged(components, config, context, fitting)
    kept = [task for task in fitting if task.id not in unjudged] or fitting  # where none is left, the golds say why
    section = {"split": split, "tasks": len(kept), "left_out_prompt_too_long": left_out, "left_out_by_tests": unjudged}
    manifest.update(context.directory, train=section)
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


def _unjudged(components: RunComponents, config, context: RunContext, tasks: Sequence[Task]) -> dict[str, str]:
    """Tasks whose tests cannot judge, with the reason; a resumed run leaves out the same tasks."""
    known = None
    if manifest.resumed_from(context.directory):
        known = manifest.section(context.directory, "train").get("left_out_by_tests")
    if known is None and rank() == 0 and config.verifier.validate:
        known = unfit(components.domain, components.verifier, tasks, getattr(config.data, "weak", False), context)
    return broadcast_object(known) or {}


def evaluate_before(components: RunComponents, config, context: RunContext) -> dict[str, Rate]:
    """`evaluate_and_save` before training; a resumed run reads a finished evaluation from its directory."""
    known = broadcast_object(
        saved_rates(context.directory, "before") if manifest.resumed_from(context.directory) else None
    )
    return evaluate_and_save(components, config, context, "before") if known is None else known


def evaluate_and_save(components: RunComponents, config, context: RunContext, when: When) -> dict[str, Rate]:
    """Evaluate the policy on the held-out tasks, and write the evaluation into the run directory; returns its rates."""

    def progress(done: int, total: int) -> None:
        context.progress(kind="phase", name=f"evaluate {when}", done=done, total=total)

    with phase(EVALUATE):
        scored = evaluate_policy(
            components.policy,
            components.domain,
            components.verifier,
            components.held_out,
            config.evaluation,
            config.model,
            seed=config.seed,
            progress=progress,
        )
    save_task_index(context.directory, components.held_out)
    roles = metrics_by_role(components.domain, scored)
    return save(context.directory, when, scored, more={"roles": roles} if roles else None)
