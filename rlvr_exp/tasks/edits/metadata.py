"""What is known of normalized rows as a whole: the file `metadata.json` next to their splits."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rlvr_exp.core.files import write_json

METADATA = "metadata.json"


@dataclass(frozen=True)
class DatasetMetadata:
    """Where rows come from, how they were made, and how many there are."""

    sources: Mapping[str, Mapping[str, str]]
    """By set: SHA-256 of every file that was read, by its path below the set's."""
    licences: Mapping[str, int]
    """Rows by licence, as the sets name them; empty: not named."""
    languages: Mapping[str, int]
    counts: Mapping[str, Any]
    """Lines read, rows kept by split and source, lines dropped by reason."""
    options: Mapping[str, Any]
    """The options that decide the rows, and the seed."""
    versions: Mapping[str, str]
    """Versions of what decides the rows."""
    files: Mapping[str, str]
    """SHA-256 of every file of rows."""

    def write(self, folder: Path) -> None:
        """Write it into the folder of the splits."""
        write_json(folder / METADATA, asdict(self))
