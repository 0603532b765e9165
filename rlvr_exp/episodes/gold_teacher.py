"""A teacher that knows: the data's own actions, one rule at a time, each verified, and `done` at the end."""

from collections.abc import Sequence

from rlvr_exp.episodes.trajectory import Step, Trajectory, step_of
from rlvr_exp.tasks.base import ContinuesEdits, Task
from rlvr_exp.verifiers.base import Request, Verifier

NAME = "golds"


def gold_trajectories(domain: ContinuesEdits, verifier: Verifier, tasks: Sequence[Task]) -> list[Trajectory]:
    """The trajectories of tasks that have golds, in their order; all are taken step by step together. One whose action makes no
    text ends there.

    Args:
        verifier: keeps outputs (rlvr_exp.verifiers.base.KeepsOutputs).
    """
    answers = {task.id: iter(domain.gold_steps(task)) for task in tasks}
    steps: dict[str, list[Step]] = {task.id: [] for task in tasks}
    live = list(tasks)
    while live:
        given = [(task, answer) for task in live if (answer := next(answers[task.id], None)) is not None]
        asked = [(task, answer, domain.parse(answer, task)) for task, answer in given]
        found = [verifier.submit(Request(task.problem, candidate)) for task, _, candidate in asked]
        live = []
        for (task, answer, candidate), verdict in zip(asked, (one.result() for one in found), strict=True):
            step = step_of(domain.state(task), answer, candidate.text, verdict, 0)
            steps[task.id].append(step)
            if step.after is not None:
                live.append(domain.after_step(task, step.after))
    return [Trajectory(task.id, 0, NAME, steps[task.id], domain.described(task)) for task in tasks if steps[task.id]]
