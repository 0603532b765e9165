"""A benchmark that is a function, as +stage=benchmark calls it, in this process."""

from pathlib import Path
from typing import Any

from hydra.utils import get_method

from rlvr_exp.config.compose import compose
from rlvr_exp.records.context import RunContext


def measured(directory: Path, name: str, *words: str) -> tuple[str, dict[str, Any]]:
    """The report and counts of the benchmark of that name; `directory` is the run's."""
    config = compose(["+stage=benchmark", f"benchmark={name}", *words]).config
    return get_method(config.benchmark._target_)(config, RunContext(directory, lambda event: None))
