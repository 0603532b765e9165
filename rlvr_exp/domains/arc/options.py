"""Options of the ARC domain: `data=arc`, `prepare=arc` and `prepare=arc_check`."""

from dataclasses import dataclass, field

from rlvr_exp.config.data import SplitData, Styled
from rlvr_exp.config.options import configures, option
from rlvr_exp.config.stage_options import Corpus, Prepare
from rlvr_exp.core.errors import InputProblem

GRIDS = ("compact", "spaced", "json")
"""Ways of writing a grid."""


LEAST_SIDES, GREATEST_SIDE = (4, 6), 15
"""Sides of a corpus' grids: all families need at least 4, some just 4 or 6, and four pairs must fit a prompt."""


@dataclass
class Prompt(Styled):
    """The wording of a task."""

    grid: str = option("compact", choices=GRIDS)
    """Way of writing a grid."""


@dataclass
class Randomise:
    """Looks of a task, drawn by its id, so that it looks the same in every prompt."""

    colours: bool = False
    """Permute the colours 1 to 9, alike in all grids of a task. Its known program is dropped, as it may name colours."""
    grids: list[str] = field(default_factory=list, metadata=option([], choices=GRIDS).metadata)
    """Ways of writing grids; each prompt uses one. Empty: data.prompt.grid."""
    noise: float = option(0.0, low=0, high=1)
    """Share of the cells of shown pairs that get a colour drawn from all ten. Answers are judged by the true pairs."""


@configures("rlvr_exp.domains.arc.tasks.Arc")
@dataclass
class Arc(SplitData):
    """Grid puzzles: embedded, or real ARC files."""

    reorder: bool = True
    """Show the pairs of a task in another order on each pass of imitation. Any pair may be the test."""
    prompt: Prompt = field(default_factory=Prompt)
    """The wording of a task."""
    randomise: Randomise = field(default_factory=Randomise)
    """Domain randomisation: other looks of a task under the same rule."""


@configures("rlvr_exp.domains.arc.generator.corpus.make")
@dataclass
class ArcCorpus(Corpus):
    """The embedded ARC corpus, or one of the same families with other sizes of grids. Equal code makes equal files."""

    sides: list[int] = field(default_factory=list)
    """Least and greatest height and width of an input, all equally likely; empty: the embedded corpus' own mixture of 2 to 5."""

    def problems(self) -> list[InputProblem]:
        low, high = LEAST_SIDES
        if not self.sides:
            return []
        if len(self.sides) == 2 and low <= self.sides[0] <= high and self.sides[0] < self.sides[1] <= GREATEST_SIDE:
            return []
        allowed = f"a number from {low} to {high}, and a greater one up to {GREATEST_SIDE}"
        return [InputProblem("sides", "not sizes of grids", str(self.sides), allowed, "", "prepare.sides=[4,8]")]


@configures("rlvr_exp.domains.arc.tasks.check")
@dataclass
class ArcCheck(Prepare):
    """Check ARC data before a run: read every prompt back, and count."""

    path: str = ""
    """Folder or file of ARC tasks; empty: the embedded corpus."""
