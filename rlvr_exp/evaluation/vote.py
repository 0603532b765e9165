"""Programs vote on the outputs of held-back inputs. Equal outputs add up, weighted by the shown cases that their
programs solve.

The weight of an output is the number of completions that give it, plus 1000 times their mean share of solved shown
cases (SOAR, arXiv 2507.14172). SOAR weighs the outputs of all test inputs of a task together. Here each input has its
own vote, as ARC judges it, so a program that fails on one input still counts on another.

A vote is a function of ballots, and ballots have no expected outputs. `solved_with` compares the result of a vote with
these.

`Polls` runs the programs of completions on the shown data of their tasks and takes the votes.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial

from rlvr_exp.episodes.types import TRUNCATED, Completion
from rlvr_exp.records.rollout_files import EvalSample
from rlvr_exp.rollouts.distributed import all_gather_object, interleave, rank, ranks
from rlvr_exp.tasks.base import HoldsBackCases, ShownTask, Task
from rlvr_exp.verifiers.base import Execution, Executor, Request
from rlvr_exp.verifiers.compare import equal
from rlvr_exp.verifiers.futures import then

ACCURACY_WEIGHT = 1000
"""Weight of a mean share of 1 of the shown cases, in votes."""


@dataclass(frozen=True)
class Ballot:
    """The outputs of a completion's program."""

    program: str
    outputs: tuple[Hashable | None, ...]
    """Answer to each held-back input; None if it has no answer."""
    shown_right: int
    """Number of shown cases that it solves."""


@dataclass(frozen=True)
class VotedAnswer:
    """An output and the completions that give it."""

    output: Hashable
    votes: int
    """Number of these completions."""
    shown_right: float
    """Mean share of the shown cases that they solve, in [0, 1]."""
    program: str
    """Represents these programs: it solves the most shown cases, then is the shortest, then the first in the order of
    texts."""

    @property
    def weight(self) -> float:
        return self.votes + ACCURACY_WEIGHT * self.shown_right


def vote(ballots: Sequence[Ballot], inputs: int, shown: int, answers: int) -> tuple[tuple[VotedAnswer, ...], ...]:
    """Return the answers of most weight for each held-back input, the best first. There may be fewer than `answers`.

    Ties are broken by the length and the text of the representing programs. These differ, so the order of the ballots
    has no effect.

    Args:
        inputs: number of held-back inputs.
        shown: number of shown cases.
        answers: maximum number of answers to an input.
    """
    return tuple(_of_input(ballots, place, shown)[:answers] for place in range(inputs))


def _of_input(ballots: Sequence[Ballot], place: int, shown: int) -> tuple[VotedAnswer, ...]:
    groups: dict[Hashable, list[Ballot]] = defaultdict(list)
    for one in ballots:
        if one.outputs[place] is not None:
            groups[one.outputs[place]].append(one)
    found = []
    for output, group in groups.items():
        best = min(group, key=lambda one: (-one.shown_right, len(one.program), one.program))
        right = sum(one.shown_right for one in group)  # Of integers: no order of addition changes it.
        found.append(VotedAnswer(output, len(group), right / (len(group) * shown), best.program))
    return tuple(sorted(found, key=lambda one: (-one.weight, len(one.program), one.program)))


def solved_with(voted: Sequence[Sequence[VotedAnswer]], right: Sequence[Hashable]) -> int:
    """Return the smallest number of answers per input that includes the correct one for every input; 0 if there is
    none.

    Args:
        voted: answers to each input, from `vote`.
        right: correct answer to each input.
    """
    places = [
        next((place for place, one in enumerate(answers, 1) if one.output == wanted), 0)
        for answers, wanted in zip(voted, right, strict=True)
    ]
    return max(places) if all(places) else 0


@dataclass(frozen=True)
class Voted:
    """The vote on a task."""

    answers: tuple[tuple[VotedAnswer, ...], ...]
    """Answers to each held-back input, the best first."""
    solved_with: int | None
    """See rlvr_exp.evaluation.vote.solved_with. None if the correct answers are hidden."""


