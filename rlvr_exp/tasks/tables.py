"""Rows of tables: Parquet files and the folders of Hugging Face `datasets` (`save_to_disk`). Knows no row's keys.

A file is named after its split where its name begins with one (`train.jsonl`, `validation-00000-of-00001.parquet`), or
where a folder of `save_to_disk` names it.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem

PARQUET, ARROW = TABLES = (".parquet", ".arrow")
SPLITS = ("train", "practice", "dev", "test", "test_unseen", "prompt")
OTHER_NAMES = {"validation": "dev", "valid": "dev", "val": "dev", "evaluation": "test"}
"""Names that other sets give to a split."""
_NAME = re.compile(r"(\w+?)(?:-\d+-of-\d+)?\.(?:jsonl?|parquet)\b")
_STATE, _PARTS = "state.json", "dataset_dict.json"


def split_of_file(file: Path) -> str:
    """The split that a file is named after; empty where there is none."""
    if file.suffix == ARROW:
        name = file.parent.name if (file.parent.parent / _PARTS).is_file() else ""
    else:
        match = _NAME.fullmatch(file.name.removesuffix(".gz").removesuffix(".xz"))
        name = match[1] if match else ""
    name = OTHER_NAMES.get(name, name)
    return name if name in SPLITS else ""


def is_table(file: Path) -> bool:
    """Whether a file is a Parquet file, or a part of a data set as `save_to_disk` writes it; its caches are none."""
    is_part = file.suffix == ARROW and file.name.startswith("data-") and (file.parent / _STATE).is_file()
    return file.suffix == PARQUET or is_part


def table_rows(file: Path) -> Iterator[dict[str, Any]]:
    """The rows of a table, without keys that are null. Raises InputError where it is damaged."""
    import pyarrow  # Not at the top: few runs read a table.
    from pyarrow import ipc, parquet

    try:
        with pyarrow.memory_map(str(file)) as source:
            batches = parquet.ParquetFile(source).iter_batches() if file.suffix == PARQUET else ipc.open_stream(source)
            for batch in batches:
                for row in batch.to_pylist():
                    yield {key: value for key, value in row.items() if value is not None}
    except (OSError, pyarrow.ArrowException) as fault:
        raise InputError(
            InputProblem(str(file), "cannot be read as a table", str(fault)[:200], remedy="fetch the file again")
        ) from fault
