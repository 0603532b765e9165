"""Which split a record falls to. What its set or its row says, stands; splits that are not there are drawn by content.

A set of one split only, or without any, is drawn from in full; else `test` and `dev` come from `train` where they are
missing. Records with a content in common stay together. MBPP+ has the tasks of MBPP and takes its splits.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_exp.core.hashing import content_hash
from rlvr_exp.tasks.code.literals import written
from rlvr_exp.tasks.code.names import statements
from rlvr_exp.tasks.code.prompt import CodeInputs, write
from rlvr_exp.tasks.code.record import DRAWN, CodeRecord
from rlvr_exp.tasks.content import program_key, text_key
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.tasks.splits import Item, split, tied
from rlvr_exp.tasks.tables import SPLITS

BANDS = (3, 6, 12, 24)
"""Borders between bands of difficulty, in statements of the solution."""


def place(
    records: Sequence[CodeRecord], fractions: Mapping[str, float] | None, seed: int
) -> dict[str, list[CodeRecord]]:
    """Every record under its split, in the given order.

    Args:
        fractions: the share of each split that is drawn where it is missing; None: none is drawn.
    """
    names = {record.split for record in records}
    if fractions is not None and records and all(record.drawn for record in records):
        parts = {record.id: record.drawn for record in records}
    elif fractions is not None:
        pool = [record for record in records if len(names) == 1 or record.split in (DRAWN, "train")]
        missing = {name: share for name, share in fractions.items() if len(names) == 1 or name not in names}
        parts = _draw(pool, missing, seed)
    else:
        parts = {record.id: "test" for record in records if record.split == DRAWN}
    placed: dict[str, list[CodeRecord]] = {}
    for record in records:
        placed.setdefault(parts.get(record.id, record.split), []).append(record)
    return {name: placed[name] for name in SPLITS if name in placed}


def contents(inputs: CodeInputs | str, gold: str | None, problem: PytestProblem | PythonProblem | None) -> list[str]:
    """The keys of a task's content: its prompt, its solution, its tests."""
    prompt = inputs if isinstance(inputs, str) else write(inputs)
    tests = problem.tests if isinstance(problem, PytestProblem) else written(_cases(problem)) if problem else ""
    return [text_key(prompt), *([program_key(gold)] if gold else []), *([text_key(tests)] if tests else [])]


def _cases(problem: PythonProblem) -> list[Any]:
    """Without their order."""
    cases = [
        (case.args, case.expected) if isinstance(case, Case) else (case.stdin, case.expected_stdout)
        for case in problem.cases
    ]
    return [problem.entry_point, *sorted(cases, key=written)]


def _draw(records: Sequence[CodeRecord], fractions: Mapping[str, float], seed: int) -> dict[str, str]:
    if not fractions:
        return {}
    own = {record.id: contents(record.inputs, record.gold, record.tests or record.cases) for record in records}
    groups = tied(own)
    keys = {name: content_hash(found) for name, found in own.items()}
    items = [Item(keys[one.id], groups[one.id], one.family, _band(one)) for one in records]
    parts = split(items, list(fractions.values()), seed)
    names = [*fractions, "train"]
    return {record.id: names[parts[keys[record.id]]] for record in records}


def _band(record: CodeRecord) -> int:
    return sum(statements(record.gold or "") >= border for border in BANDS)
