"""A rough plan of the hours of a run on a named GPU, from the peak rates of data sheets.

Sampling reads all weights and the cache once for each token of a batch, or computes its products, or starts its kernels, whichever
takes longest. An update computes 6 products for each parameter and token if all weights are trained, 4 under an adapter, 2 more
with gradient checkpointing, and 2 for each further model that scores the tokens, such as a reference or a teacher (Kaplan et al.
2020, arXiv 2001.08361, appendix B; Chen et al. 2016, arXiv 1604.06174). Verification is left out: it runs on the CPU.
"""

from dataclasses import dataclass
from math import ceil

from rlvr_exp.config.algorithm import SFT, ReinforcementLearning
from rlvr_exp.config.run import planned
from rlvr_exp.config.schema import Config, measures, reads
from rlvr_exp.launch.preflight import PRACTICE, measured_tasks, splits_of
from rlvr_exp.memory import counts
from rlvr_exp.memory.reading import workload_of
from rlvr_exp.memory.workload import Workload

PEAKS = {
    "t4": (65, 8, 320),
    "v100_16gb": (125, 16, 900),
    "v100_32gb": (125, 16, 900),
    "rtx3090": (71, 36, 936),
    "rtx4090": (165, 83, 1008),
    "rtx5090": (209, 105, 1792),
    "a10g": (70, 31, 600),
    "l4": (121, 30, 300),
    "l40s": (362, 92, 864),
    "rtx_a6000": (155, 39, 768),
    "a100_40gb": (312, 19, 1555),
    "a100_80gb": (312, 19, 2039),
    "h100_80gb": (989, 67, 3350),
    "h200": (989, 67, 4800),
    "b200": (2250, 80, 8000),
}
"""TFLOPS in 16 bits with float32 sums and without sparsity, TFLOPS in float32 (no TF32), and GB/s of memory, from NVIDIA's data sheets."""
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
    """The plan of a stage that trains or measures one policy of a known shape on devices of a known name; None for every other.

    Raises:
        ValueError: a config.json cannot be read.
    """
    algorithm = config.algorithm if reads(config, "optimizer") else None
    alone = config.benchmark is None and (algorithm is not None or measures(config.stage))
    workload = workload_of(config) if alone and config.parallel.device in PEAKS else None
    if workload is None or workload.roles > 1 or workload.served:
        return None
    measuring = _drawing(
        config,
        workload,
        ceil(_measured(config) / config.parallel.world),
        config.evaluation.samples,
        config.evaluation.batch_size,
    )
    sampling = updates = 0.0
    if isinstance(algorithm, ReinforcementLearning):
        answers = workload.share * workload.group
        parts = getattr(algorithm, "minibatches", 1)
        uses = getattr(algorithm, "iterations", 1) * parts
        at_once = algorithm.rollout_batch_size or config.evaluation.batch_size
        sampling = algorithm.max_steps / uses * _drawing(config, workload, answers, workload.group, at_once)
        tokens = workload.share * workload.prompt + answers * workload.completion * FILLED
        updates = _updating(config, workload, tokens / parts)
    elif isinstance(algorithm, SFT):
        updates = _updating(config, workload, workload.share * (workload.prompt + workload.completion) * FILLED)
        if (play := config.self_play) is not None and (splits := splits_of(config)) is not None:
            tasks = play.tasks or splits.sizes.get(PRACTICE) or splits.sizes.get("train", 0)
            answers = ceil(tasks * (play.samples + play.refine) / config.parallel.world)
            sampling = play.rounds * _drawing(config, workload, answers, play.samples, config.evaluation.batch_size)
    return Hours(sampling / 3600, updates / 3600, measuring / 3600)


def _measured(config: Config) -> int:
    """Completions of all measurements."""
    wanted, splits = config.evaluation, splits_of(config)
    tasks = measured_tasks(config, splits.sizes) if splits is not None else wanted.tasks
    if not reads(config, "optimizer"):
        return tasks * (wanted.samples + wanted.greedy)
    times = 1 if config.model.from_scratch else 2
    measured, select = times * tasks * (wanted.samples + wanted.greedy), planned(config)
    if select.every_steps:
        measured += config.algorithm.max_steps // select.every_steps * select.tasks * (select.samples + wanted.greedy)
    return measured


def _updating(config: Config, workload: Workload, tokens: float) -> float:
    """Seconds of all updates, each of so many tokens on a device."""
    algorithm, scoring = config.algorithm, 2 * workload.shape.parameters
    passes = 2 if workload.adapter else 3
    operations = workload.decoders * (passes + workload.checkpointing) * scoring
    operations += (workload.reference + workload.average) * scoring
    operations += 2 * workload.teacher.shape.parameters if workload.teacher else 0
    computed = tokens * operations / _flops(config, workload)
    started = ceil(tokens / algorithm.max_tokens_per_device) * workload.shape.layers * LAYER_S * operations / scoring
    return float(algorithm.max_steps * max(computed, started))


def _flops(config: Config, workload: Workload) -> float:
    """Operations in a second."""
    return PEAKS[config.parallel.device][workload.dtype == "float32"] * 1e12 * REACHED


def _drawing(config: Config, workload: Workload, answers: int, group: int, at_once: int) -> float:
    """Seconds in which a device samples so many completions, of which a group shares its prompt."""
    shape, bandwidth = workload.shape, PEAKS[config.parallel.device][2] * 1e9 * REACHED
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
