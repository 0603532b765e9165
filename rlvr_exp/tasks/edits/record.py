"""One edit of a program, whatever set it comes from: the row that ingestion writes and the edits domain reads."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class NormalizedRecord:
    """An instruction, a text before it and, where it is known, the text after it."""

    id: str
    """Unique within its source."""
    source: str
    """Name of the set that it comes from."""
    language: str
    """As rlvr_exp.tasks.edits.languages names it."""
    instruction: str
    before: str
    after: str | None
    """None: a task without an answer, for teachers."""
    tests: str = ""
    """Source of tests of the edited text, by pytest; empty where there are none."""
    licence: str = ""
    """SPDX identifier; empty where the set names none."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What its set says besides, in values of JSON."""

    def to_row(self) -> dict[str, Any]:
        """A row of JSONL, with every field."""
        return asdict(self)
