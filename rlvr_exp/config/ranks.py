"""Combinations that several training processes rule out: stages, ways to run, and optimizers."""

from collections.abc import Iterator

from rlvr_exp.config.parallel import SHARDING
from rlvr_exp.config.schema import Config
from rlvr_exp.config.stages import STAGES, reads
from rlvr_exp.core.errors import InputProblem

WHOLE_MATRICES = ("rlvr_exp.algorithms.optimizers.Muon", "rlvr_exp.algorithms.optimizers.Adafactor")
"""Optimizers whose step depends on complete matrices; ZeRO gives an optimizer flat pieces of all parameters."""


def of_ranks(config: Config) -> Iterator[InputProblem]:
    """Combinations with the `parallel` node that cannot work."""
    parallel = config.parallel
    if not parallel.distributed:
        return
    if not STAGES[config.stage].shared:
        others = ", ".join(name for name, stage in STAGES.items() if stage.shared)
        what = f"+stage={config.stage} runs in one process; those that share their work: {others}"
        yield InputProblem("parallel.strategy", what, parallel.strategy, "single", "", "parallel=single")
        return
    if config.run.inline:
        remedy = "parallel=single, or drop run.inline"
        yield InputProblem("run.inline", "several processes cannot run in this one", "true", "false", "", remedy)
    if parallel.nodes > 1 and not config.run.dir:
        remedy = "run.dir=DIR on a file system that all machines see"
        yield InputProblem("run.dir", "several machines need one run directory", "nothing", "", "", remedy)
    if config.model.device_map:
        what = "spreads the layers of one process over devices, which each process of several has one of"
        yield InputProblem(
            "model.device_map", what, config.model.device_map, "empty", "", "drop it, or parallel=single"
        )
    if reads(config, "optimizer") and parallel.strategy in SHARDING:
        yield from _under_zero(config)


def _under_zero(config: Config) -> Iterator[InputProblem]:
    strategy, target = config.parallel.strategy, getattr(config.optimizer, "_target_", "")
    if target in WHOLE_MATRICES:
        what = f"needs full matrices, which {strategy} cuts into flat pieces"
        yield InputProblem("optimizer", what, target.rpartition(".")[2], "", "", "optimizer=adamw, or parallel=ddp")
    own = {f"roles.{name}.": role.optimizer for name, role in config.roles.items() if role.optimizer is not None}
    for where, optimizer in {"": config.optimizer, **own}.items():
        if optimizer.gradient_cosine:
            what, remedy = f"needs whole gradients, which {strategy} cuts into pieces", "parallel=ddp, or drop it"
            yield InputProblem(f"{where}optimizer.gradient_cosine", what, "true", "false", "", remedy)
    if strategy == "zero3" and config.model.quantization != "none":
        what = "weights in few bits cannot be spread over processes by DeepSpeed"
        yield InputProblem("model.quantization", what, config.model.quantization, "none", "", "parallel=zero2")