class Polls:
    """Votes of tasks whose programs run meanwhile in other processes.

    Each distinct program of a task runs once, on the shown data of the task. Therefore no part of a vote can depend on
    the expected output of a held-back input. A completion without a program, or cut off at its limit, has no vote.

    Args:
        domain: of all tasks.
        answers: maximum number of answers to an input.
    """

    def __init__(self, executor: Executor, domain: HoldsBackCases, answers: int):
        self._executor, self._domain, self._answers = executor, domain, answers
        self._begun: list[_Poll] = []

    def add(
        self, task: Task, completions: Sequence[Completion], known: Mapping[str, Future[Execution]] | None = None
    ) -> None:
        """Begin to run the programs of a task. `known`: executions on its shown data that need no other run, by
        program."""
        shown = self._domain.shown_task(task)
        voters = [one.candidate for one in completions if one.verdict != TRUNCATED and one.candidate.text is not None]
        runs = {}
        for candidate in voters:
            text = str(candidate.text)
            if text not in runs:
                read = partial(ballot, self._domain, shown, text)
                run = (known or {}).get(text) or self._executor.execute(Request(shown.problem, candidate))
                runs[text] = then(run, read)
        self._begun.append(_Poll(task, shown, [str(one.text) for one in voters], runs))

    def close(self) -> list[Voted | None]:
        """Return the vote on each task, in the order of `add`, after all programs have ended. None if the executor gave
        no verdict on a program, because the vote would lack it."""
        return [self._counted(one) for one in self._begun]

    def _counted(self, poll: "_Poll") -> Voted | None:
        ballots = {text: run.result() for text, run in poll.runs.items()}
        given = [one for text in poll.programs if (one := ballots[text]) is not None]
        if len(given) < len(poll.programs):
            return None
        held_back = len(poll.shown.problem.cases) - poll.shown.shown
        voted = vote(given, held_back, poll.shown.shown, self._answers)
        right = self._domain.held_back(poll.task)
        return Voted(voted, None if right is None else solved_with(voted, right))


@dataclass(frozen=True)
class _Poll:
    """A task and the runs of its programs."""

    task: Task
    shown: ShownTask
    programs: Sequence[str]
    """Programs of the completions that have a vote."""
    runs: Mapping[str, Future[Ballot | None]]
    """Runs by program."""


def ballot(domain: HoldsBackCases, task: ShownTask, program: str, run: Execution) -> Ballot | None:
    """Return the ballot of a program, from its outputs; None if the executor broke down. It ignores the rest of the
    verdict: the problem expects no output for a held-back input, so the verdict counts a missing output as correct."""
    if run.verdict.outcome == "no_verdict":
        return None
    problem = task.problem
    count = len(problem.cases)
    outputs = run.outputs or (None,) * count
    cases = enumerate(zip(outputs[: task.shown], problem.cases[: task.shown], strict=True))
    right = sum(
        run.returned(place) and equal(output, case.expected, *problem.comparison) for place, (output, case) in cases
    )
    return Ballot(program, tuple(map(domain.answer, outputs[task.shown :])), right)


class EvaluationVote:
    """The votes of the sampled completions of an evaluation. All ranks keep them together. Each rank runs the programs
    of its share of the tasks."""

    def __init__(self, executor: Executor, domain: HoldsBackCases, answers: int):
        self._polls, self._answers = Polls(executor, domain, answers), answers
        self._tasks: list[str] = []

    def answered(self, samples: Sequence[EvalSample]) -> None:
        """Begin the vote of a task with all its samples."""
        task = samples[0].completion.task
        if len(self._tasks) % ranks() == rank():
            self._polls.add(task, [one.completion for one in samples if one.mode == "sampled"])
        self._tasks.append(task.id)

    def marked(self, results: Iterable[EvalSample]) -> list[EvalSample]:
        """Return the samples. If its task has a vote, each sampled one has the result under `voted`."""
        outcomes = [None if one is None else one.solved_with for one in self._polls.close()]
        found = dict(zip(self._tasks, interleave(all_gather_object(outcomes)), strict=True))
        return [self._marked(one, found[one.completion.task.id]) for one in results]

    def _marked(self, one: EvalSample, solved: int | None) -> EvalSample:
        if one.mode != "sampled" or solved is None:
            return one
        return replace(one, about={**(one.about or {}), "voted": {"solved_with": solved, "answers": self._answers}})
