"""MBPP: a sentence and three or more asserts; the complete file and the sanitized list.

Ids 11 to 510 are for evaluation, 1 to 10 for prompting, 511 to 600 for validation and the rest for training (Austin et
al. 2021, arXiv:2108.07732). A prompt shows the first assert: without it the function's name is unknown.
"""

from rlvr_exp.tasks.code.files import Row
from rlvr_exp.tasks.code.harness import test_file
from rlvr_exp.tasks.code.literals import NoCases, cases_of, problem_of, statements_of
from rlvr_exp.tasks.code.names import called
from rlvr_exp.tasks.code.prompt import CodeInputs
from rlvr_exp.tasks.code.record import CodeRecord
from rlvr_exp.tasks.completion import unified
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import PythonProblem

NAME = "mbpp"
KEYS = frozenset({"task_id", "code", "test_list"})
NOT = frozenset({"test"})
FILES = ("mbpp.jsonl", "sanitized-mbpp.json")


def read(row: Row) -> CodeRecord:
    number, gold, asserts = row.number("task_id"), unified(row.text("code")) + "\n", row.texts("test_list")
    setup = "\n".join([*row.texts("test_imports"), unified(row.text("test_setup_code", ""))]).strip("\n")
    wanted = row.text("prompt") if "prompt" in row.values else row.text("text")
    entry = called(asserts, gold)
    tests = test_file([f"{setup}\n{text}" if setup else text for text in asserts], gold, entry_point=entry)
    cases, why = _cases(asserts, entry, setup)
    inputs = CodeInputs(wanted, given=asserts[0])
    name, split = f"Mbpp/{number}", split_of(number)
    return CodeRecord(
        name, NAME, split, inputs, gold, (), PytestProblem(tests), cases, why, drawn=split, entry_point=entry
    )


def split_of(number: int) -> str:
    if number <= 10:
        return "prompt"
    return "test" if number <= 510 else "dev" if number <= 600 else "train"


def _cases(asserts: tuple[str, ...], entry: str, setup: str) -> tuple[PythonProblem | None, str]:
    if setup:
        return None, "its tests need a setting up"
    try:
        return problem_of(entry, cases_of(statements_of(asserts), entry)), ""
    except NoCases as reason:
        return None, str(reason)
