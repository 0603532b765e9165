"""Optional packages that a run does not use: not imported, though they are installed.

PEFT, TRL and Accelerate import DeepSpeed, W&B and bitsandbytes wherever they find them: a third of the seconds before a
stage's first line. Never imports torch.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any, cast

from rlvr_exp.config.parallel import SHARDING
from rlvr_exp.config.schema import Config
from rlvr_exp.config.stages import trains

_OURS = "rlvr_exp."


def hide_unused_packages(config: Config, options: Mapping[str, Any]) -> None:
    """For the rest of this process. `options`: the configuration's leaves by their dotted paths."""
    for package in unused_packages(config, options):
        cast(dict[str, Any], sys.modules).setdefault(
            package, None
        )  # What the import system, and any search for it, takes as absent.


def unused_packages(config: Config, options: Mapping[str, Any]) -> Iterator[str]:
    """Their names; none where a stage does not train, or a class of the user's own could import anything."""
    targets = [str(value) for key, value in options.items() if key.endswith("_target_")]
    if not trains(config.stage) or not all(target.startswith(_OURS) for target in targets):
        return
    if config.parallel.strategy not in SHARDING:
        yield "deepspeed"
    if not any(target.endswith(".WandB") for target in targets):
        yield "wandb"
    weights = [
        value for key, value in options.items() if key.endswith("path") and not key.startswith("data.") and value
    ]
    in_bits = any(value != "none" for key, value in options.items() if key.endswith("quantization"))
    if not weights and not in_bits and not any(target.endswith(".AdamW8bit") for target in targets):
        yield "bitsandbytes"  # A checkpoint may hold quantized weights, whatever the options say.
