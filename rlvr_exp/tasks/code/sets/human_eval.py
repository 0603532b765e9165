"""HumanEval: a header to complete, judged by `check(candidate)`. Four headers define a helper before the entry point.

The tests take the helpers from the header, never from the candidate: `find_zero` is tested by the given `poly`.
"""

from rlvr_exp.tasks.code.files import Row
from rlvr_exp.tasks.code.harness import test_file, without
from rlvr_exp.tasks.code.literals import NoCases, asserts_of, cases_of, problem_of
from rlvr_exp.tasks.code.prompt import CodeInputs
from rlvr_exp.tasks.code.record import CodeRecord
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import PythonProblem

NAME = "human_eval"
KEYS = frozenset({"task_id", "prompt", "entry_point", "canonical_solution", "test"})
NOT = frozenset({"contract", "buggy_solution"})
FILES = ("HumanEval.jsonl.gz", "HumanEval.jsonl")
ASK = "Complete the function."


def read(row: Row) -> CodeRecord:
    header, entry, test = row.text("prompt"), row.text("entry_point"), row.text("test")
    gold = header + row.text("canonical_solution")
    program = f"{test}\n\ncheck({entry})\n"
    tests = test_file([program], gold, given_by(header, entry), entry)
    cases, why = _cases(test, entry)
    inputs = CodeInputs(ASK, given=header)
    return CodeRecord(
        row.text("task_id"), NAME, "test", inputs, gold, (), PytestProblem(tests), cases, why, entry_point=entry
    )


def given_by(header: str, entry_point: str) -> str:
    """Imports and helpers in a header before the function to complete."""
    return without(header + "    pass\n", entry_point)


def _cases(test: str, entry_point: str) -> tuple[PythonProblem | None, str]:
    try:
        return problem_of(entry_point, cases_of(asserts_of(test), "candidate")), ""
    except NoCases as reason:
        return None, str(reason)
