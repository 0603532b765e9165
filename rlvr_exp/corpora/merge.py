"""Merges an adapter and its base into a full checkpoint.

An adapter trained over a quantized base learned with weights that differ from the stored weights. By default it is
merged into those, dequantized: the result answers as the policy that was trained and measured. `prepare.stored`
takes the weights as stored. Nothing is merged into quantized weights, where most of an update would be rounded away; the same
holds in part for bfloat16, so that the type is that of training unless another is named.
"""

from dataclasses import replace
from pathlib import Path

from transformers import PreTrainedModel

from rlvr_exp.config.model import Adapter, Model, is_adapter, recorded, recorded_base
from rlvr_exp.config.needs import weights_missing
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.models.adapters import with_adapter
from rlvr_exp.models.policy import load_policy, load_tokenizer
from rlvr_exp.records.context import RunContext


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write the merged model."""
    options = config.prepare
    out = Path(options.output or context.directory / "merged")
    model = merge(Path(options.path), out, options.base, options.dtype, options.stored)
    return f"merged into {out}", {"parameters": model.num_parameters()}


def merge(adapter: Path, out: Path, base: str = "", dtype: str = "", stored: bool = False) -> PreTrainedModel:
    """Write the merged model and its tokenizer to `out`, a new or empty folder; returns the model.

    Args:
        base: where the base is now; empty: where the adapter's record places it.
        dtype: of the result; empty: that of training, or as stored where the adapter is not one of our checkpoints.
        stored: take the base's weights as stored, also where training quantized them.

    Raises:
        InputError: no adapter or no base is there, or `out` holds something.
    """
    _check(adapter, out)
    record = recorded(str(adapter))
    bits = "none" if stored else record.get("quantization", "none")
    below = _base(base or recorded_base(str(adapter)), dtype or record.get("dtype", "auto"), bits)
    if needs := list(weights_missing(below)):
        raise InputError(*(need.problem for need in needs))
    network = load_policy(below, seed=0).model
    over = replace(below, adapter=Adapter(path=str(adapter)), quantization="none")
    whole = with_adapter(network if bits == "none" else network.dequantize(), over, seed=0)
    merged = whole.merge_and_unload(safe_merge=True)
    merged.save_pretrained(out)
    load_tokenizer(over).save_pretrained(out)
    return merged


def _base(place: str, dtype: str, bits: str) -> Model:
    local = Path(place).is_absolute() or Path(place).is_dir()
    return Model(
        path=place if local else "",
        name="" if local else place,
        dtype=dtype,
        quantization=bits,
        max_prompt_tokens=1,  # Nothing is sampled, so any context is long enough.
        max_completion_tokens=1,
    )


def _check(adapter: Path, out: Path) -> None:
    if not is_adapter(str(adapter)):
        raise InputError(
            InputProblem("prepare.path", "no adapter is there", str(adapter), "a folder with adapter_config.json")
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(InputProblem("prepare.output", "holds something", str(out), "a new or empty folder"))
