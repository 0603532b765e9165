"""Merges an adapter and its base into a full checkpoint.

    python -m rlvr_exp.models.merge ADAPTER OUT [--base BASE] [--dtype float32] [--stored]

An adapter trained over a quantized base learned with weights that differ from the stored weights. By default it is
merged into those, dequantized: the result answers as the policy that was trained and measured. `--stored` takes the
weights as stored. Nothing is merged into quantized weights, where most of an update would be rounded away; the same
holds in part for bfloat16, so that the type is that of training unless another is named.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from transformers import PreTrainedModel

from rlvr_exp.config.adapter import Adapter, is_adapter, recorded, recorded_base
from rlvr_exp.config.model import Model
from rlvr_exp.config.needs import weights_missing
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.models.adapters import with_adapter
from rlvr_exp.models.policy import load_policy, load_tokenizer


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
    return Model(path=place if local else "", name="" if local else place, dtype=dtype, quantization=bits)


def _check(adapter: Path, out: Path) -> None:
    if not is_adapter(str(adapter)):
        raise InputError(
            InputProblem("ADAPTER", "no adapter is there", str(adapter), "a folder with adapter_config.json")
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(InputProblem("OUT", "holds something", str(out), "a new or empty folder"))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m rlvr_exp.models.merge", description=__doc__.splitlines()[0])
    parser.add_argument("adapter", type=Path, help="folder of an adapter, such as RUN/checkpoints/best")
    parser.add_argument("out", type=Path, help="new folder")
    parser.add_argument("--base", default="", help="where the base is now; default: where the adapter says")
    parser.add_argument(
        "--dtype", default="", choices=("auto", "float32", "bfloat16"), help="default: that of training"
    )
    parser.add_argument(
        "--stored", action="store_true", help="the base's weights as stored, not as quantized in training"
    )
    given = parser.parse_args(arguments)
    try:
        merge(given.adapter, given.out, given.base, given.dtype, given.stored)
    except InputError as fault:
        print(fault, file=sys.stderr)
        return fault.exit_code
    print(f"merged into {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
