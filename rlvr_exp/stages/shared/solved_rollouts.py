"""Solutions that a run has found: the answers of its rollouts that passed.

What such an answer does on a task's inputs is known without running it: it returned what every case expects. Of answers
that failed the outputs are not known, so they are left out, as are tasks whose test outputs are hidden.
"""

from collections.abc import Iterator, Mapping

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.records.rollout_files import RolloutRow, RunReader
from rlvr_exp.solutions.record import Solution, output_hash
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.tasks.formats.python_io import PythonProblem, expected_of


def solved(reader: RunReader, domain: Domain) -> Iterator[Solution | None]:
    """For every rollout its solution, or None. Raises InputError where the data are not the run's, or no Python on cases."""
    tasks = {task.id: task for found in domain.splits().values() for task in found}
    if not all(isinstance(task.problem, PythonProblem) for task in tasks.values()):
        what = "what a program returned is known of functions judged on cases"
        raise InputError(InputProblem("data", what, domain.name, "problems of verifier=python_io"))
    outputs: dict[str, tuple[str, ...]] = {}
    for row in reader.rows():
        task = _task_of(row, tasks)
        if task.id not in outputs:
            outputs[task.id] = _outputs(task)
        program = domain.parse(row.completion.text, task).text if row.completion.correct else None
        yield _solution(row, task, program, outputs[task.id], str(reader.directory)) if program else None


def _task_of(row: RolloutRow, tasks: Mapping[str, Task]) -> Task:
    name = row.completion.task.id
    if name not in tasks:
        what, remedy = "the data lacks a task of the run", "data.path=DIR, data.limit=0"
        raise InputError(InputProblem("data", what, name, "the data of the run", "", remedy))
    return tasks[name]


def _outputs(task: Task) -> tuple[str, ...]:
    """Empty where not all are known."""
    if getattr(task.inputs, "hidden", False):
        return ()
    return tuple(output_hash(expected_of(case)) for case in task.problem.cases)


def _solution(row: RolloutRow, task: Task, program: str, outputs: tuple[str, ...], run: str) -> Solution | None:
    if not outputs:
        return None
    known = {"family": task.family, "difficulty": task.difficulty, "run": run, "step": row.step}
    return Solution(task.id, program, row.verdict, outputs, **known)
