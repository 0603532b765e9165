"""What our trainers need beyond Transformers to run under DeepSpeed: their own optimizer, and access to gathered weights."""

from typing import Any

import torch
from accelerate.utils import DistributedType

from rlvr_exp.models.zero3 import register_engine


class UnderDeepSpeed:
    """Mixin before a Transformers Trainer.

    Seams of the pinned Transformers: `create_optimizer(model)` sets `self.optimizer`, and `self.model_wrapped` is
    DeepSpeed's engine once training has begun.
    """

    def __init__(self, *args: Any, optimizers: tuple[torch.optim.Optimizer, Any], **kwargs: Any):
        self._given = optimizers[0]
        super().__init__(*args, optimizers=optimizers, **kwargs)
        if (
            self.accelerator.distributed_type == DistributedType.DEEPSPEED
            and self.accelerator.deepspeed_plugin.zero_stage == 3
        ):
            register_engine(self.model, self)

    def create_optimizer(self, model: torch.nn.Module | None = None) -> torch.optim.Optimizer:
        """The given optimizer: Transformers drops it when it sets up DeepSpeed, and would build its own default."""
        if self.optimizer is None:
            self.optimizer = self._given
        return self.optimizer
