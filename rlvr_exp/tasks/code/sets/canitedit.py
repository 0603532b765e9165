"""CanItEdit: a program, an instruction, and tests that follow it as a program. Never training data, by its licence."""

from collections.abc import Mapping

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.code.files import Row
from rlvr_exp.tasks.code.harness import test_file
from rlvr_exp.tasks.code.prompt import CodeInputs
from rlvr_exp.tasks.code.record import CodeRecord
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem

NAME = "canitedit"
KEYS = frozenset({"full_name", "before", "after", "tests", "instruction_descriptive", "instruction_lazy"})
NOT = frozenset[str]()
FILES = ("canitedit.jsonl",)
OWN_MODULE, SOLUTION = "sys.modules[__name__]", "sys.modules['solution']"
"""Tests that read their own module's source mean the solution's, which upstream is the same module."""


def read(row: Row) -> CodeRecord:
    gold, before = row.text("after") + "\n", row.text("before") + "\n"
    taxonomy = row.values.get("taxonomy")
    if not isinstance(taxonomy, Mapping):
        raise InputError(InputProblem(f"{row.where}, taxonomy", "not an object", got=type(taxonomy).__name__))
    inputs = CodeInputs(row.text("instruction_descriptive"), before)
    tests = PytestProblem(test_file([row.text("tests").replace(OWN_MODULE, SOLUTION)], gold))
    family = f"{NAME}/{taxonomy.get('change_kind', 'other')}"
    return CodeRecord(f"CanItEdit/{row.text('full_name')}", family, "test", inputs, gold, (before,), tests)
