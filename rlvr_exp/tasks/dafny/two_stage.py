"""Both roles on one set of programs: the writer's bodies become the annotator's tasks."""

from dataclasses import dataclass, replace
from typing import Any

from rlvr_exp.tasks.base import Candidate, Domain, Task
from rlvr_exp.tasks.dafny.example import DafnyExample
from rlvr_exp.tasks.dafny.parse_body import body_of
from rlvr_exp.tasks.dafny.role_examples import RoleExample


@dataclass(frozen=True)
class TwoStage:
    """The domain of the writer, whose tasks are those of a cascade, and that of the annotator, which words and parses
    the annotator's tasks about them."""

    writer: Domain
    annotator: Domain

    def example(self, task: Task) -> DafnyExample:
        return task.inputs.example

    def body(self, completion: str, task: Task) -> Candidate:
        """The body in a writer's completion."""
        return body_of(completion, self.example(task))

    def gold_body(self, task: Task) -> str:
        """The body of the data, without its annotations."""
        return self.example(task).body

    def program(self, task: Task, body: str | None) -> str:
        """The complete program with a body; None: with the hole."""
        return self.example(task).program(body)

    def annotation(self, task: Task, body: str, problem: Any) -> Task:
        """The annotator's task for a body of the task: a task with the same id, without a gold."""
        part = RoleExample("annotator", replace(self.example(task), body=body))
        return replace(task, inputs=part, problem=problem, gold=None, negatives=())
