"""Small ARC data for the tests: Hypothesis strategies for grids and tasks, and writers of every layout."""

import json
import lzma
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from rlvr_exp.domains.arc.puzzle import ArcPuzzle, Grid

IDS = st.text(st.sampled_from("abcdef0123456789_"), min_size=1, max_size=8)


@st.composite
def grids(draw: st.DrawFn, most: int = 6) -> Grid:
    width = draw(st.integers(1, most))
    row = st.tuples(*[st.integers(0, 9)] * width)
    return tuple(draw(st.lists(row, min_size=1, max_size=most)))


def puzzles(most: int = 5) -> st.SearchStrategy[ArcPuzzle]:
    grid = grids(most)
    pairs = st.lists(st.tuples(grid, grid), min_size=1, max_size=3).map(tuple)
    return st.builds(ArcPuzzle, pairs, st.lists(grid, min_size=1, max_size=2).map(tuple))


def json_pairs(most: int = 4) -> st.SearchStrategy[list[dict[str, Any]]]:
    lists = grids(most).map(lambda grid: [list(row) for row in grid])
    return st.lists(st.fixed_dictionaries({"input": lists, "output": lists}), min_size=1, max_size=3)


def json_tasks() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"train": json_pairs(), "test": json_pairs()})


def simple(colour: int = 1, width: int = 2) -> dict[str, Any]:
    """A task that mirrors; no two colours or widths share a pair."""
    wide = [colour] * (width - 1)
    pair = {"input": [[*wide, 0]], "output": [[0, *wide]]}
    asked = {"input": [[*wide, 0], [0, *wide]], "output": [[0, *wide], [*wide, 0]]}
    return {"train": [pair], "test": [asked]}


def many(count: int) -> dict[str, dict[str, Any]]:
    """Tasks of which no two share a pair."""
    return {f"t{number:03}": simple(1 + number % 9, 2 + number // 9) for number in range(count)}


def write_folder(root: Path, tasks: dict[str, Any]) -> None:
    for name, task in tasks.items():
        file = root / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(task))


def write_two_files(root: Path, tasks: dict[str, Any], stem: str = "arc_training") -> None:
    root.mkdir(parents=True, exist_ok=True)
    asked = {k: {**v, "test": [{"input": pair["input"]} for pair in v["test"]]} for k, v in tasks.items()}
    solved = {k: [pair["output"] for pair in v["test"]] for k, v in tasks.items()}
    (root / f"{stem}_challenges.json").write_text(json.dumps(asked))
    (root / f"{stem}_solutions.json").write_text(json.dumps(solved))


def write_rows(root: Path, tasks: dict[str, Any], split: str = "train", **more: Any) -> None:
    root.mkdir(parents=True, exist_ok=True)
    rows = [json.dumps({"id": name, **more, **task}) for name, task in tasks.items()]
    (root / f"{split}.jsonl.xz").write_bytes(lzma.compress("\n".join(rows).encode()))
