"""CanItEdit: a program, an instruction, and tests that follow it as a program. Never training data, by its licence."""

from collections.abc import Mapping

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.code.files import Row
from rlvr_exp.tasks.code.harness import test_file
from rlvr_exp.tasks.code.prompt import CodeInputs
from rlvr_exp.tasks.code.record import STYLES, CodeRecord
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
    inputs, lazy = (CodeInputs(row.text(f"instruction_{style}"), before) for style in STYLES)
    script = row.text("tests")
    tests = PytestProblem(test_file([script.replace(OWN_MODULE, SOLUTION)], gold))
    name, family = f"CanItEdit/{row.text('full_name')}", f"{NAME}/{taxonomy.get('change_kind', 'other')}"
    return CodeRecord(name, family, "test", inputs, gold, (before,), tests, script=script, lazy=lazy)
