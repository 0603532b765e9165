"""HumanEvalPack, Python: a function with a bug to repair. The prompt shows the tests' example, not the tests."""

from rlvr_exp.tasks.code.files import Row
from rlvr_exp.tasks.code.harness import test_file
from rlvr_exp.tasks.code.literals import NoCases, asserts_of, cases_of, problem_of
from rlvr_exp.tasks.code.prompt import CodeInputs
from rlvr_exp.tasks.code.record import CodeRecord
from rlvr_exp.tasks.code.sets.human_eval import given_by
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import PythonProblem

NAME = "humanevalpack"
KEYS = frozenset({"task_id", "declaration", "canonical_solution", "buggy_solution", "test", "entry_point"})
NOT = frozenset[str]()
FILES = ("humanevalpack.jsonl",)
ASK = "Fix the bug in `{}`."


def read(row: Row) -> CodeRecord:
    head, entry, test = row.text("declaration"), row.text("entry_point"), row.text("test")
    gold, buggy = head + row.text("canonical_solution"), head + row.text("buggy_solution")
    tests = PytestProblem(test_file([test], gold, given_by(head, entry), entry))
    cases, why = _cases(test, entry)
    inputs = CodeInputs(f"{ASK.format(entry)}\n{row.text('docstring')}".strip(), buggy)
    family = f"{NAME}/{row.text('bug_type', 'other')}"
    return CodeRecord(row.text("task_id"), family, "test", inputs, gold, (buggy,), tests, cases, why, entry_point=entry)


def _cases(test: str, entry: str) -> tuple[PythonProblem | None, str]:
    try:
        return problem_of(entry, cases_of(asserts_of(test), entry)), ""
    except NoCases as reason:
        return None, str(reason)
