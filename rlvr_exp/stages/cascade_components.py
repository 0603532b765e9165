"""The components of a cascade: a set of programs for two roles, two policies, a verifier. Evaluates the complete
cascade."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch

from rlvr_exp.config import build
from rlvr_exp.config.cross_checks import advice
from rlvr_exp.core.phase import EVALUATE, phase
from rlvr_exp.evaluation.cascade import CASCADE_METRICS, by_length, evaluate_cascade, failure_counts
from rlvr_exp.evaluation.metrics import Rate
from rlvr_exp.evaluation.saved import save, saved_rates
from rlvr_exp.models.policy import Policy
from rlvr_exp.models.report import parameters
from rlvr_exp.models.role_policies import load_roles
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.rollout_files import EvalSample, When
from rlvr_exp.report.task_index import save_task_index
from rlvr_exp.rollouts.cascade import ANNOTATOR, ROLES, WRITER, Cascade
from rlvr_exp.rollouts.distributed import broadcast_object
from rlvr_exp.rollouts.sampler import SamplingParams
from rlvr_exp.stages.components import RunComponents, device, held_out_tasks
from rlvr_exp.stages.verifier_match import all_tasks, check_verifier_match
from rlvr_exp.stages.verifier_setup import build_verifier, checked_description
from rlvr_exp.tasks.base import Task
from rlvr_exp.tasks.dafny.two_stage import TwoStage
from rlvr_exp.verifiers.guarded import NoVerdictGuard


@dataclass(frozen=True)
class CascadeComponents:
    """The objects of a cascade."""

    writer: RunComponents
    """Components as in a stage that trains the writer alone: its tasks are the cascade's."""
    domain: TwoStage
    policies: Mapping[str, Policy]

    def cascade(self, config, drawing, batch_size: int, attempts: int) -> Cascade:
        """The cascade, ready to be sampled from.

        Args:
            drawing: the `algorithm` or the `evaluation` node.
        """
        longest = config.model.max_completion_tokens
        domains = {WRITER: self.domain.writer, ANNOTATOR: self.domain.annotator}
        sampling = {
            role: SamplingParams.of(drawing, one, longest, batch_size, domains[role])
            for role, one in self.policies.items()
        }
        room = min(config.model.max_prompt_tokens, min(one.max_tokens for one in self.policies.values()) - longest)
        return Cascade(self.domain, self.policies, self.writer.verifier, sampling, room, attempts)


@contextmanager
def build_components(config, context: RunContext, own: Mapping[str, str]) -> Iterator[CascadeComponents]:
    """Build the components, record them in the manifest, and end the verifier's workers at exit.

    Args:
        own: the folder that each role starts from; empty: the model node's weights.
    """
    if config.parallel.threads:
        torch.set_num_threads(config.parallel.threads)
    domain = TwoStage(*(build(replace(config.data, role=role)) for role in ROLES))
    held_out = held_out_tasks(domain.writer, config.evaluation)
    with NoVerdictGuard(build_verifier(config), config.verifier.max_no_verdict_rate) as verifier:
        check_verifier_match(verifier, all_tasks(domain.writer))
        policies = load_roles(config.model, own, config.seed)
        splits = domain.writer.splits()
        manifest.update(
            context.directory,
            data={
                name: {"tasks": len(tasks), "fingerprint": domain.writer.fingerprint(name)}
                for name, tasks in splits.items()
            },
            device=device(),
            model={role: parameters(policy.model).to_dict() for role, policy in policies.items()},
            verifier=checked_description(verifier, context),
        )
        for text in advice(config):
            context.progress(kind="note", text=text)
        yield CascadeComponents(RunComponents(domain.writer, policies[WRITER], verifier, held_out), domain, policies)


def evaluate_before(components: CascadeComponents, config, context: RunContext, attempts: int) -> dict[str, Rate]:
    """`evaluate_and_save` before training; a resumed run reads a finished evaluation from its directory."""
    known = broadcast_object(
        saved_rates(context.directory, "before") if manifest.resumed_from(context.directory) else None
    )
    return evaluate_and_save(components, config, context, "before", attempts) if known is None else known


def evaluate_and_save(
    components: CascadeComponents, config, context: RunContext, when: When, attempts: int
) -> dict[str, Rate]:
    """Run the cascade on the held-out tasks, and write the evaluation into the run directory; returns its rates."""
    tasks, domain = components.writer.held_out, components.domain

    def progress(done: int, total: int) -> None:
        context.progress(kind="phase", name=f"evaluate {when}", done=done, total=total)

    scored = score_cascade(components, config, config.evaluation, tasks, attempts, progress)
    save_task_index(context.directory, [replace(task, gold=domain.example(task).annotated_body) for task in tasks])
    lengths = {
        name: {metric: rate.to_dict() for metric, rate in rates.items()} for name, rates in by_length(scored).items()
    }
    return save(context.directory, when, scored, CASCADE_METRICS, {"lengths": lengths, "blame": failure_counts(scored)})


def score_cascade(
    components: CascadeComponents,
    config,
    evaluation,
    tasks: Sequence[Task],
    attempts: int,
    progress: Callable[[int, int], None],
) -> list[EvalSample]:
    """Run the cascade on tasks, as configured by an `evaluation` node."""
    with phase(EVALUATE):
        cascade = components.cascade(config, evaluation, evaluation.batch_size, attempts)
        return evaluate_cascade(cascade, tasks, evaluation, config.seed, progress)
