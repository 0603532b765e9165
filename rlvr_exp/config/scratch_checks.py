"""What a model that is built from scratch cannot be, in this stage and on these data."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rlvr_exp.config.engine import is_server
from rlvr_exp.config.model import Model
from rlvr_exp.config.needs import EMBEDDED_MODELS
from rlvr_exp.config.roles import role_names
from rlvr_exp.config.schema import Config
from rlvr_exp.config.scratch import Scratch, scratch_shape, shape_problems
from rlvr_exp.config.stages import reads
from rlvr_exp.core.errors import InputProblem


def scratch_problems(config: Config) -> Iterator[InputProblem]:
    """Of every model of the run that is built from scratch."""
    if not reads(config, "model"):
        return
    of_roles = {f"roles.{role}.model": own.model for role, own in config.roles.items() if own.model is not None}
    for where, model in {"model": config.model, **of_roles}.items():
        if model.from_scratch and model.is_embedded and model.scratch != Scratch():
            found = (*_of_shape(model, config.algorithm), *_of_tokenizer(model.scratch, config))
            yield from (replace(one, where=f"{where}.scratch.{one.where}") for one in found)
            if reads(config, "algorithm") and (weight := getattr(config.algorithm, "kl_coef", 0)) > 0:
                what, remedy = "TRL makes no reference of a shape of its own", "algorithm.kl_coef=0"
                yield InputProblem(f"{where}.scratch", what, f"algorithm.kl_coef={weight:g}", "0", "", remedy)


def _of_shape(model: Model, algorithm: Any) -> Iterator[InputProblem]:
    embedded = json.loads((EMBEDDED_MODELS / model.embedded / "config.json").read_text(encoding="utf-8"))
    yield from shape_problems(model.scratch, embedded)
    context, longest = scratch_shape(model.scratch, embedded).context, getattr(algorithm, "max_sequence_tokens", 0)
    if longest > context:
        what, remedy = "examples may be longer than the model takes", f"algorithm.max_sequence_tokens={context}"
        yield InputProblem("context", what, f"{context}, with examples up to {longest}", "", "", remedy)


def _of_tokenizer(options: Scratch, config: Config) -> Iterator[InputProblem]:
    if not options.tokenizer:
        return
    if options.tokenizer == "grid" and not hasattr(getattr(config.data, "prompt", None), "grid"):
        what, got = "these data have no grids", str(getattr(config.data, "_target_", ""))
        yield InputProblem("tokenizer", what, f"grid, with {got}", "data=arc", "", "model.scratch.tokenizer=bpe")
    if is_server(config.engine) or config.infer is not None or len(role_names(config)) > 1:
        what = "a tokenizer is made at the start of a run that trains or evaluates one policy"
        yield InputProblem("tokenizer", what, options.tokenizer, "'' here", "", "drop it, or +stage=sft")
