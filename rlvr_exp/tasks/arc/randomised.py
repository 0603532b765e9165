"""Domain randomisation of ARC (Tobin et al. 2017, arXiv:1703.06907): a task with another look and the same rule.

Every draw is of the data's seed and the task's id, so that a task looks the same in every stage and run.
"""

from collections.abc import Sequence
from dataclasses import replace

from rlvr_exp.core.seeds import stream
from rlvr_exp.tasks.arc.difficulty import score
from rlvr_exp.tasks.arc.grid import Grid, to_lists
from rlvr_exp.tasks.arc.puzzle import ArcPuzzle
from rlvr_exp.tasks.base import Task
from rlvr_exp.tasks.formats.python_io import Case


def other_colours(task: Task, seed: int) -> Task:
    """The task with the colours 1 to 9 permuted in all its grids, and 0, the background, as it was; without its program and
    its wrong ones, which may name colours."""
    order = [*range(1, 10)]
    stream(seed, "colours", task.id).shuffle(order)
    new = (0, *order)

    def changed(grid: Sequence[Sequence[int]]) -> Grid:
        return tuple(tuple(new[cell] for cell in row) for row in grid)

    puzzle, problem = task.inputs, task.problem
    train = tuple((changed(given), changed(wanted)) for given, wanted in puzzle.train)
    found = ArcPuzzle(train, tuple(map(changed, puzzle.test)), puzzle.hidden)
    cases = tuple(Case((to_lists(changed(case.args[0])),), to_lists(changed(case.expected))) for case in problem.cases)
    own = {"inputs": found, "problem": replace(problem, cases=cases), "difficulty": score(found)}
    return replace(task, **own, gold=None, negatives=())


def noisy(puzzle: ArcPuzzle, share: float, seed: int, name: str) -> ArcPuzzle:
    """The puzzle with this share of the cells of its pairs in a colour drawn from all ten; its test inputs as they were."""
    rng = stream(seed, "noise", name)

    def changed(grid: Grid) -> Grid:
        return tuple(tuple(rng.randrange(10) if rng.random() < share else cell for cell in row) for row in grid)

    return replace(puzzle, train=tuple((changed(given), changed(wanted)) for given, wanted in puzzle.train))


def grid_style(styles: Sequence[str], name: str, seed: int) -> str:
    """One of the ways of writing grids, for the task of this id."""
    return stream(seed, "grid", name).choice([*styles])
