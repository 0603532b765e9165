"""Python modules judged by the tests of a pytest file."""

from dataclasses import dataclass

from rlvr_exp.tasks.formats.base import CodeInputs, PythonFormat, program_prompt
from rlvr_exp.tasks.formats.fields import Fault, Fields, Limits, limits_of, optional_text, text_of, wrong
from rlvr_exp.tasks.suites import suite_of


@dataclass(frozen=True)
class PytestProblem:
    """A module `solution` to write, judged by the tests of a pytest file."""

    tests: str
    files: tuple[tuple[str, str], ...] = ()
    """Further files that the tests need: (relative name, text)."""
    limits: Limits = Limits()
    reference: str = ""
    """A right solution, if there is one. If it returns plain data, a candidate must return plain data too."""


class PytestSuite(PythonFormat):
    name = "pytest"
    problem = PytestProblem
    keys = ("tests",)

    def read_problem(self, fields: Fields) -> PytestProblem:
        files = fields.get("files") or {}
        if type(files) is not dict or any(type(text) is not str or not name for name, text in files.items()):
            raise Fault(wrong("files", fields, "an object of texts by relative file name"))
        reference = optional_text(fields, "reference") or ""
        tests = _tests(fields, reference or optional_text(fields, "solution") or "")
        return PytestProblem(tests, tuple(files.items()), limits_of(fields), reference)

    def prompt(self, problem: PytestProblem) -> str:
        files = [f"The file `{name}`:\n\n```\n{text}\n```" for name, text in problem.files]
        lead = "Write the Python module `solution`, which has to pass these tests."
        return program_prompt(CodeInputs("\n\n".join([*files, lead]), given=problem.tests))


def _tests(fields: Fields, gold: str) -> str:
    """The pytest file of a row: its `tests` are one, or a program of asserts, or a list of such programs. Next to a
    candidate a text is a pytest file as it stands."""
    given = fields.get("tests")
    if type(given) is not list:
        given = text_of(fields, "tests")
        if PytestSuite.candidate_key in fields:
            return given
    elif not given or any(type(one) is not str for one in given):
        raise Fault(wrong("tests", fields, "text, or a list of texts"))
    try:
        return suite_of(given, gold, optional_text(fields, "entry_point") or "")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as fault:
        raise Fault(f"tests: cannot be read as Python: {fault}") from fault
