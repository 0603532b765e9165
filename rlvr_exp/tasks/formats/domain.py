"""Tasks that come as rows of a file: a problem of a format without a candidate, with its prompt.

A row's own `prompt` is used unchanged, but for a line end where it has none. Without it the prompt is written from the problem, and then shows what verifies
the row (`Format.prompt`): give a prompt where that would reveal too much.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_exp.tasks.base import Candidate, Domain, Task
from rlvr_exp.tasks.formats.base import Format
from rlvr_exp.tasks.formats.fields import Fields, optional_text
from rlvr_exp.tasks.formats.rows import FORMATS


def prompt_of(fields: Fields, form: Format, problem: Any) -> str:
    """The prompt of a row. Raises Fault."""
    given = optional_text(fields, "prompt")
    return form.prompt(problem) if given is None else given.removesuffix("\n") + "\n"


class RowDomain(Domain):
    """The domain of rows in one format, by its name."""

    def __init__(self, name: str):
        self.name = name
        self._format = FORMATS[name]

    def splits(self) -> Mapping[str, Sequence[Task]]:
        return {}

    def task(self, fields: Fields) -> Task:
        """The task of a row. Raises Fault."""
        problem = self._format.read_problem(fields)
        return Task(str(fields["id"]), self.name, 0.0, prompt_of(fields, self._format, problem), problem)

    def task_prompt(self, task: Task) -> str:
        return task.inputs

    def parse(self, completion: str, task: Task) -> Candidate:
        return self._format.parse(completion, task.problem)
