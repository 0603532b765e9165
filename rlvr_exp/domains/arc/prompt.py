"""The wording of ARC prompts, its inverse, and a prompt's picture in a report. A grid is never cut to make a prompt fit.

`bare` is for small models trained here: per train pair `I`, the input's rows, `O`, the output's rows; per test `T` and
its rows; then `P`, after which the program starts. `instruct` says the same in words, for instruction-tuned models.
Solved examples (shots) precede the puzzle, each as its own prompt followed by its program.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.domains.arc.options import Prompt as Wording
from rlvr_exp.domains.arc.puzzle import ENTRY_POINT, ArcPuzzle, Grid, from_text, to_text
from rlvr_exp.tasks.completion import fenced

HEAD = (
    "One rule turns every input grid below into its output grid. Each cell is a colour, an integer from 0 to 9.\n"
    "Find the rule from the pairs.\n"
)
ASK = (
    f"Write one Python function `{ENTRY_POINT}(grid)` that applies the rule. It takes a grid as a list of rows, each a"
    " list of\nintegers, and returns the output grid in the same form. It must be right for every pair and test input"
    " above.\nAnswer with the function in one code block:\n"
    f"```python\ndef {ENTRY_POINT}(grid):\n    ...\n```\n"
)


def write(puzzle: ArcPuzzle, options: Wording, shots: Sequence[tuple[ArcPuzzle, str]] = ()) -> str:
    """The full prompt: each shot (a puzzle and its program), then the puzzle."""
    one, shot = _WRITERS[options.style]
    solved = [shot.format(one(shown, options.grid), answer_of(gold.strip("\n"), options)) for shown, gold in shots]
    return "".join(solved) + one(puzzle, options.grid)


def answer_of(gold: str, options: Wording) -> str:
    """The reference completion: the program, in a code block unless the style is bare."""
    return gold if options.style == "bare" else fenced(gold, "python")


def retry(
    puzzle: ArcPuzzle, options: Wording, shots: Sequence[tuple[ArcPuzzle, str]], previous: str, feedback: str
) -> str:
    """The bare prompt after a program that did not pass: that program precedes the puzzle like a shot, with
    the verifier's log of it as comments."""
    comments = "".join(f"# {line}\n" for line in feedback.splitlines() if line.strip())
    tried = f"{previous.strip(chr(10))}\n{comments}".strip("\n")
    return write(puzzle, options, [*shots, (puzzle, tried)])


def read(prompt: str, options: Wording) -> ArcPuzzle:
    """The puzzle of a prompt from `write`, without shots: the wording loses nothing of it.

    Raises:
        InputError: the text is no such prompt.
    """
    start, marks = _READERS[options.style]
    blocks = marks.findall(prompt[max(prompt.rfind(start), 0) :])
    grids = [(mark, from_text(text, options.grid, f"prompt, grid {n}")) for n, (mark, text) in enumerate(blocks)]
    kinds = "".join(mark[0] for mark, _ in grids)
    if not re.fullmatch("(IO)+T+", kinds):
        raise InputError(
            InputProblem("prompt", "not a puzzle", got=kinds, allowed="pairs of input and output, then tests")
        )
    train = tuple((grids[n][1], grids[n + 1][1]) for n in range(0, kinds.index("T"), 2))
    return ArcPuzzle(train, tuple(grid for mark, grid in grids if mark[0] == "T"))


def _bare(puzzle: ArcPuzzle, style: str) -> str:
    pairs = [f"I\n{to_text(given, style)}\nO\n{to_text(wanted, style)}\n" for given, wanted in puzzle.train]
    return "".join(pairs) + "".join(f"T\n{to_text(grid, style)}\n" for grid in puzzle.test) + "P\n"


def _instruct(puzzle: ArcPuzzle, style: str) -> str:
    pairs = [
        f"Pair {number}\nInput:\n{to_text(given, style)}\nOutput:\n{to_text(wanted, style)}\n"
        for number, (given, wanted) in enumerate(puzzle.train, 1)
    ]
    tests = [f"Test input {number}:\n{to_text(grid, style)}\n" for number, grid in enumerate(puzzle.test, 1)]
    return "\n".join([HEAD, *pairs, *tests, ASK])


_GRID_LINES = r"((?:[\d\[][^\n]*\n)*[\d\[][^\n]*)"
_WRITERS = {
    "bare": (_bare, "{}{}\n\n"),
    "instruct": (_instruct, "Here is a solved example.\n\n{}\n{}\n\n"),
}
STYLES = tuple(_WRITERS)
_READERS = {
    "bare": ("\n\nI\n", re.compile(r"^([IOT])\n" + _GRID_LINES + "$", re.MULTILINE)),
    "instruct": (HEAD, re.compile(r"^(Input|Output|Test input \d+):\n" + _GRID_LINES + "$", re.MULTILINE)),
}


MOST_CELLS = 1200
"""Most cells of a puzzle that is drawn. A larger puzzle stays text, so that the page stays small."""


def puzzle_picture(prompt: str, data: Mapping[str, Any]) -> str:
    """The prompt's grids as inline SVG; '' if the prompt is no puzzle, or the puzzle is too large.

    Args:
        data: the run's `data` node.
    """
    try:
        puzzle = read(prompt, Wording(**(data.get("prompt") or {})))
    except InputError:
        return ""
    shown = [grid for pair in puzzle.train for grid in pair] + list(puzzle.test)
    if sum(len(grid) * len(grid[0]) for grid in shown) > MOST_CELLS:
        return ""
    pairs = [f'<span class="pair">{_svg(given)}<i>&rarr;</i>{_svg(wanted)}</span>' for given, wanted in puzzle.train]
    tests = [f'<span class="pair">{_svg(given)}<i>&rarr; ?</i></span>' for given in puzzle.test]
    return f'<div class="grids">{"".join(pairs + tests)}</div>'


def _svg(grid: Grid) -> str:
    """A path for each colour, with a gap of a twelfth of a cell between cells."""
    high, wide = len(grid), len(grid[0])
    cell = max(4, min(14, 112 // max(high, wide)))
    cells = [(value, f"M{x} {y}h.92v.92h-.92z") for y, row in enumerate(grid) for x, value in enumerate(row)]
    paths = "".join(
        f'<path class="g{color}" d="{"".join(path for value, path in cells if value == color)}"/>'
        for color in sorted({value for value, _ in cells})
    )
    return f'<svg class="grid" width="{wide * cell}" height="{high * cell}" viewBox="0 0 {wide} {high}">{paths}</svg>'
