"""Tasks in Python as rows of `+stage=verify`.

One row a candidate, in the format of the problem. An id is TASK#KIND, followed by the variant. The problems, reference
solutions, wrong programs and mutants are those of `+stage=validate`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import write_json_lines
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.tasks.cases import is_json, written
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem, StdinCase
from rlvr_exp.tasks.mutants import chosen, stub_programs


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write the rows of all tasks. Raises InputError for problems that are not in Python."""
    options, domain = config.prepare, build(config.data)
    tasks = [task for found in domain.splits().values() for task in found]
    if not all(isinstance(task.problem, PytestProblem | PythonProblem) for task in tasks):
        raise InputError(InputProblem("data", "rows are made of tasks in Python", domain.name, "code, arc"))
    output = Path(options.output or context.directory / "rows.jsonl")
    rows = (row for task in tasks for row in rows_of(domain, task, options.candidates, options.mutants))
    count, left_out = write_json_lines(output, rows), len(domain.left_out())
    text = f"{count} rows of {len(tasks)} tasks, {left_out} tasks left out: {output}"
    return text, {"rows": count, "tasks": len(tasks), "left_out": left_out}


def rows_of(domain: Domain, task: Task, candidates: Sequence[str], mutants: int) -> Iterator[dict[str, Any]]:
    """The rows of one task. The domain parses reference and wrong programs as it parses a completion."""
    gold = domain.parse(task.gold or "", task).text or ""
    if "gold" in candidates and task.gold is not None:
        yield row_of(f"{task.id}#gold", task.problem, gold)
    for number, text in enumerate(task.negatives if "wrong" in candidates else ()):
        yield row_of(f"{task.id}#wrong-{number}", task.problem, domain.parse(text, task).text)
    for one in stub_programs(gold) if "hollow" in candidates else ():
        yield row_of(f"{task.id}#hollow-{one.kind}", task.problem, one.code)
    for number, one in enumerate(chosen(gold, mutants, task.id) if "mutants" in candidates else ()):
        yield row_of(f"{task.id}#mutant-{number}-{one.kind}", task.problem, one.code)


def row_of(name: str, problem: PytestProblem | PythonProblem, code: str | None) -> dict[str, Any]:
    """One candidate as a row. Null code is a completion without a program."""
    if isinstance(problem, PytestProblem):
        row: dict[str, Any] = {"id": name, "code": code, "tests": problem.tests}
        row |= {"files": dict(problem.files)} if problem.files else {}
        return row | ({"reference": problem.reference} if problem.reference else {})
    cases = [_case(case, problem.strict) for case in problem.cases]
    row = {"id": name, "code": code, "cases": cases}
    row |= {"entry_point": problem.entry_point} if problem.entry_point else {}
    return row | ({"atol": problem.atol, "rtol": problem.rtol} if problem.atol or problem.rtol else {})


def _case(case: Case | StdinCase, strict: bool) -> dict[str, Any]:
    if isinstance(case, StdinCase):
        return {"stdin": case.stdin, "expected_stdout": case.expected_stdout}
    args = {"args": list(case.args)} if is_json(list(case.args)) else {"args_py": written(case.args)}
    expected = {"expected_py": written(case.expected)} if strict else {"expected": case.expected}
    return args | expected
