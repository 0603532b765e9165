"""Small tasks in every format, as rows of a file."""

from typing import Any

GRIDS = ([[1, 2], [3, 4]], [[5, 0], [0, 5]], [[7, 7], [1, 2]], [[0, 3], [3, 0]], [[2, 4], [6, 8]], [[9, 1], [1, 9]])


def puzzle(name: str | int, number: int = 0) -> dict[str, Any]:
    """Turn rows around; which grids are shown depends on `number`."""
    first, second, third = (GRIDS[(number + step) % len(GRIDS)] for step in range(3))
    pairs = [{"input": grid, "output": [row[::-1] for row in grid]} for grid in (first, second, third)]
    return {"id": name, "train": pairs[:2], "test": pairs[2:]}


ADD = {"id": "add", "entry_point": "add", "cases": [{"args": [2, 3], "expected": 5}, {"args": [0, 1], "expected": 1}]}
NEXT = {"id": "next", "cases": [{"stdin": "4\n", "expected_stdout": "5\n"}]}
TESTED = {"id": "tested", "tests": "from solution import add\n\ndef test_add():\n    assert add(2, 3) == 5\n"}
PROVED = {"id": "proved", "program": "method M() returns (x: int)\n  ensures x > 0\n{ }"}
EDITED = {"id": "edited", "language": "python", "before": "print(a)\n", "after": "log(a)\n"}
BY_FORMAT = {"python_io": ADD, "pytest": TESTED, "dafny": PROVED, "ast_grep": EDITED, "arc": puzzle("arc")}
