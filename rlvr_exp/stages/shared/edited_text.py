"""Edits with tests as tasks of their edited text: tests judge a program, whatever form an answer has."""

from dataclasses import replace

from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.tasks.formats.ast_grep import AstGrepProblem


def as_edited_text(task: Task) -> tuple[Task, Candidate] | None:
    """The task, answered by the edited text, and the wanted text; None of a task that is no edit with tests and such a text."""
    problem = task.problem
    if not isinstance(problem, AstGrepProblem) or not problem.tests or not problem.after:
        return None
    return replace(task, problem=replace(problem, answer="text")), Candidate(problem.after)
