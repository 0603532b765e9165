"""The levels of isolation, and the state of one worker: `isolate` sets it up, `confine` applies it to each candidate.

Standard library only.
"""

from dataclasses import dataclass, field

from rlvr_exp.sandbox.isolation import landlock
from rlvr_exp.sandbox.isolation.filter import Filter
from rlvr_exp.sandbox.isolation.process_tree import Processes
from rlvr_exp.sandbox.isolation.scratch import Folder, Mounted

LEVELS = ("strict", "namespaces", "user", "process")
"""All levels, strongest first."""
AUTO = LEVELS[1:]
"""The levels tried where none is named: strict costs time for every candidate, and is used on request."""
MOUNTING = LEVELS[:2]
"""The levels with namespaces: with their own root and process table."""
OPEN_AT = {
    "strict": "nothing",
    "namespaces": "candidates of one worker share its namespaces, one after another",
    "user": (
        "candidates share the machine's process table and network names, may learn which files exist, and may fill the "
        "disk of the temporary folder"
    ),
    "process": (
        "candidates have the run's user id and share the machine's process table, may learn which files exist, and may "
        "fill the disk of the temporary folder"
    ),
}
"""What a level does not isolate, in words."""


@dataclass
class Jail:
    """How a worker's candidates are confined. `uid` is None where they keep the worker's user id."""

    level: str
    uid: int | None
    processes: int
    """How many processes a candidate may start besides its own."""
    facts: dict[str, bool] = field(default_factory=dict)
    parent: str = ""
    """Folder on disk that holds the scratch, where nothing can be mounted."""
    lock: int | None = None
    packages: bool = False
    """Whether the installed packages are visible."""
    base_bytes: int = 0
    base_data: int = 0
    """Initial address space of a fork, and its private writable part; limits count from there."""
    filter: Filter | None = None
    rules: tuple[landlock.Rules | None, ...] = (None, None)
    """The rules for a single candidate, and for a pair."""
    scratch: tuple[Mounted | Folder, ...] = ()
    """The folders of a single candidate, and of a pair."""
    tree: Processes | None = None
    own_pids: int | None = None
    """The zygote's pid namespace, to return to; only where each candidate gets its own."""

    @property
    def owns_pids(self) -> bool:
        """Whether the zygote is the first process of a pid namespace: one kill ends everything else in it."""
        return self.level in MOUNTING
