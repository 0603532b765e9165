"""A solution: a program for a task with its verdict, its outputs on the task's inputs, and its origin; and its JSON lines.

The behaviour of a solution is the hash of its outputs on all inputs of the task, in their order: an exact key of novelty.
This module runs no program: the caller brings the outputs as `output_hash` names them.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.solutions.syntax import Syntax, syntax_of
from rlvr_exp.tasks.rows import RowLine, lines
from rlvr_exp.verifiers.base import Verdict

Operator = Literal["sampled", "refined", "relabelled", "gold"]
OPERATORS: tuple[Operator, ...] = get_args(Operator)
_HASH = re.compile("[0-9a-f]{32}")


def output_hash(output: Any) -> str:
    """The name of a program's output on one input. None stands for no output, as after an error.

    A list equals a tuple; 1, 1.0 and true differ. A value without a canonical form, such as a set or a number of thousands
    of digits, has the name of its type: no task can be made of it.
    """
    try:
        return content_hash(output)
    except (TypeError, ValueError, RecursionError):
        return content_hash(["no canonical form", type(output).__name__])


@dataclass(frozen=True)
class Solution:
    """One program. Raises ValueError for fields that no solution can have."""

    task: str
    program: str
    verdict: Verdict
    """`passed` and `total` are the pairs right and all pairs, `seconds` its CPU time. A solution without a verdict is none."""
    outputs: tuple[str, ...]
    """`output_hash` of its output on each input of the task, in their order."""
    family: str = ""
    difficulty: float = 0.0
    operator: Operator = "sampled"
    """sampled: a first answer; refined: made from its parent; relabelled: of the task that its own outputs define; gold: a
    reference solution of the data."""
    parent: str = ""
    """Key of the solution that it was made from; empty: none. The parent may have left the store."""
    run: str = ""
    """The run that found it."""
    step: int = 0
    """The update step of that run."""
    policy: str = ""
    """The policy that wrote it."""

    def __post_init__(self) -> None:
        if not self.task or not self.outputs:
            raise ValueError("Solution: it has a task, and an output for each of the task's inputs")
        if self.operator not in OPERATORS:
            raise ValueError(f"Solution.operator: got {self.operator!r}, allowed {OPERATORS}")
        if self.verdict.outcome == "no_verdict":
            raise ValueError("Solution.verdict: no_verdict says nothing of a program")
        if not 0 <= self.verdict.passed <= self.verdict.total:
            raise ValueError(f"Solution.verdict: {self.verdict.passed} of {self.verdict.total} pairs right")
        if not (math.isfinite(self.difficulty) and math.isfinite(self.verdict.seconds)):
            raise ValueError("Solution: difficulty and CPU time are finite")
        for text in (self.task, self.program, self.family, self.parent, self.run, self.policy):
            text.encode()  # Raises UnicodeEncodeError, a ValueError, for half a surrogate pair, which no file takes.
        if not all(_HASH.fullmatch(one) for one in self.outputs):
            raise ValueError("Solution.outputs: a hash each, as output_hash gives it")

    @property
    def correct(self) -> bool:
        return self.verdict.outcome == "passed"

    @cached_property
    def behaviour(self) -> str:
        return content_hash(list(self.outputs))

    @cached_property
    def syntax(self) -> Syntax:
        """The normalised syntax tree of the program."""
        return syntax_of(self.program)

    @cached_property
    def key(self) -> str:
        """Its name in every store: solutions of one key are duplicates. Behaviour alone would leave one correct program a
        task."""
        return content_hash([self.task, self.behaviour, self.syntax.hash])


JUDGED = ("outcome", "bucket", "rule", "passed", "total", "seconds")
"""The fields of a verdict that are kept."""
OWN = tuple(spec.name for spec in fields(Solution) if spec.name != "verdict")
DERIVED = ("key", "behaviour", "syntax", "size")
"""Fields of a row for its readers. They are not read back."""


def to_row(solution: Solution) -> dict[str, Any]:
    """As JSON."""
    judged = {name: getattr(solution.verdict, name) for name in JUDGED}
    derived = (solution.key, solution.behaviour, solution.syntax.hash, solution.syntax.size)
    own = {name: getattr(solution, name) for name in OWN}
    return {**own, "outputs": list(solution.outputs), **judged, **dict(zip(DERIVED, derived, strict=True))}


def from_row(row: Mapping[str, Any]) -> Solution:
    """From JSON. Raises ValueError with the reason if it is no solution."""
    for name, kinds in _KINDS.items():
        if name in row and (not isinstance(row[name], kinds) or isinstance(row[name], bool)):
            raise ValueError(f"{name}: got {type(row[name]).__name__}")
    if missing := [name for name in ("task", "program", "outcome", "outputs") if name not in row]:
        raise ValueError(f"{', '.join(missing)}: missing")
    if unknown := row.keys() - {*OWN, *JUDGED, *DERIVED}:
        raise ValueError(f"{', '.join(sorted(unknown))}: unknown key")
    if not all(isinstance(one, str) for one in row["outputs"]):
        raise ValueError("outputs: a hash each")
    verdict = Verdict(**{name: row[name] for name in JUDGED if name in row})
    own = {name: row[name] for name in OWN if name in row}
    return Solution(**{**own, "outputs": tuple(row["outputs"])}, verdict=verdict)


_TEXT, _NUMBER = (str,), (int, float)
_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("task", "program", "family", "operator", "parent", "run", "policy", "outcome"), _TEXT),
    **dict.fromkeys(("bucket", "rule"), (str, type(None))),
    **dict.fromkeys(("passed", "total", "step"), (int,)),
    **dict.fromkeys(("difficulty", "seconds"), _NUMBER),
    "outputs": (list,),
}


OPTION = "solutions.input"
LONGEST = 64 << 20
"""Bytes of a line."""
SHOWN = 20
"""Faults that are named."""


def checked_rows(path: Path) -> int:
    """The number of rows. Raises InputError that names the lines that are no solutions."""
    count, faults = 0, []
    for line in lines(path, LONGEST, OPTION):
        count += 1
        try:
            _solution(line)
        except (ValueError, TypeError, RecursionError) as fault:
            faults.append(InputProblem(OPTION, f"line {line.number} is no solution: {fault}", str(path)))
    if len(faults) > SHOWN:
        more = f"{len(faults) - SHOWN} further lines are none"
        faults = [*faults[:SHOWN], InputProblem(OPTION, more, str(path), "", "", "correct these first")]
    if faults:
        raise InputError(*faults)
    return count


def read_rows(path: Path) -> Iterator[Solution]:
    """The solutions of a file that `checked_rows` accepted."""
    return map(_solution, lines(path, LONGEST, OPTION))


def _solution(line: RowLine) -> Solution:
    row = json.loads(line.text) if line.text is not None else None
    if not isinstance(row, dict):
        raise ValueError(f"longer than {LONGEST >> 20} MB" if line.text is None else "not a JSON object")
    return from_row(row)
