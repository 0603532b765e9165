"""A rough plan of the hours of a run on a named GPU, from the peak rates of data sheets.

Sampling reads all weights and the cache once for each token of a batch, or computes its products, or starts its kernels, whichever
takes longest. An update computes 6 products for each parameter and token if all weights are trained, 4 under an adapter, and 2 more with gradient
checkpointing (Kaplan et al. 2020, arXiv 2001.08361, appendix B; Chen et al. 2016, arXiv 1604.06174). Verification is left out: it runs on the CPU beside.
"""

from dataclasses import dataclass
from math import ceil

from rlvr_exp.config.algorithm import SFT, ReinforcementLearning
from rlvr_exp.config.run import planned
from rlvr_exp.config.schema import Config, reads
from rlvr_exp.memory import counts
from rlvr_exp.memory.reading import workload_of
from rlvr_exp.memory.workload import Workload

PEAKS = {
    "t4": (65, 320),
    "v100_16gb": (125, 900),
    "v100_32gb": (125, 900),
    "rtx3090": (71, 936),
    "rtx4090": (165, 1008),
    "rtx5090": (209, 1792),
    "a10g": (70, 600),
    "l4": (121, 300),
    "l40s": (362, 864),
    "rtx_a6000": (155, 768),
    "a100_40gb": (312, 1555),
    "a100_80gb": (312, 2039),
    "h100_80gb": (989, 3350),
    "h200": (989, 4800),
    "b200": (2250, 8000),
}
"""TFLOPS in 16 bits with float32 sums, without sparsity, and GB/s of memory, from NVIDIA's data sheets."""
REACHED = 0.4
"""Assumed share of both peaks."""
FILLED = 0.5
"""Assumed mean length of a completion, as a share of its limit."""
LAYER_S = 2e-4
"""Assumed seconds to start the kernels of a layer."""


@dataclass(frozen=True)
class Hours:
    """Hours by part of a run, each on all devices together."""

    sampling: float
    updates: float
    measurements: float

    @property
    def total(self) -> float:
        return self.sampling + self.updates + self.measurements

    def __str__(self) -> str:
        return (
            f"about {duration(self.total)} (sampling {duration(self.sampling)}, updates {duration(self.updates)}, measurements "
            f"{duration(self.measurements)}), if {REACHED:.0%} of the device's peak rates are reached and completions fill {FILLED:.0%} of "
            "their limit; without verification; not measured"
        )


def duration(hours: float) -> str:
    """Two figures, in hours, minutes or seconds."""
    unit, size = next((one for one in (("h", 1.0), ("min", 1 / 60)) if hours >= one[1]), ("s", 1 / 3600))
    return f"{hours / size:.0f} {unit}" if hours >= 10 * size else f"{hours / size:.2g} {unit}"


def planned_hours(config: Config) -> Hours | None:
    """The plan of a stage that trains one policy of a known shape on devices of a known name; None for every other.

    Raises:
        ValueError: a config.json cannot be read.
    """
    workload = workload_of(config)
    if workload is None:
        return None
    algorithm = config.algorithm if reads(config, "optimizer") else None
    if config.parallel.device not in PEAKS or algorithm is None or workload.roles > 1 or config.benchmark is not None:
        return None
    steps, world, wanted = algorithm.max_steps, config.parallel.world, config.evaluation
    times = 1 if config.model.from_scratch else 2
    measured = times * wanted.tasks * (wanted.samples + wanted.greedy)
    select = planned(config)
    if select.every_steps:
        measured += steps // select.every_steps * select.tasks * (select.samples + wanted.greedy)
    measuring = _drawing(config, workload, ceil(measured / world), wanted.samples, wanted.batch_size)
    if isinstance(algorithm, ReinforcementLearning):
        answers = workload.share * workload.group
        uses = getattr(algorithm, "iterations", 1) * getattr(algorithm, "minibatches", 1)
        tokens = workload.share * workload.prompt + answers * workload.completion * FILLED
        at_once = algorithm.rollout_batch_size or wanted.batch_size
        sampling = steps / uses * _drawing(config, workload, answers, workload.group, at_once)
    elif isinstance(algorithm, SFT):
        tokens = workload.share * (workload.prompt + workload.completion) * FILLED
        sampling = 0.0
    else:
        return None
    computed = tokens * _products(workload) * workload.shape.parameters / _flops(config, workload)
    passes = ceil(tokens / algorithm.max_tokens_per_device)
    updates = steps * max(computed, passes * workload.shape.layers * LAYER_S * _products(workload) / 2)
    return Hours(sampling / 3600, updates / 3600, measuring / 3600)


def _products(workload: Workload) -> int:
    """Floating-point operations for each parameter and token of an update."""
    return 2 * ((2 if workload.adapter else 3) + workload.checkpointing + workload.reference)


def _flops(config: Config, workload: Workload) -> float:
    """Operations in a second. float32 is multiplied as TF32, at half of the rate."""
    return PEAKS[config.parallel.device][0] * 1e12 * REACHED / (2 if workload.dtype == "float32" else 1)


def _drawing(config: Config, workload: Workload, answers: int, group: int, at_once: int) -> float:
    """Seconds in which a device samples so many completions, of which a group shares its prompt."""
    shape, bandwidth = workload.shape, PEAKS[config.parallel.device][1] * 1e9 * REACHED
    rounds = ceil(answers / at_once)
    rows = answers / max(1, rounds)
    width = 2 if workload.quantization else workload.width
    # Weights of few bits are written out in 16 bits for each pass.
    read = counts.weights(workload) + (4 * shape.parameters if workload.quantization else 0)
    cached = 2 * shape.layers * shape.kv_heads * shape.head_dim * width
    # On average half of the rows are still being drawn, each half as long as it can be.
    cache = rows * FILLED * (workload.prompt / group + workload.completion * FILLED) * cached
    computed = 2 * shape.parameters * rows * FILLED
    token = max(shape.layers * LAYER_S, (read + cache) / bandwidth, computed / _flops(config, workload))
    prompts = 2 * shape.parameters * workload.prompt * rows / group / _flops(config, workload)
    return rounds * (prompts + workload.completion * token)
