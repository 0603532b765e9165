"""Whether the stores of solutions that a command names can be used: before anything starts."""

from collections.abc import Iterator
from pathlib import Path

from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.solutions.store import SolutionStore
from rlvr_exp.solutions.summary import keeping_of


def store_problems(config: Config) -> Iterator[InputProblem]:
    """Files that are no stores, of another version, or made to keep otherwise; nothing of what is not there."""
    options = config.solutions
    if options is None:
        return
    keeping = keeping_of(options) if options.action in ("import", "add", "merge") else None
    stores = [("path", options.path, keeping)]
    stores += [("input", options.input, None)] if options.action == "merge" else []
    for name, path, wanted in stores:
        if path and Path(path).exists():
            try:
                SolutionStore(Path(path), wanted, read_only=True, option=f"solutions.{name}").close()
            except InputError as fault:
                yield from fault.problems
