"""The policy as its own teacher: with feedback in its prompt, it teaches the policy without the feedback.

Self-Distillation Policy Optimization (Hübotter et al. 2026, Reinforcement Learning via Self-Distillation, arXiv 2601.20802).

The teacher is the policy with a longer prompt: the task, an answer of the same group that passed, and the verifier's feedback on
the answer itself (`Domain.teacher_prompt`). The loss of each token of the answer is a divergence from the teacher
(rlvr_exp.algorithms.distillation). Defaults are those of the authors' runs on code: Jensen-Shannon (alpha 0.5), the 100 most
probable tokens, ratios up to 2, a moving average of the weights with rate 0.05 as the teacher. Answers that passed are taught as
well, by another one of their group.

Differences from the paper:
- The 100 tokens are the teacher's most probable ones, as a teacher on a server has to choose them; the paper's are the
  student's. All others are one event, as in the paper.
- An answer without a teacher (none of its group passed and there is no feedback, or the prompt is too long) has no loss.
- The temperature of sampling divides the logits of both.

Sample-Routed Policy Optimization (Li et al. 2026, Unifying Group-Relative and Self-Distillation Policy Optimization via Sample
Routing, arXiv 2604.02288).

Answers that passed, and those without a teacher, have the loss of GRPO; the others that of SDPO, weighted by the teacher's
confidence: exp(-`entropy_beta` H) of a token, H the entropy of the teacher in nats.

Differences from the paper:
- The entropy is that of the teacher's events, which are its 100 most probable tokens and the rest. Weights are not normalised.

Self-Distillation Fine-Tuning (Shenfeld et al. 2026, Self-Distillation Enables Continual Learning, arXiv 2601.19897).

The teacher sees the reference answer; the student answers without it and learns by the forward KL on its own tokens, so that it
keeps what it could. The moving average has rate 0.01. Rewards enter the loss only if `distillation_weight` is below 1.

Differences from the paper:
- The paper prints the reverse KL; its authors' code computes the forward one, as here.
- The words of the prompt are those of SDPO.
"""

from typing import Any

import torch

from rlvr_exp.algorithms.distillation import DistillationTrainer, MovingAverage, TaughtAlgorithm, TaughtBatch
from rlvr_exp.algorithms.training_batch import sampled
from rlvr_exp.config import algorithm as options
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.engines.teacher_server import TeacherServer
from rlvr_exp.rollouts.groups import Group, Groups
from rlvr_exp.tasks.base import Domain
from rlvr_exp.tasks.completion import without_thoughts


class SelfDistillation(TaughtAlgorithm, options.SelfDistillation):
    domain: Domain
    policy: Policy
    distillation_weight: float = 1.0
    include_feedback: bool

    def begin(self, domain: Domain, policy: Policy, teacher: Policy | TeacherServer | None) -> None:
        self.domain, self.policy = domain, policy

    def experience(self, groups: Groups, pad_id: int) -> TaughtBatch:
        batch = super().experience(groups, pad_id)
        prompts = [
            self._teacher_prompt(group, member) for group in groups.batch for member in range(len(sampled(group)))
        ]
        passed = torch.tensor([one.correct for group in groups.batch for one in group.completions])
        taught = torch.tensor([prompt is not None for prompt in prompts])
        policy, distilled = self.shares(taught, passed)
        own = [ids for group in groups.batch for ids in group.prompt_ids]
        return TaughtBatch(
            **{**vars(batch), "advantages": batch.advantages * policy[:, None]},
            distilled=distilled[:, None] * batch.completion_mask,
            teacher_prompts=tuple(given or tuple(plain) for given, plain in zip(prompts, own, strict=True)),
        )

    def shares(self, taught: torch.Tensor, passed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(N,) each: the weights of the policy loss and of the divergence.

        Args:
            taught: (N,) which answers have a teacher.
            passed: (N,) which answers passed.
        """
        weight = self.distillation_weight
        return torch.full(taught.shape, 1.0 - weight), weight * taught.float()

    def _teacher_prompt(self, group: Group, member: int) -> tuple[int, ...] | None:
        """Token ids; None if there is nothing to teach an answer with, or if it does not fit."""
        one = group.completions[member]
        if one.verdict.outcome == "no_verdict":
            return None
        solution, feedback = self.hints(group, member)
        if not (solution or feedback):
            return None
        attempt = without_thoughts(one.text)
        ids = self.policy.encode_prompt(self.domain.teacher_prompt(one.task, solution, attempt, feedback))
        return tuple(ids) if len(ids) + one.tokens <= self.policy.max_tokens else None

    def hints(self, group: Group, member: int) -> tuple[str, str]:
        """The solution and the feedback that the teacher sees; empty: none."""
        one = group.completions[member]
        silent = one.correct or not self.include_feedback
        return demonstration(group, member), "" if silent else self.domain.feedback(one.task, one.verdict)

    def trainer(self, policy: Policy, *common: Any) -> DistillationTrainer:
        return DistillationTrainer(self, MovingAverage.teacher(policy.model, self.teacher_update_rate), policy, *common)


def demonstration(group: Group, member: int) -> str:
    """The first other answer of the group that passed, without thoughts; empty if none did."""
    passed = (one for place, one in enumerate(group.completions) if one.correct and place != member)
    first = next(passed, None)
    return "" if first is None else without_thoughts(first.text)


class SDPO(SelfDistillation, options.SDPO): ...


class SRPO(SelfDistillation, options.SRPO):
    def shares(self, taught: torch.Tensor, passed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        routed = (taught & ~passed).float()
        return 1.0 - routed, routed


class SDFT(SelfDistillation, options.SDFT):
    def begin(self, domain: Domain, policy: Policy, teacher: Policy | TeacherServer | None) -> None:
        """Raises InputError if no task has a reference answer."""
        super().begin(domain, policy, teacher)
        if not any(domain.gold_completion(task) is not None for task in domain.splits()["train"]):
            what, remedy = "no task has a reference answer for the teacher", "other data, or algorithm=sdpo"
            raise InputError(InputProblem("data", what, "split train", "tasks with reference answers", "", remedy))

    def hints(self, group: Group, member: int) -> tuple[str, str]:
        """The reference answer, if there is one."""
        return self.domain.gold_completion(group.completions[member].task) or "", ""
