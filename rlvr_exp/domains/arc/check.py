"""Checks ARC data before a run: loads every task, words it in every prompt and grid style, reads each prompt back, and
counts."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.domains.arc import prompt as wording
from rlvr_exp.domains.arc.grid import STYLES as GRID_STYLES
from rlvr_exp.domains.arc.grid import Grid
from rlvr_exp.domains.arc.puzzle import ArcPuzzle
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.base import Task


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """The counts. Raises InputError for faults of the data, GuardStop where a prompt does not read back."""
    path = config.prepare.path
    splits = Arc(path).splits()
    tasks = [task for members in splits.values() for task in members]
    lost = [task.id for task in tasks if not reads_back(task.inputs)]
    counts = {name: len(members) for name, members in splits.items()}
    text = report(path or "embedded", counts, tasks, lost)
    if lost:
        raise GuardStop(text)
    return text, {f"tasks/{name}": count for name, count in counts.items()}


def reads_back(puzzle: ArcPuzzle) -> bool:
    """Whether every wording of a puzzle, read back, gives its grids."""
    for style in wording.STYLES:
        for grid in GRID_STYLES:
            options = wording.Wording(style, grid)
            try:
                reparsed = wording.read(wording.write(puzzle, options), options)
            except InputError:
                return False
            if (reparsed.train, reparsed.test) != (puzzle.train, puzzle.test):
                return False
    return True


def report(path: str, splits: dict[str, int], tasks: Sequence[Task], lost: Sequence[str]) -> str:
    puzzles = [task.inputs for task in tasks]
    train, test = (sum(len(getattr(puzzle, side)) for puzzle in puzzles) for side in ("train", "test"))
    grids = [grid for puzzle in puzzles for grid in _grids(puzzle)]
    hardest = sorted(task.difficulty for task in tasks)
    lines = [
        f"path: {Path(path)}",
        f"tasks: {len(tasks)} in {len({task.family for task in tasks})} families",
        "splits: " + " ".join(f"{name}={count}" for name, count in splits.items()),
        f"pairs: {train} train, {test} test",
        f"largest grid: {max(map(len, grids))} rows, {max(len(grid[0]) for grid in grids)} columns",
        f"difficulty: {hardest[0]:.2f} to {hardest[-1]:.2f}, median {hardest[len(hardest) // 2]:.2f}",
        f"prompts that do not read back: {len(lost)}" + "".join(f"\n    {name}" for name in lost[:20]),
    ]
    return "\n".join(lines)


def _grids(puzzle: ArcPuzzle) -> Iterable[Grid]:
    """Every grid that a prompt shows."""
    return [*(grid for pair in puzzle.train for grid in pair), *puzzle.test]
