"""Packed rows against padded ones: what they compute, and what stops the comparison."""

from dataclasses import replace
from pathlib import Path

import pytest
from functions import measured

from rlvr_exp.algorithms.packing import SDPA_PACKED, ModelRows, packed
from rlvr_exp.benchmarks import packing
from rlvr_exp.benchmarks.memory import required_workload
from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import GuardStop

SMALL = (
    "model.max_prompt_tokens=12",
    "model.max_completion_tokens=8",
    "algorithm.group_size=3",
    "algorithm.max_tokens_per_device=80",
    "benchmark.rounds=2",
)


def test_both_ways_are_measured_on_the_same_tokens(tmp_path: Path) -> None:
    text, metrics = measured(tmp_path, "packing", *SMALL)
    assert metrics[f"faster/{SDPA_PACKED}"] > 0 and metrics[f"memory/{SDPA_PACKED}"] > 1
    assert "completions of 2 prompts of 12 tokens" in text.splitlines()[0]


def test_padded_rows_are_cut_into_passes_of_the_same_limit() -> None:
    workload = required_workload(compose(["+stage=benchmark", "benchmark=packing", *SMALL]).config)
    samples = packing.samples_of(workload, seed=1)
    (together,) = samples.passes(SDPA_PACKED, workload.limit)
    padded = samples.passes(packing.PADDED, workload.limit)
    assert together.input_ids.numel() <= workload.limit
    assert len(padded) > 1 and all(rows.input_ids.numel() <= workload.limit for rows in padded)
    assert sum(len(rows.labels) for rows in padded) == len(together.labels) == samples.tokens


def test_a_way_that_computes_something_else_is_not_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def misplaced(*given) -> ModelRows:
        rows = packed(*given)
        return replace(rows, position_ids=rows.position_ids * 2)

    monkeypatch.setattr(packing, "packed", misplaced)
    with pytest.raises(GuardStop, match=f"{SDPA_PACKED} differs from padded rows"):
        measured(tmp_path, "packing", *SMALL)
