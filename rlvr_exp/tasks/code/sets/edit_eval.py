"""EditEval: an instruction and a piece of code, which may be inside a context at `{{Code}}`; tests in `check()`.

A candidate is the complete module, context included: nine pieces do not parse alone.
"""

import re

from rlvr_exp.tasks.code.files import Row
from rlvr_exp.tasks.code.harness import test_file
from rlvr_exp.tasks.code.prompt import CodeInputs
from rlvr_exp.tasks.code.record import CodeRecord
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem

NAME = "edit_eval"
KEYS = frozenset({"task_id", "instruction", "input", "output", "test"})
NOT = frozenset[str]()
FILES = ("edit_eval.jsonl",)
PLACE = "{{Code}}"


def read(row: Row) -> CodeRecord:
    context = row.text("context", "")
    gold, before = (_placed(row.text(key), context) for key in ("output", "input"))
    tests = test_file([f"{row.text('test')}\n\ncheck()\n"], gold)
    inputs = CodeInputs(row.text("instruction"), before)
    return CodeRecord(row.text("task_id"), NAME, "test", inputs, gold, (before,), PytestProblem(tests))


def _placed(code: str, context: str) -> str:
    if PLACE not in context:
        return code + "\n"
    return re.sub(re.escape(PLACE), lambda _: code, context) + "\n"
