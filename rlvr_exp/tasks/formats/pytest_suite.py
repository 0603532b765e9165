"""Python modules judged by the tests of a pytest file."""

from dataclasses import dataclass

from rlvr_exp.tasks.code.prompt import CodeInputs, write
from rlvr_exp.tasks.formats.fields import Fault, Fields, optional_text, text_of, wrong
from rlvr_exp.tasks.formats.limits import Limits, limits_of
from rlvr_exp.tasks.formats.python import PythonFormat


@dataclass(frozen=True)
class PytestProblem:
    """A module `solution` to write, judged by the tests of a pytest file."""

    tests: str
    files: tuple[tuple[str, str], ...] = ()
    """Further files that the tests need: (relative name, text)."""
    limits: Limits = Limits()
    reference: str = ""
    """A right solution, where there is one: what it returns as plain data, a candidate must return as plain data."""


class PytestSuite(PythonFormat):
    name = "pytest"
    problem = PytestProblem
    keys = ("tests",)

    def read_problem(self, fields: Fields) -> PytestProblem:
        files = fields.get("files") or {}
        if type(files) is not dict or any(type(text) is not str or not name for name, text in files.items()):
            raise Fault(wrong("files", fields, "an object of texts by relative file name"))
        reference = optional_text(fields, "reference") or ""
        return PytestProblem(text_of(fields, "tests"), tuple(files.items()), limits_of(fields), reference)

    def prompt(self, problem: PytestProblem) -> str:
        files = [f"The file `{name}`:\n\n```\n{text}\n```" for name, text in problem.files]
        lead = "Write the Python module `solution`, which has to pass these tests."
        return write(CodeInputs("\n\n".join([*files, lead]), given=problem.tests))
