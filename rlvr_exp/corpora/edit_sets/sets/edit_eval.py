"""EditEval, and InstructCoder, whose test set it is: an instruction, an input and an output, which a context may surround.

A row with tests belongs to the published test set and stays in `test`; the others are drawn. Texts are complete modules:
a piece is put into its context, as `data=code` does.
"""

from rlvr_exp.core.hashing import content_hash
from rlvr_exp.corpora.edit_sets.draft import Draft, Dropped, Place
from rlvr_exp.corpora.edit_sets.lines import row_files as files
from rlvr_exp.tasks.edit_sets import EDIT_EVAL
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.rows import Row

__all__ = ["NAME", "files", "read"]

NAME, LICENCE = "edit_eval", "MIT"
NO_TESTS = "its tests cannot be read as Python"


def read(row: Row, place: Place) -> Draft:
    instruction = row.text("instruction")
    if "test" not in row.values:
        before, after = row.text("input"), row.text("output")
        name = content_hash([instruction, before, after])[:16]
        return Draft(name, "python", instruction, before, after, licence=LICENCE)
    try:
        found = EDIT_EVAL.read(row)
    except (SyntaxError, ValueError, RecursionError) as fault:
        raise Dropped(NO_TESTS, str(fault)) from fault
    tests = found.tests.tests if isinstance(found.tests, PytestProblem) else ""
    (before,), split = found.negatives, "test"
    return Draft(found.id, "python", instruction, before, found.gold, tests, LICENCE, split=split)
