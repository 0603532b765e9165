"""Code sets as rows of `+stage=verify`: `python -m rlvr_exp.tasks.code.rows DIR OUT.jsonl`.

One row a candidate, in the format of the verifier named by --judge; an id is TASK#KIND, followed by the variant. The
same problems, golds, wrong programs and mutants that `+stage=validate` judges.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import BAD_INPUT, DONE, InputError
from rlvr_exp.core.files import replacing
from rlvr_exp.tasks.base import Task
from rlvr_exp.tasks.code.domain import Code
from rlvr_exp.tasks.code.literals import is_json, written
from rlvr_exp.tasks.code.load import AUTO, SETS
from rlvr_exp.tasks.code.record import JUDGES
from rlvr_exp.tasks.mutants import chosen, stub_programs
from rlvr_exp.tasks.problems import Case, PytestProblem, PythonProblem

CANDIDATES = ("gold", "wrong", "hollow", "mutants")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    domain = Code(options.data, options.set, options.judge, options.limit)
    try:
        tasks = [task for found in domain.splits().values() for task in found]
    except InputError as error:
        print(error, file=sys.stderr)
        return BAD_INPUT
    count = 0
    with replacing(options.out) as temporary, open(temporary, "w", encoding="ascii") as out:
        for task in tasks:
            for row in rows_of(domain, task, options.candidates or CANDIDATES[:1], options.mutants):
                out.write(json.dumps(row, allow_nan=False) + "\n")
                count += 1
    print(f"{count} rows of {len(tasks)} tasks for verifier={options.judge}; {len(domain.left_out())} tasks left out")
    return DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m rlvr_exp.tasks.code.rows", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("data", metavar="DIR", help="folder or file of a set in its own format")
    parser.add_argument("out", metavar="OUT.jsonl", type=Path)
    parser.add_argument("--set", default=AUTO, choices=(AUTO, *SETS), help="the set, where DIR holds several")
    parser.add_argument("--judge", default=JUDGES[0], choices=JUDGES, help="the verifier of the rows")
    parser.add_argument("--candidates", action="append", choices=CANDIDATES, help="may be repeated; gold by default")
    parser.add_argument("--mutants", type=int, default=4, help="mutants of each gold")
    parser.add_argument("--limit", type=int, default=0, help="the first N tasks of each split")
    return parser


def rows_of(domain: Code, task: Task, candidates: Sequence[str], mutants: int) -> Iterator[dict[str, Any]]:
    """The rows of one task, the golds and wrong programs as the domain parses them from a completion."""
    gold = domain.parse(task.gold or "", task).text or ""
    if "gold" in candidates:
        yield row_of(f"{task.id}#gold", task.problem, gold)
    for number, text in enumerate(task.negatives if "wrong" in candidates else ()):
        yield row_of(f"{task.id}#wrong-{number}", task.problem, domain.parse(text, task).text)
    for one in stub_programs(gold) if "hollow" in candidates else ():
        yield row_of(f"{task.id}#hollow-{one.kind}", task.problem, one.code)
    for number, one in enumerate(chosen(gold, mutants, task.id) if "mutants" in candidates else ()):
        yield row_of(f"{task.id}#mutant-{number}-{one.kind}", task.problem, one.code)


def row_of(name: str, problem: PytestProblem | PythonProblem, code: str | None) -> dict[str, Any]:
    """One candidate as a row; null code stands for a completion without a program."""
    if isinstance(problem, PytestProblem):
        row = {"id": name, "code": code, "tests": problem.tests}
        row |= {"files": dict(problem.files)} if problem.files else {}
        return row | ({"reference": problem.reference} if problem.reference else {})
    cases = [_case(case, problem.strict) for case in problem.cases if isinstance(case, Case)]
    row = {"id": name, "code": code, "entry_point": problem.entry_point, "cases": cases}
    return row | ({"atol": problem.atol} if problem.atol else {})


def _case(case: Case, strict: bool) -> dict[str, Any]:
    args = {"args": list(case.args)} if is_json(list(case.args)) else {"args_py": written(case.args)}
    expected = {"expected_py": written(case.expected)} if strict else {"expected": case.expected}
    return args | expected


if __name__ == "__main__":
    raise SystemExit(main())
