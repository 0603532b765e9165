"""Micro-batches of a training batch still in use, as tensors and plain values of a checkpoint, and back."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from rlvr_exp.algorithms.packing import ModelRows, PackedLayout

Updates = list[list[dict[str, Any]]]
"""Micro-batches of each update, in order; each holds tensors by name, and its rows."""


def as_plain(updates: Updates) -> list[list[dict[str, Any]]]:
    return [[{**inputs, "rows": _plain_rows(inputs["rows"])} for inputs in passes] for passes in updates]


def from_plain(state: Sequence[Sequence[Mapping[str, Any]]]) -> Updates:
    return [[{**inputs, "rows": _rows(inputs["rows"])} for inputs in passes] for passes in state]


def _plain_rows(rows: ModelRows) -> dict[str, Any]:
    return {**vars(rows), "layout": None if rows.layout is None else asdict(rows.layout)}


def _rows(state: Mapping[str, Any]) -> ModelRows:
    made = ModelRows(**state)
    return made if made.layout is None else replace(made, layout=PackedLayout(**state["layout"]))
