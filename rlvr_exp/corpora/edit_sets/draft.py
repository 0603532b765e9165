"""What a reader makes of one line, before it is checked: a draft; or the reason why it makes nothing of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvr_exp.config.prepare import EditSets

UNREADABLE = "not readable"
"""A line that is no JSON object, or a file that ends in the middle."""
INCOMPLETE = "a field is missing or has another type"
NO_TRAINING = "its licence forbids training"


class Dropped(Exception):
    """A line that gives no record.

    Args:
        reason: one of few, by which lines are counted.
        detail: what is wrong with this line.
    """

    def __init__(self, reason: str, detail: str = ""):
        super().__init__(reason)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True)
class Draft:
    """A record as its set has it. The language is in the set's spelling."""

    id: str
    """Unique within its set."""
    language: str
    instruction: str
    before: str
    after: str | None
    tests: str = ""
    licence: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    """Where it comes from, where rows name it; empty: the set."""
    split: str = ""
    """The split that its set or its row demands; empty: drawn."""


@dataclass(frozen=True)
class Place:
    """Where a set is, and the options that readers read."""

    root: Path
    options: EditSets
