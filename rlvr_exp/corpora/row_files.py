"""Rows written as JSON lines."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rlvr_exp.core.files import replacing


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write every row, or no file where one of them fails; returns their number."""
    count = 0
    with replacing(path) as temporary, open(temporary, "w", encoding="ascii", newline="") as out:
        for row in rows:
            out.write(json.dumps(row, allow_nan=False) + "\n")
            count += 1
    return count
