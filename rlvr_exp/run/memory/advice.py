"""The memory block of the dry plan: the table, the first line that does not fit, and the nearest settings that do."""

from collections.abc import Iterator

from rlvr_exp.config.schema import Config
from rlvr_exp.run.memory.layout import GIB, Layout
from rlvr_exp.run.memory.reading import layout_of
from rlvr_exp.run.memory.table import estimate, table, too_large


def memory(config: Config) -> Iterator[str]:
    """The block, line by line."""
    try:
        layout = layout_of(config)
    except ValueError as fault:
        yield f"memory: unknown: {fault}"
        return
    if layout is None:
        yield "memory: unknown: no config.json of this model is here; set model.architecture.* from its public one"
        return
    device = config.parallel.device_memory_gib
    found = estimate(layout)
    yield f"memory of {_devices(layout)}: {_plan(layout)}"
    yield from table(found, device)
    over = too_large(found, device)
    if over:
        phase, line = over
        total, size = sum(found[phase].values()), found[phase][line]
        yield f"does not fit: {phase}, {total / GIB:.1f} GiB of {device:g}; its largest line is {line}, {size / GIB:.1f} GiB"


def _devices(layout: Layout) -> str:
    return f"each of {layout.processes} devices" if layout.processes > 1 else "the device"


def _plan(layout: Layout) -> str:
    stored = f"{layout.quantization} weights" if layout.quantization else layout.dtype
    learned = f"{'DoRA' if layout.adapter.dora else 'LoRA'} of rank {layout.adapter.rank}" if layout.adapter else "all weights"
    what = f"{stored}, {learned} trained" if layout.trains else stored
    return f"{layout.shape.parameters / 1e9:.2f} billion parameters in {what}, {layout.strategy}"
