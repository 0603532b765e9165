"""Both roles on one set of programs: what a writer wrote becomes what an annotator is asked."""

from dataclasses import dataclass, replace
from typing import Any

from rlvr_exp.tasks.base import Candidate, Domain, Task
from rlvr_exp.tasks.dafny.example import DafnyExample
from rlvr_exp.tasks.dafny.parse_body import body_of
from rlvr_exp.tasks.dafny.role_examples import RoleExample


@dataclass(frozen=True)
class TwoStage:
    """The domain of the writer, whose tasks are those of a cascade, and that of the annotator, which words and reads what
    it is asked about them."""

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
        """The whole program with a body; None: with the hole."""
        return self.example(task).program(body)

    def annotation(self, task: Task, body: str, problem: Any) -> Task:
        """What the annotator is asked about a body of the task: a task by the same id, without a gold of its own."""
        part = RoleExample("annotator", replace(self.example(task), body=body))
        return replace(task, inputs=part, problem=problem, gold=None, negatives=())
