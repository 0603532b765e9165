"""The program of each rank in tests/algorithms/test_learning_ranks.py; it writes its findings to OUT.RANK, as JSON.

All in one pair of processes, since each import of torch and TRL costs seconds. Started by rlvr_exp.launch.children:
python -m rank_program OUT STRATEGY,STRATEGY,STRATEGY PROGRESS_FD LIFE_FD.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import torch
from nonfinite_ranks import sick_on_rank_one
from roles_in_turn import trained
from tiny_step import EVERYTHING, experience, flat, trainer
from updating import updated

from rlvr_exp.algorithms.base import parallel_arguments
from rlvr_exp.algorithms.distillation import DistillationTrainer, TaughtBatch, Teacher
from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.algorithms.training_batch import TrainingBatch, unpadded
from rlvr_exp.algorithms.trl_losses import TRLLossTrainer
from rlvr_exp.config.algorithm import SRPO
from rlvr_exp.config.parallel import Parallel
from rlvr_exp.launch.children import hold_lifeline
from rlvr_exp.models.parameters import gathered_weights
from rlvr_exp.rollouts.distributed import all_reduce_counters, any_rank, broadcast_object, data_parallel, rank
from rlvr_exp.rollouts.run_episodes import RolloutResult
from rlvr_exp.training.torch_distributed import joined

STEPS = 5
FED = {
    "uneven": ((1,), EVERYTHING),
    "cut": ((), 12),
    "one live": ((0, 1, 3), EVERYTHING),
    "dead": ((0, 1, 2, 3), 12),
    "taught": ((0, 1, 2), 12),
    "gated": ((1,), 12),
}
"""By name: groups without advantages, and tokens of a pass. With a single useful group, one of two ranks has no samples. A
teacher teaches the samples of `taught`, apart from the last group. `gated` has the loss that TRL averages over rows."""

TURNS = {
    "in turn": [("default", 2), ("critic", 1), ("default", 2), ("critic", 3)],
    "one after the other": [("default", 4), ("critic", 4)],
}


def trace(parallel: Parallel, fed: str) -> dict[str, list[float]]:
    """Loss and gradient norm of each step, and the weights at the end."""
    dead, tokens = FED[fed]
    more = {**parallel_arguments(parallel), "max_steps": STEPS, "learning_rate": 0.1}
    with TemporaryDirectory() as folder:
        more |= {"loss_type": "sapo"} if fed == "gated" else {}
        made = trainer(folder, tokens, kind={"taught": Taught, "gated": Gated}.get(fed, WithAdam), **more)
        rows = updated(made, lambda _: taught(experience(dead)) if fed == "taught" else experience(dead))
    with gathered_weights(made.model), gathered_weights(made.model):  # Nested, like a probe within a rollout.
        weights = flat(made.model)
    return {
        "loss": [row["loss"] for row in rows],
        "grad_norm": [row["grad_norm"] for row in rows],
        "weights": weights.tolist(),
    }


class WithAdam(PolicyTrainer):
    """Its steps depend on the steps before: a difference shows."""

    def __init__(self, policy, args, _optimizer, *rest, **options):
        super().__init__(policy, args, torch.optim.AdamW(policy.model.parameters(), lr=0.01), *rest, **options)

    def _begin(self, model):
        """With the pass at the longest lengths that accelerators run first; no strategy learns from it."""
        super()._begin(model)
        if self.accelerator.num_processes > 1:
            self._warm_up(model)


class Gated(WithAdam, TRLLossTrainer): ...


class Taught(DistillationTrainer):
    def __init__(self, policy, args, _optimizer, guard, limits, entropy):
        optimizer = torch.optim.AdamW(policy.model.parameters(), lr=0.01)
        algorithm = SRPO(distillation_top_k=5, entropy_beta=0.5)
        super().__init__(algorithm, Teacher(), policy, args, optimizer, guard, limits, entropy=entropy)


def taught(batch: TrainingBatch) -> TaughtBatch:
    """The batch with prompts of a teacher, which differ in length."""
    plain = unpadded(batch.prompt_ids, batch.prompt_mask, range(len(batch.prompt_ids)))
    prompts = tuple((*prompt, *range(3, 3 + place)) for place, prompt in enumerate(plain))
    distilled = batch.completion_mask.float()
    distilled[-2:] = 0
    return TaughtBatch(**vars(batch), teacher_prompts=prompts, distilled=distilled)


def shares() -> dict[str, object]:
    """The ranks' results for five requests and for one, and the objects that they exchange."""

    @data_parallel
    def answer(policy, domain, verifier, questions, seconds):
        return RolloutResult(
            tuple(f"{question} by {rank()}" for question in questions), {"generate": seconds} if questions else {}
        )

    who = SimpleNamespace(model=torch.nn.Linear(1, 1))
    five, one = answer(who, None, None, "abcde", 1.0 + rank()), answer(who, None, None, "a", 1.0)
    return {
        "five": list(five.completions),
        "slowest": five.seconds,
        "one": list(one.completions),
        "any": [any_rank(rank() == 1), any_rank(False)],
        "agreed": broadcast_object(rank()),
        "added": all_reduce_counters({"asked": 1.0 + rank(), "hit_rate": 0.5 * rank()}),
    }


def main(out: str, strategies: str, _progress: str, life: str) -> None:
    hold_lifeline(int(life))
    plans = [Parallel(strategy=name, processes=2) for name in strategies.split(",")]
    with joined(max(plans, key=lambda plan: plan.strategy)):
        found: dict[str, object] = {plan.strategy: {fed: trace(plan, fed) for fed in FED} for plan in plans}
        found["shares"] = shares()
        found["sick"] = {plan.strategy: sick_on_rank_one(plan, WithAdam) for plan in plans}
        found["roles"] = {name: vars(trained(plans[1], turns)) for name, turns in TURNS.items()}
        Path(f"{out}.{rank()}").write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
