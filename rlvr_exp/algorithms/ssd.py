"""Simple self-distillation (Zhang et al. 2026, SSD, arXiv 2604.01193): imitate one's own samples, correct or not.

The policy samples its tasks once, at a high temperature and from the most probable tokens only. Then it is fine-tuned on the raw
samples by the cross-entropy, L = -sum_{i,t} log pi(y_{i,t} | x, y_{i,<t}) / tokens, at temperature 1 and over the entire
vocabulary. The two distributions differ, and only therefore something is learned: log pi of samples from pi itself has an expected
gradient of 0. Temperature 1.6, top_p 0.8 and top_k 20 are those of the authors' instruct models (model cards of SimpleSD).

It runs under `+stage=grpo`, because this stage samples tasks of any domain, and resumes. The advantage of each sample is 1. The
batch of rollouts serves 40 steps (`rollout_steps`), all that a run has by default, so that the initial policy samples all of them.

Differences from the paper:
- Verdicts are computed and logged, but only a missing one matters: such a sample is left out. The paper leaves out empty answers and
  those of one line.
- 10,240 samples are 8 of each of 1,280 tasks; the paper has one of each of about 10,000 tasks.
- With more steps than `rollout_steps`, a further round is sampled from the policy at hand; the paper has one round.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.algorithms.loss import token_weights
from rlvr_exp.algorithms.training_batch import TrainingBatch, collate, completion_mask, members_of, rewards_of
from rlvr_exp.config import algorithm as options
from rlvr_exp.rollouts.collect import BatchPlan
from rlvr_exp.rollouts.groups import Groups


class SSD(Algorithm, options.SSD):
    @property
    def regularised(self) -> bool:
        """Groups of equal rewards are imitated, too."""
        return True

    def plan(self) -> BatchPlan:
        return BatchPlan(self.prompts_per_step, self.group_size, self.max_steps, rollout_steps=self.rollout_steps)

    def experience(self, groups: Groups, pad_id: int) -> TrainingBatch:
        judged = ~rewards_of(groups.batch).isnan()[members_of(groups.batch)]
        counted = completion_mask(groups.batch) * judged[:, None]
        weights = token_weights(counted, "token", self.max_completion_tokens)
        # Never off policy: without a ratio, the gradient is that of the log-probability.
        batch = collate(groups.batch, pad_id, advantages=counted.float(), weights=weights, off_policy=False)
        return replace(batch, kept_token_ids=None)

    def trl_arguments(self) -> Mapping[str, Any]:
        return {**super().trl_arguments(), "temperature": 1.0, **self.trl}
