"""Rows of coding problems and their splits: files of a user's own, the embedded corpus, or public sets of programs in their own
formats, read by the domain of these programs.
"""

import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from rlvr_exp.core import domains
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.tasks.cases import content_of, taken
from rlvr_exp.tasks.code_records import EITHER
from rlvr_exp.tasks.content import program_key, text_key
from rlvr_exp.tasks.formats.base import statement
from rlvr_exp.tasks.formats.fields import Fault
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem, PytestSuite
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem, tolerances_of
from rlvr_exp.tasks.python_syntax import syntax_fault
from rlvr_exp.tasks.rows import Row, once, rows_below
from rlvr_exp.tasks.splits import placed

KEYS = "text, solution and tests"
TESTS = 'a list of {"args": [...], "expected": ...}, or the text of a pytest file'


@dataclass(frozen=True)
class ProblemRow:
    """One problem."""

    id: str
    text: str
    entry_point: str
    """The function that answers it."""
    solution: str
    """The reference: a module that defines the function."""
    tests: PythonProblem | PytestProblem
    """They decide, and no prompt shows them: calls, or a pytest file."""
    shown: tuple[Case, ...] = ()
    """Calls in the prompt."""
    family: str = "problems"
    difficulty: float = 0.0
    split: str = ""
    """Empty if nothing says it."""
    stages: Mapping[str, str] = field(default_factory=dict)
    """A good output of stages of reasoning, by name, if it is known."""
    good_tests: tuple[Case, ...] = ()
    """Calls that a good tester writes."""
    wrong: tuple[str, ...] = ()
    """Plausible wrong solutions, to measure tests with."""
    where: str = field(default="", compare=False)
    """Its file and line, if it has a line of its own."""


def load(path: Path) -> list[ProblemRow]:
    """Every row at or below a path, by file and line.

    Raises:
        InputError: nothing is there, any file, row or key is wrong, or an id stands twice.
    """
    remedy = f"point data.path at rows with {KEYS}, or at a set that data=code reads"
    nothing = InputProblem(str(path), "no problems here", allowed="a JSON list, JSON lines or tables", remedy=remedy)
    return once(rows_below(path, problem_of, nothing), path)


def problem_of(row: Row, split: str) -> ProblemRow:
    """The problem of a row. Raises InputError naming the key."""
    text, solution = row.text("text"), row.text("solution")
    if fault := syntax_fault(solution):
        raise InputError(InputProblem(f"{row.where}, solution", "no Python", f"line {fault[0]}: {fault[1]}"))
    given, stages = row.values.get("tests"), row.values.get("stages") or {}
    if not given:
        raise InputError(InputProblem(f"{row.where}, tests", "a problem is judged by tests", "none", TESTS))
    is_text = isinstance(given, str) or (isinstance(given, list) and all(isinstance(one, str) for one in given))
    try:  # Text is read as `verifier=pytest` reads it from a row, with the solution as the reference.
        suite = PytestSuite().read_problem({**row.values, "reference": solution}) if is_text else None
        tolerances: Any = {} if is_text else tolerances_of(row.values)
    except Fault as fault:
        key, _, what = str(fault).partition(": ")
        raise InputError(InputProblem(f"{row.where}, {key}", what, allowed=TESTS if is_text else "")) from fault
    if not isinstance(stages, Mapping) or not all(isinstance(text, str) for text in stages.values()):
        raise InputError(InputProblem(f"{row.where}, stages", "no outputs", repr(stages)[:60], "{STAGE: TEXT}"))
    name = row.text("entry_point", "") or taken(suite.tests if suite else "", solution)
    if not name.isidentifier():
        raise InputError(InputProblem(f"{row.where}, entry_point", "no name of a function", name[:60]))
    return ProblemRow(
        row.text("id", content_hash([text, solution])),
        text,
        name,
        solution,
        suite or PythonProblem(name, _cases(row, "tests"), **tolerances),
        _cases(row, "shown"),
        row.text("family", ProblemRow.family),
        row.real("difficulty", 0.0),
        split,
        dict(stages),
        _cases(row, "good_tests"),
        row.texts("wrong"),
        row.where,
    )


def content(row: ProblemRow) -> Mapping[str, Any]:
    """What a row says, in hashable form: the calls of public sets hold values that JSON lacks."""
    kept = {one.name: getattr(row, one.name) for one in fields(row) if one.compare and one.name != "tests"}
    return kept | {"tests": content_of(row.tests)}


def call_text(name: str, case: Case) -> str:
    """A call with its value, as Python that is true: `f(1, 'a') == [2]`."""
    return f"{name}({', '.join(map(repr, case.args))}) == {case.expected!r}"


