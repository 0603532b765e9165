"""Tasks that come as rows of a file: a problem in one of the formats of `+stage=verify` without a candidate, with its prompt.

A row's own `prompt` is used unchanged. Without it the prompt is written from the problem, and then shows what verifies
the row (a few of the cases, the tests, the text after the edit): give a prompt where that would reveal too much.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rlvr_exp.tasks.base import Candidate, Domain, Task
from rlvr_exp.tasks.code.domain import write
from rlvr_exp.tasks.code.record import CodeInputs
from rlvr_exp.tasks.completion import FENCE, dedent, unified, whole_program
from rlvr_exp.tasks.problems import AstGrepProblem, DafnyProblem, PytestProblem, PythonProblem, StdinCase
from rlvr_exp.tasks.row_formats import FORMATS, Fault, Fields

CANDIDATE = {"python_io": "code", "pytest": "code", "dafny": "candidate", "ast_grep": "action"}
"""The key of each format's candidate: a row to solve has none, or its candidate is ignored."""
SHOWN = 3
"""Cases shown by a prompt that is written from a problem."""


class RowDomain(Domain):
    """The domain of rows in one format."""

    def __init__(self, form: str):
        self.name = form

    def splits(self) -> Mapping[str, Sequence[Task]]:
        return {}

    def prompt(self, task: Task) -> str:
        return task.inputs

    def parse(self, completion: str, task: Task) -> Candidate:
        return _READERS[self.name](completion)


def read_problem(fields: Fields, form: str, identity: str) -> Task:
    """The task of a row. Raises Fault."""
    problem, _ = FORMATS[form]({**fields, CANDIDATE[form]: None})
    given = fields.get("prompt")
    if given is not None and not isinstance(given, str):
        raise Fault(f"prompt: got {json.dumps(given)[:80]}, allowed text, or none")
    return Task(identity, form, 0.0, worded(problem) if given is None else given, problem)


def worded(problem: Any) -> str:
    """A prompt written from the problem alone."""
    return _WORDS[type(problem)](problem)


def _python(problem: PythonProblem) -> str:
    cases = problem.cases[:SHOWN]
    if isinstance(cases[0], StdinCase):
        runs = "For the input\n\n```\n{}\n```\n\nit prints\n\n```\n{}\n```"
        shown = [runs.format(one.stdin, one.expected_stdout) for one in cases]
        lead = "Write a Python program that reads standard input and prints its answer."
        return write(CodeInputs("\n\n".join([lead, *shown])))
    calls = [f"assert {problem.entry_point}({', '.join(map(repr, one.args))}) == {one.expected!r}" for one in cases]
    return write(CodeInputs(f"Write the Python function `{problem.entry_point}`.", given="\n".join(calls)))


def _pytest(problem: PytestProblem) -> str:
    files = [f"The file `{name}`:\n\n```\n{text}\n```" for name, text in problem.files]
    lead = "Write the Python module `solution`, which has to pass these tests."
    return write(CodeInputs("\n\n".join([*files, lead]), given=problem.tests))


def _dafny(problem: DafnyProblem) -> str:
    whole = (problem.program, "specification as it stands")
    shown, kept = whole if problem.keep is None else (problem.keep, "specification and its code as they stand")
    return (
        f"Complete this Dafny program so that Dafny verifies it. Keep its {kept}.\n\n"
        f"```dafny\n{shown.strip(chr(10))}\n```\n\nAnswer with the whole program in one code block.\n"
    )


def _ast_grep(problem: AstGrepProblem) -> str:
    tested = ("The tests that it has to pass then", problem.tests)
    wanted = tested if problem.tests else ("The text after it", problem.after)
    return (
        f"Write an ast-grep action for {problem.language} that edits a text.\n\nThe text before it:\n\n"
        f"```\n{problem.before.strip(chr(10))}\n```\n\n{wanted[0]}:\n\n```\n{wanted[1].strip(chr(10))}\n```\n\n"
        'Answer with one JSON object in one code block, such as {"pattern": "print($X)", "rewrite": "log($X)"}.\n'
    )


_WORDS: Mapping[type, Callable[[Any], str]] = {
    PythonProblem: _python,
    PytestProblem: _pytest,
    DafnyProblem: _dafny,
    AstGrepProblem: _ast_grep,
}


def fenced(completion: str, what: str) -> Candidate:
    """The last fenced block with content, else the full text: code other than Python cannot be told from chatter."""
    text = unified(completion)
    blocks = [dedent(match[1]) for match in FENCE.finditer(text) if match[1].strip()]
    found = (blocks[-1] if blocks else text).strip("\n")
    return Candidate(found + "\n") if found.strip() else Candidate(None, f"no {what} in the answer")


_READERS: Mapping[str, Callable[[str], Candidate]] = {
    "python_io": whole_program,
    "pytest": whole_program,
    "dafny": lambda completion: fenced(completion, "program"),
    "ast_grep": lambda completion: fenced(completion, "action"),
}
