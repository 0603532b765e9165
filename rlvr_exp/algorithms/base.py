"""The contract of an algorithm, and the arguments of TRL's configurations.

An algorithm turns verified completions into a loss. It is a small class that derives from its options
(rlvr_exp.config.algorithm), whose defaults are the published method's. It owns advantages, loss weights and the settings of
the trainer; it never samples, verifies or chooses tasks.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from trl import GRPOConfig

from rlvr_exp.algorithms.gradients import NonFiniteGuard
from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.config import algorithm as options
from rlvr_exp.config.load import build
from rlvr_exp.config.parallel import SHARDING, BatchLimits, Parallel
from rlvr_exp.episodes.types import Completion, RewardBreakdown
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.collect import BatchPlan
from rlvr_exp.rollouts.engines.teacher_server import TeacherServer
from rlvr_exp.rollouts.groups import GroupFilter, Groups
from rlvr_exp.tasks.base import Domain


class Algorithm(options.ReinforcementLearning, ABC):
    """
    Args:
        max_completion_tokens: from the `model` node.
        checkpoint: folder that the policy was loaded from, for a method that has weights of its own; empty: none.
        term_weights: weights of the reward's terms, by name.
        given: the options.
    """

    trl: dict[str, Any]

    def __init__(
        self,
        max_completion_tokens: int,
        checkpoint: str = "",
        term_weights: Mapping[str, float] | None = None,
        **given: Any,
    ):
        super().__init__(**given)
        self.max_completion_tokens, self.checkpoint = max_completion_tokens, checkpoint
        self.term_weights = term_weights or {}

    def begin(self, domain: Domain, policy: Policy, teacher: Policy | TeacherServer | None) -> None:
        """Called once before the first step, with the words of the tasks, and `roles.teacher` if there is one."""

    @property
    def regularised(self) -> bool:
        """The loss has terms besides the reward's, so that groups without advantages are trained on as well."""
        return False

    def plan(self) -> BatchPlan:
        """How many groups are sampled, and when."""
        return BatchPlan(self.prompts_per_step, self.group_size, self.max_steps)

    def group_filter(self) -> GroupFilter:
        """How groups without variance in their rewards are treated."""
        return GroupFilter("keep", eps=1e-6)

    def shaped(self, reward: float, tokens: int) -> float:
        """The shaped reward of a completion with so many tokens, as the algorithm sees it."""
        return reward

    def shaped_group(
        self, rewarded: Sequence[RewardBreakdown], completions: Sequence[Completion]
    ) -> tuple[float | None, ...]:
        """The rewards that the algorithm learns from, of a group's completions; None, without a verdict, stays None."""
        return tuple(
            None if paid.total is None else self.shaped(paid.total, one.tokens)
            for paid, one in zip(rewarded, completions, strict=True)
        )

    @abstractmethod
    def experience(self, groups: Groups, pad_id: int) -> TrainingBatch:
        """The training batch of the step's groups (`groups.batch`): samples with advantages and loss weights."""

    def trl_arguments(self) -> Mapping[str, Any]:
        """Arguments of TRL's GRPOConfig; everything else that decides the loss is in the training batch."""
        return {
            "max_steps": self.max_steps,
            "num_generations": self.group_size,
            "max_completion_length": self.max_completion_tokens,
            "temperature": self.temperature,
            "beta": 0.0,
            # Weights carry the aggregation; TRL's "dapo" form adds no aggregation of its own.
            "loss_type": "dapo",
            "use_bias_correction_kl": False,
            **self.trl,
        }

    def trainer(
        self,
        policy: Policy,
        args: GRPOConfig,
        optimizer: torch.optim.Optimizer,
        guard: NonFiniteGuard,
        limits: BatchLimits,
    ) -> PolicyTrainer:
        """The trainer that updates `policy` on the batches of `experience`."""
        return PolicyTrainer(policy, args, optimizer, guard, limits)


def shared_arguments(config: Any, scratch: Path, dtype: torch.dtype) -> Mapping[str, Any]:
    """Fields common to GRPOConfig and SFTConfig.

    Args:
        scratch: the folder that TRL may write to; we write nothing there.
    """
    optimizer = config.optimizer
    return {
        "output_dir": str(scratch),
        "seed": config.seed,
        "data_seed": config.seed,
        "learning_rate": optimizer.lr,
        "max_grad_norm": optimizer.max_grad_norm,
        **build(config.scheduler).arguments(optimizer.lr, config.algorithm.max_steps),
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "bf16": dtype is torch.bfloat16,
        "gradient_checkpointing": config.model.gradient_checkpointing,
        "gradient_checkpointing_kwargs": {"use_reentrant": False},
        "dataloader_pin_memory": torch.cuda.is_available(),
        "use_cpu": not torch.cuda.is_available(),
        **parallel_arguments(config.parallel),
    }


AUTO = (
    "train_micro_batch_size_per_gpu",
    "train_batch_size",
    "gradient_accumulation_steps",
    "gradient_clipping",
)
"""Settings that the trainer fills in from its own."""
HOST = {"device": "cpu", "pin_memory": True}


def parallel_arguments(parallel: Parallel) -> dict[str, Any]:
    """Fields common to GRPOConfig and SFTConfig; none for a single process."""
    if not parallel.distributed:
        return {}
    arguments: dict[str, Any] = {"ddp_timeout": parallel.timeout_s}
    if parallel.strategy in SHARDING:
        arguments["deepspeed"] = deepspeed_settings(parallel)
    return arguments


def deepspeed_settings(parallel: Parallel) -> dict[str, Any]:
    """DeepSpeed's configuration: the node's settings, and those that follow from them."""
    settings: dict[str, Any] = copy.deepcopy(dict(parallel.deepspeed))
    zero = settings.setdefault("zero_optimization", {})
    zero["stage"] = SHARDING[parallel.strategy]
    if parallel.offload:
        host: Mapping[str, Any] = {**HOST, "pin_memory": torch.cuda.is_available()}
        zero |= {"offload_optimizer": dict(host), "offload_param": dict(host)}
    # Optimizers are built by the optimizer group and not by DeepSpeed, which would not know ours by name.
    settings |= {"zero_allow_untested_optimizer": True, "bf16": {"enabled": "auto"}}
    return {**settings, **dict.fromkeys(AUTO, "auto")}
