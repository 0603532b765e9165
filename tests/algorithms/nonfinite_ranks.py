"""Three updates, the second not finite on rank 1 only, for tests/algorithms/rank_program.py."""

from tempfile import TemporaryDirectory

import torch
from test_trainer_seams import EVERYTHING, experience, trainer
from transformers import TrainerCallback

from rlvr_exp.algorithms.parallel_arguments import parallel_arguments
from rlvr_exp.config.parallel import Parallel
from rlvr_exp.models.zero3 import gathered_weights
from rlvr_exp.rollouts.distributed import rank


class Noted(TrainerCallback):
    """Weights and counts after each update."""

    def __init__(self, made, model):
        self._made, self._model = made, model
        self.weights, self.rows = [], []

    def on_step_end(self, args, state, control, **_):
        with gathered_weights(self._model):
            self.weights.append(torch.cat([value.detach().flatten() for value in self._model.parameters()]).tolist())
        self.rows.append(self._made.guard.metrics())


def sick_on_rank_one(parallel: Parallel, kind: type) -> dict[str, list]:
    """In its second update rank 1 has a loss of inf, whose gradient is finite."""

    class Sick(kind):
        def _compute_loss(self, model, inputs):
            loss = super()._compute_loss(model, inputs)
            return loss + torch.inf if rank() == 1 and self.state.global_step == 1 else loss

    more = {**parallel_arguments(parallel), "max_steps": 3, "learning_rate": 0.1}
    with TemporaryDirectory() as folder:
        made, who, _ = trainer(folder, experience(), EVERYTHING, kind=Sick, **more)
        kept = Noted(made, who.model)
        made.add_callback(kept)
        made.train()
    return {"weights": kept.weights, "rows": kept.rows}
