"""Runs the programs of completions on what their tasks show, and takes their votes."""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from rlvr_exp.episodes.types import TRUNCATED, Completion
from rlvr_exp.evaluation.vote import Ballot, VotedAnswer, solved_with, vote
from rlvr_exp.records.rollout_files import EvalSample
from rlvr_exp.rollouts.distributed import all_gather_object, interleave, shard
from rlvr_exp.tasks.base import Domain, ShownTask, Task
from rlvr_exp.verifiers.base import Request
from rlvr_exp.verifiers.compare import equal
from rlvr_exp.verifiers.execution import Execution, Executor

AT_ONCE = 64
"""Tasks whose programs are in flight together: enough to keep workers busy, few enough to hold their outputs."""


@dataclass(frozen=True)
class Voted:
    """The vote on a task."""

    answers: tuple[tuple[VotedAnswer, ...], ...]
    """To each held-back input, the best first."""
    solved_with: int | None
    """See rlvr_exp.evaluation.vote.solved_with; None: the right answers are hidden."""


def votes(
    executor: Executor, domain: Domain, asked: Sequence[tuple[Task, Sequence[Completion]]], answers: int
) -> list[Voted | None]:
    """The vote of each task's completions, in order; None where the executor gave a program no verdict, since the vote would
    be one of fewer.

    Each distinct program of a task is run once, in a new process, on what the task shows: no part of a vote can depend on
    what is expected of a held-back input. A completion without a program, or cut off at its limit, has no vote.

    Args:
        domain: of all tasks; one that holds cases back.
        answers: the most answers to an input.
    """
    found: list[Voted | None] = []
    for start in range(0, len(asked), AT_ONCE):
        begun = [_Polls(executor, domain, *one) for one in asked[start : start + AT_ONCE]]
        found += [one.close(answers) for one in begun]
    return found


class _Polls:
    """A task whose programs are being run."""

    def __init__(self, executor: Executor, domain: Domain, task: Task, completions: Sequence[Completion]):
        self._domain, self._task, self._shown = domain, task, domain.shown_task(task)
        voters = [one.candidate for one in completions if one.verdict != TRUNCATED and one.candidate.text is not None]
        self._programs = [str(one.text) for one in voters]
        self._runs: dict[str, Future[Execution]] = {
            text: executor.execute(Request(self._shown.problem, candidate))
            for text, candidate in dict(zip(self._programs, voters, strict=True)).items()
        }

    def close(self, answers: int) -> Voted | None:
        """Wait for the programs, then count."""
        runs = {text: run.result() for text, run in self._runs.items()}
        if any(run.verdict.outcome == "no_verdict" for run in runs.values()):
            return None
        ballots = {text: ballot(self._domain, self._shown, text, run) for text, run in runs.items()}
        held_back = len(self._shown.problem.cases) - self._shown.shown
        voted = vote([ballots[text] for text in self._programs], held_back, self._shown.shown, answers)
        right = self._domain.held_back(self._task)
        return Voted(voted, None if right is None else solved_with(voted, right))


def ballot(domain: Domain, task: ShownTask, program: str, run: Execution) -> Ballot:
    """What a program says, from its outputs. Its verdict has no part: it counts a held-back input where nothing was returned,
    since nothing is what the problem expects there."""
    problem = task.problem
    count = len(problem.cases)
    outputs = run.outputs or (None,) * count
    cases = zip(outputs[: task.shown], problem.cases[: task.shown], strict=True)
    right = sum(equal(output, case.expected, problem.strict, problem.atol) for output, case in cases)
    return Ballot(program, tuple(map(domain.answer, outputs[task.shown :])), right)


def with_votes(executor: Executor, domain: Domain, results: Sequence[EvalSample], answers: int) -> list[EvalSample]:
    """The samples of an evaluation; each sampled one says under `voted` how the vote of its task's went, where there was one.

    All ranks call this together; each runs the programs of its share of the tasks.
    """
    of_task: dict[str, list[Completion]] = {}
    for one in results:
        if one.mode == "sampled":
            of_task.setdefault(one.completion.task.id, []).append(one.completion)
    names = list(of_task)
    asked = [(of_task[name][0].task, of_task[name]) for name in shard(names)]
    outcomes = [None if one is None else one.solved_with for one in votes(executor, domain, asked, answers)]
    found = dict(zip(names, interleave(all_gather_object(outcomes)), strict=True))
    return [_with_vote(one, found.get(one.completion.task.id), answers) for one in results]


def _with_vote(one: EvalSample, solved: int | None, answers: int) -> EvalSample:
    if one.mode != "sampled" or solved is None:
        return one
    return replace(one, about={**(one.about or {}), "voted": {"solved_with": solved, "answers": answers}})
