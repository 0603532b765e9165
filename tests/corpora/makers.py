"""A maker as +stage=prepare calls it, in this process."""

from pathlib import Path

from hydra.utils import get_method

from rlvr_exp.config.compose import compose
from rlvr_exp.records.context import RunContext


def made(directory: Path, name: str, *words: str) -> tuple[str, dict[str, int]]:
    """The report and counts of the maker of that name; `directory` is the run's."""
    config = compose(["+stage=prepare", f"prepare={name}", *words]).config
    directory.mkdir(exist_ok=True)
    return get_method(config.prepare._target_)(config, RunContext(directory, lambda event: None))
