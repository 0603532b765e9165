"""ARC puzzles, once loaded: plain frozen data. Other modules read files and word prompts."""

from dataclasses import dataclass

from rlvr_exp.tasks.arc.grid import Grid, to_lists
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem

ENTRY_POINT = "solve"


@dataclass(frozen=True)
class Pair:
    """One input and its output; `None` where a data set keeps the output of a test hidden."""

    input: Grid
    output: Grid | None


@dataclass(frozen=True)
class ArcPuzzle:
    """What a prompt shows: every train pair, and the inputs of the tests."""

    train: tuple[tuple[Grid, Grid], ...]
    test: tuple[Grid, ...]
    hidden: bool = False
    """Whether a test output is not given: candidates can be judged on the train pairs alone."""


@dataclass(frozen=True)
class ArcRecord:
    """One task as read from a file."""

    id: str
    origin: str
    """The id with folder or file before it, unique within one load."""
    family: str
    split: str
    """The split by the layout: `training`, `evaluation`, a split's name, or nothing."""
    train: tuple[Pair, ...]
    test: tuple[Pair, ...]
    gold: str | None = None
    source: str = ""
    """The set that it comes from, where it was read from a file."""
    names_family: bool = True
    """Whether its file names the family."""

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return self.train + self.test

    @property
    def hidden(self) -> bool:
        return any(pair.output is None for pair in self.test)

    def puzzle(self) -> ArcPuzzle:
        shown = tuple((pair.input, pair.output) for pair in self.train if pair.output is not None)
        return ArcPuzzle(shown, tuple(pair.input for pair in self.test), self.hidden)

    def problem(self) -> PythonProblem:
        """The train pairs then the test pairs as cases; a hidden test gives no case."""
        known = [(pair.input, pair.output) for pair in self.pairs if pair.output is not None]
        return PythonProblem(ENTRY_POINT, tuple(Case((to_lists(given),), to_lists(wanted)) for given, wanted in known))
