"""Three updates, the second not finite on rank 1 only, for tests/algorithms/rank_program.py."""

from tempfile import TemporaryDirectory

import torch
from tiny_step import EVERYTHING, experience, flat, trainer
from updating import updated

from rlvr_exp.algorithms.base import parallel_arguments
from rlvr_exp.config.parallel import Parallel
from rlvr_exp.models.parameters import gathered_weights
from rlvr_exp.rollouts.distributed import rank
from rlvr_exp.training.learner import Learner


def sick_on_rank_one(parallel: Parallel, kind: type) -> dict[str, list]:
    """Weights and rows after each update. In the second rank 1 has a loss of inf, whose gradient is finite."""

    class Sick(kind):
        def _compute_loss(self, model, inputs):
            loss = super()._compute_loss(model, inputs)
            return loss + torch.inf if rank() == 1 and self.state.global_step == 1 else loss

    weights: list[list[float]] = []

    def note(learner: Learner) -> None:
        with gathered_weights(learner.trainer.model):
            weights.append(flat(learner.trainer.model).tolist())

    more = {**parallel_arguments(parallel), "max_steps": 3, "learning_rate": 0.1}
    with TemporaryDirectory() as folder:
        made = trainer(folder, EVERYTHING, kind=Sick, **more)
        rows = updated(made, lambda _: experience(), after=note)
    return {"weights": weights, "rows": rows}