def _cases(row: Row, key: str) -> tuple[Case, ...]:
    """The calls under a key. Raises InputError."""
    given = row.values.get(key) or []
    wanted = {"args", "expected"}
    if not isinstance(given, list) or not all(isinstance(one, dict) and wanted <= one.keys() for one in given):
        allowed = 'a list of {"args": [...], "expected": ...}'
        raise InputError(InputProblem(f"{row.where}, {key}", "no calls", repr(given)[:60], allowed))
    for place, one in enumerate(given):
        if not isinstance(one["args"], list):
            where = f"{row.where}, {key}[{place}].args"
            raise InputError(InputProblem(where, "no arguments", repr(one["args"])[:60], "a list"))
    return tuple(Case(tuple(one["args"]), one["expected"]) for one in given)


NO_REFERENCE = "no solution to be the reference, without which data=code can train"
NO_FUNCTION = "no function that its tests call"


def programs_at(path: Path, judge: str, **options: Any) -> Any:
    """The domain of the programs with tests at a path, if a domain reads them and they are no problems; else None."""
    readers = (domains.load(one.programs) for one in domains.domains().values() if one.programs)
    return next((found for reader in readers if (found := reader(path, judge, **options)) is not None), None)


def rows_of(code: Any) -> tuple[dict[str, list[ProblemRow]], dict[str, str]]:
    """The problems of a set by split, and the tasks that are none, by id, each with the reason.

    Raises:
        InputError: as the set's own reading.
    """
    placed: dict[str, list[ProblemRow]] = {}
    left_out = dict(code.left_out())
    for name, tasks in code.splits().items():
        for task in tasks:
            if not task.gold:
                left_out[task.id] = NO_REFERENCE
            elif not code.entry_point(task).isidentifier():
                left_out[task.id] = NO_FUNCTION
            else:
                row = ProblemRow(
                    task.id,
                    task.inputs if isinstance(task.inputs, str) else statement(task.inputs),
                    code.entry_point(task),
                    task.gold,
                    task.problem,
                    family=task.family,
                    difficulty=task.difficulty,
                    split=name,
                    wrong=task.negatives,
                )
                placed.setdefault(name, []).append(row)
    return placed, left_out


EMBEDDED = Path(__file__).parents[2] / "assets" / "problems"
ERRORS = EMBEDDED.with_name("problem_errors.jsonl.xz")
"""Wrong programs that a base wrote for problems of the embedded corpus, by their ids."""
EMBEDDED_NAME = "embedded"
"""What stands for the embedded corpus in place of a path."""


@dataclass(frozen=True)
class Source:
    """The problems at a path."""

    placed: Mapping[str, Sequence[ProblemRow]]
    """The problems of every split."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Tasks of a set that are no problems, by id, each with the reason."""
    no_training: str = ""
    """The reason why no policy may be trained on a set; empty if one may."""


def read(path: Path, fractions: tuple[float, float], seed: int, held_out: str = "") -> Source:
    """
    Args:
        fractions: shares of test and dev, drawn from the rows that no file places.
        held_out: the problems of `test` in place of those at `path`, of which no share is then drawn; empty: none.

    Raises:
        InputError: nothing is there, or any file, row or key is wrong.
    """
    found = _read(path, (0.0, 0.0) if held_out else fractions, seed)
    return replace(found, placed={**found.placed, "test": _held_out(held_out, seed)}) if held_out else found


def _read(path: Path, fractions: tuple[float, float], seed: int) -> Source:
    if path.is_relative_to(EMBEDDED):
        return Source(placed(_embedded(path), keys_of, keys_of, fractions, seed))
    test, dev = fractions
    code = programs_at(path, EITHER, test_fraction=test, dev_fraction=dev, seed=seed)
    if code is None:
        return Source(placed(load(path), keys_of, keys_of, fractions, seed))
    return Source(*rows_of(code), code.no_training())


@cache  # A solver and a tester read the same rows, and 17,600 take seconds.
def _embedded(path: Path) -> Sequence[ProblemRow]:
    with lzma.open(ERRORS, "rt", encoding="ascii") as lines:
        wrong = {one["id"]: tuple(one["wrong"]) for one in map(json.loads, lines)}
    return [replace(row, wrong=(*row.wrong, *wrong.get(row.id, ()))) for row in load(path)]


def _held_out(name: str, seed: int) -> list[ProblemRow]:
    path = EMBEDDED / "test.jsonl.xz" if name == EMBEDDED_NAME else Path(name)
    rows = [row for rows in _read(path, (0.0, 0.0), seed).placed.values() for row in rows]
    return [replace(row, split="test") for row in rows]


def keys_of(row: ProblemRow) -> list[str]:
    """The keys of a problem's content: its text and its reference."""
    return [text_key(row.text), program_key(row.solution)]
