"""The trace of a run with the options of its algorithm, in three parts that are compared in turn: the samples, the
training batch, and the weights after two or three updates of a model of a few hundred weights."""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import fixed_batch
import torch
from tokenizers import pre_tokenizers
from trl import GRPOConfig
from updating import updated

from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.algorithms.gradients import NonFiniteGuard
from rlvr_exp.algorithms.loss import correction_of
from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.config.load import build
from rlvr_exp.config.parallel import BatchLimits
from rlvr_exp.core.seeds import uniform
from rlvr_exp.curriculum.base import Ordered
from rlvr_exp.episodes.environments import SingleTurn
from rlvr_exp.episodes.episode import POLICY
from rlvr_exp.models.policy import Policy
from rlvr_exp.rewards.compose import Reward
from rlvr_exp.rewards.terms import AllPassed, CasesPassed
from rlvr_exp.rollouts.collect import Collector, RoleRules
from rlvr_exp.rollouts.run_episodes import EpisodeRunner, Player
from rlvr_exp.rollouts.sampler import SamplingBatch
from rlvr_exp.rollouts.sampling_params import SamplingParams
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.verifiers.base import Direct, Request, Verdict

LIMIT = fixed_batch.LIMIT
TASKS = [
    Task(f"task{i}", "f", float(i), inputs=f"w{3 + i} w4", problem="hopeless" if i % 2 else "open") for i in range(6)
]
"""Every other task always fails, so that its groups have zero variance."""
DOMAIN: Any = SimpleNamespace(
    task_prompt=lambda task: task.inputs,
    parse=lambda text, task: Candidate(text),
    feedback=lambda task, verdict: verdict.reason,
    gold_completion=lambda task: "w9 w8 w7",
    splits=lambda: {"train": TASKS},
    teacher_prompt=lambda task, solution, attempt, feedback: f"{task.inputs} {solution} {'w9 w8' * bool(feedback)}",
)
SMALL = {"prompts_per_step": 2, "group_size": 3, "max_steps": 2}


class Grader(Direct):
    name, version = "grader", "1"

    def judge(self, request: Request) -> Verdict:
        lot = uniform(request.problem, request.candidate.text)
        if request.problem == "hopeless":
            return Verdict("failed", bucket="wrong_answer", passed=0, total=4)
        if lot < 0.05:
            return Verdict("no_verdict", log="the grader broke")
        if lot < 0.5:
            return Verdict("passed", passed=4, total=4)
        return Verdict("failed", bucket="wrong_answer", passed=int(lot * 8) - 4, total=4)


def options_of(schema: type, **given: Any) -> Any:
    """A node of the schema, small and with the given options."""
    return schema(**{**SMALL, **given})


def trace(options: Any) -> Iterator[Any]:
    """The parts of a run's trace, each computed on request."""
    with tempfile.TemporaryDirectory() as folder:
        yield _sampled(options, Path(folder))
        yield _made(options, Path(folder))
        yield _trained(options, Path(folder))


def built(options: Any) -> Algorithm:
    return build(options, max_completion_tokens=LIMIT, checkpoint="")


def _policy(folder: Path) -> Policy:
    made = fixed_batch.policy(folder / "policy")
    made.tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    # Many tokens end a completion, so that few run into the limit.
    return replace(made, eos_ids=tuple(range(1, 8)))


def _teacher(folder: Path) -> Policy:
    """The policy with other weights."""
    made = _policy(folder)
    draw = torch.Generator().manual_seed(2)
    for value in made.model.parameters():
        value.data += 0.3 * torch.randn(value.shape, generator=draw)
    return made


def _collector(options: Any, who: Algorithm, policy: Policy) -> Collector:
    sampling = SamplingParams.of(options, policy, LIMIT, options.rollout_batch_size or 100)
    player = Player(policy, sampling, policy.max_tokens)
    return Collector(
        runner=EpisodeRunner(SingleTurn(DOMAIN), {POLICY: player}, Grader()),
        rewards={POLICY: Reward({"passed": AllPassed(weight=1.0), "cases": CasesPassed(weight=0.2)})},
        curriculum=Ordered(TASKS, 0),
        tasks=TASKS,
        plan=who.plan(),
        rules={POLICY: RoleRules(who.group_filter(), who.shaped_group)},
        seed=0,
    )


def _sampled(options: Any, folder: Path) -> Any:
    """Every step's groups by an untrained policy, and the number of tokens that the sampler drew one after another."""
    who = built(options)
    collector = _collector(options, who, _policy(folder))
    steps = range(0, options.max_steps, who.plan().iterations)
    drawing = SamplingBatch.step
    with mock.patch.object(SamplingBatch, "step", autospec=True, side_effect=drawing) as sampler:
        walked = [collector.collect(step).groups[POLICY] for step in steps]
    drawn = [[(g.id, g.rewards, [a.sampled for a in g.completions]) for g in groups.batch] for groups in walked]
    return drawn, [len(groups.sampled) for groups in walked], sampler.call_count


def _made(options: Any, folder: Path) -> Any:
    """The first step's advantages and weights."""
    who, policy = built(options), _policy(folder)
    who.begin(DOMAIN, policy, _teacher(folder))
    learned = who.experience(_collector(options, who, policy).collect(0).groups[POLICY], 0)
    return [learned.advantages.tolist(), learned.weights.tolist()]


def _trained(options: Any, folder: Path) -> Any:
    """The weights after the run's updates, and the number of their passes."""
    who, policy = built(options), _policy(folder)
    who.begin(DOMAIN, policy, _teacher(folder))
    collector = _collector(options, who, policy)

    def collect(step: int) -> TrainingBatch:
        batch = who.experience(collector.collect(step).groups[POLICY], policy.pad_id)
        if options.correction == "auto":
            return batch
        # As if another engine had sampled, and found its tokens less probable.
        return replace(batch, sampling_logprobs=batch.sampling_logprobs - 0.2)

    descent = torch.optim.SGD(policy.model.parameters(), lr=0.5)
    limits = BatchLimits(options.max_tokens_per_device, 4)
    made = who.trainer(policy, _arguments(who, folder), descent, NonFiniteGuard(), limits)
    made.correction = correction_of(options, exact=True)
    with mock.patch.object(made, "_compute_loss", wraps=made._compute_loss) as passes:
        updated(made, collect)
    return [value.tolist() for value in policy.model.parameters()], passes.call_count


def _arguments(who: Algorithm, folder: Path) -> GRPOConfig:
    fixed: Mapping[str, Any] = dict(
        output_dir=str(folder / "scratch"),
        per_device_train_batch_size=who.group_size,
        gradient_accumulation_steps=1,
        steps_per_generation=1,
        bf16=False,
        use_cpu=True,
        gradient_checkpointing=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        max_grad_norm=5.0,
        learning_rate=0.5,
        lr_scheduler_type="constant",
    )
    return GRPOConfig(**{**who.trl_arguments(), **fixed})
