"""`benchmark=adaptation`: test-time training against more plain samples, at equal core seconds for each task.

The tasks are the held-out tasks that FIRST plain samples do not solve. Adaptation goes first. The mean core seconds of its
tasks without success are the budget of a task for plain sampling. Both sides end a task when a program passes all shown
cases, and both vote. Core seconds count this process and the verifier's workers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import fmean

from rlvr_exp.config import benchmark as options
from rlvr_exp.config.model import Model
from rlvr_exp.config.stage_options import Infer
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.statistics import t_interval
from rlvr_exp.episodes.episode import Turn
from rlvr_exp.inference.adaptation import Adaptation, Lesson, TaskAdaptation
from rlvr_exp.inference.engine import Engine
from rlvr_exp.models.policy import Policy
from rlvr_exp.sandbox.tools import core_seconds
from rlvr_exp.tasks.base import Domain, ShowsCases, Task
from rlvr_exp.verifiers.base import Executor, Verifier, executor_of

FIRST = 64
"""Plain samples that select the tasks."""
PLAIN_ROUND, MOST_ROUNDS = 256, 64
"""Samples of a round of plain sampling, and the most rounds."""
ADAPTED, PLAIN = "adaptation", "plain samples"
Progress = Callable[[str, int, int], None]


class PlainRounds(Adaptation):
    """Rounds of samples without an adapter, until a program passes all shown cases or the seconds of the task are used."""

    def __init__(self, policy: Policy, executor: Executor, seconds: float):
        self.policy, self.executor, self._seconds = policy, executor, seconds

    @contextmanager
    def of_task(self, domain: ShowsCases, task: Task) -> Iterator[TaskAdaptation]:
        self.last = _PlainTask(self, domain, task, core_seconds() + self._seconds)
        yield self.last

    def update(self, lessons: Sequence[Lesson]) -> None:
        """Nothing is learned."""

    def passed_shown(self) -> None:
        """Nothing is counted."""


class _PlainTask(TaskAdaptation):
    def __init__(self, owner: Adaptation, domain: ShowsCases, task: Task, deadline: float):
        super().__init__(owner, domain, task)
        self._deadline = deadline

    def learn(self, turns: Sequence[Turn], last: bool) -> bool:
        super().learn(turns, last=True)
        return not (last or self.passed) and core_seconds() < self._deadline


@dataclass(frozen=True)
class Tried:
    """The result of one side on a task."""

    solved_with: int
    """The smallest number of voted answers that solves the task; 0 if none does."""
    passed: bool
    """Whether a program passes all pairs."""
    ended_early: bool
    """Whether a program passes all shown cases."""
    samples: int
    seconds: float


class TestTimeTraining(options.TestTimeTraining):
    def measure(
        self,
        policy: Callable[[], Policy],
        limits: Model,
        verifier: Verifier,
        domain: Domain,
        tasks: Sequence[Task],
        seed: int,
        progress: Progress,
    ) -> tuple[str, dict[str, float]]:
        """The report and its figures. `policy` loads the weights."""
        first = Infer(decoding="sample", samples=FIRST, batch_size=FIRST * 8)
        given = (limits, verifier, domain)
        left = []
        for number, solution in enumerate(Engine(policy(), first, *given, seed).solve_all(tasks), 1):
            left += [] if solution.passed else [tasks[number - 1]]
            progress("select", number, len(tasks))
        if not left:
            what, allowed = f"{FIRST} plain samples solve every task", "tasks that are harder for the policy"
            raise InputError(InputProblem("evaluation", what, f"{len(tasks)} tasks", allowed, "", "evaluation.tasks=0"))
        adapts = replace(first, samples=self.samples, vote=2, adapt="lora", adapt_rounds=self.rounds)
        adapted = self._side(Engine(policy(), adapts, *given, seed + 1), left, ADAPTED, progress)
        budget = fmean(one.seconds for one in [one for one in adapted if not one.ended_early] or adapted)
        rounds = replace(adapts, samples=PLAIN_ROUND * MOST_ROUNDS, adapt="none", adapt_rounds=MOST_ROUNDS)
        engine = Engine(policy(), rounds, *given, seed + 1)
        engine.adaptation = PlainRounds(engine.policy, executor_of(verifier, "benchmark"), budget)
        found = {ADAPTED: adapted, PLAIN: self._side(engine, left, PLAIN, progress)}
        return page(len(tasks), found), figures(len(tasks), found)

    def _side(self, engine: Engine, tasks: Sequence[Task], name: str, progress: Progress) -> list[Tried]:
        found = []
        for task in tasks:
            before = core_seconds()
            solution = engine.solve(task)
            seconds = core_seconds() - before
            assert engine.adaptation is not None
            last = engine.adaptation.last
            assert last is not None
            solved = (solution.voted.solved_with or 0) if solution.voted else 0
            found.append(Tried(solved, solution.passed, last.passed, last.samples, seconds))
            progress(name, len(found), len(tasks))
        return found


def figures(tasks: int, found: Mapping[str, Sequence[Tried]]) -> dict[str, float]:
    """Numbers of tasks and means, by side."""
    values: dict[str, float] = {"tasks": tasks, "unsolved": len(found[ADAPTED])}
    for name, side in found.items():
        own = {
            "solved_with_1": sum(one.solved_with == 1 for one in side),
            "solved_with_2": sum(one.solved_with > 0 for one in side),
            "passed": sum(one.passed for one in side),
            "seconds": fmean(one.seconds for one in side),
            "samples": fmean(one.samples for one in side),
        }
        values |= {f"{name.replace(' ', '_')}/{key}": value for key, value in own.items()}
    return values


def page(tasks: int, found: Mapping[str, Sequence[Tried]]) -> str:
    """The report: a row for each side, then the paired difference."""
    values, left = figures(tasks, found), len(found[ADAPTED])
    rows = []
    for name in found:
        own = {key.partition("/")[2]: value for key, value in values.items() if key.startswith(name.replace(" ", "_"))}
        counts = " | ".join(f"{own[key]:.0f}" for key in ("solved_with_1", "solved_with_2", "passed"))
        rows.append(f"| {name} | {counts} | {own['samples']:.0f} | {own['seconds']:.2f} |")
    pairs = zip(found[ADAPTED], found[PLAIN], strict=True)
    gain = t_interval([100 * ((one.solved_with > 0) - (other.solved_with > 0)) for one, other in pairs])
    head = "| | vote, one answer | vote, two answers | a program passes | samples a task | core seconds a task |"
    return "\n".join(
        [
            f"{left} of {tasks} held-out tasks that {FIRST} plain samples do not solve.",
            *("", head, "| --- | --- | --- | --- | --- | --- |", *rows, ""),
            f"Adaptation gains {gain.value:+.1f} points with two answers (95% CI {gain.low:.1f} to {gain.high:.1f}).",
        ]
    )
