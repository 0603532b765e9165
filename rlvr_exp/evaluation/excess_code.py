"""Excess code: the added code of a passing edit that no test runs, as CanItEdit counts it (arXiv 2312.12450) and
strictly.

CanItEdit takes the lines that the coverage report lists as missing in the program with its tests. It divides them by
all lines that `difflib.Differ` prints for before and after, including unchanged lines and hints, so its figure shrinks
with the length of the program. The strict figure considers the statements that begin on an added line. It is the share
of these that no test runs, and it ignores the pragmas of the program.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any

from rlvr_exp.records.rollout_files import EvalSample
from rlvr_exp.rollouts.distributed import all_gather_object, interleave, rank, ranks
from rlvr_exp.tasks.base import Candidate, EditWithTests, HasEditTests, Task
from rlvr_exp.verifiers.base import Executor, Request
from rlvr_exp.verifiers.futures import completed_future, then
from rlvr_exp.verifiers.line_coverage import LineCoverage, LineCoverageRunner

Counts = dict[str, int] | None


@dataclass(frozen=True)
class Diff:
    """The difference of two texts by `difflib.Differ`."""

    lines: int
    """Number of printed lines."""
    added: frozenset[int]
    """Line numbers of the second text, from 1, that are not in the first text."""


def diff(before: str, after: str) -> Diff:
    shown = list(difflib.Differ().compare(before.splitlines(), after.splitlines()))
    of_after = [line for line in shown if line[:2] in ("  ", "+ ")]
    return Diff(len(shown), frozenset(n for n, line in enumerate(of_after, 1) if line[:2] == "+ "))


def counts(edit: EditWithTests, lines: LineCoverage | None) -> Counts:
    """Return the counts behind the excess code of a passing edit: `uncovered` of `diff` lines, and `uncovered_added` of
    `added` statements. None if the lines could not be measured."""
    if lines is None:
        return None
    found = diff(edit.before, edit.after)
    return {
        "uncovered": len(lines.listed),
        "diff": found.lines,
        "uncovered_added": len(lines.not_run & found.added),
        "added": len(lines.statements & found.added),
    }


@dataclass(frozen=True)
class _Measured:
    """Passing completions of a task and the runs of their programs."""

    runs: Mapping[str, Future[Counts]]
    """Counts by answer."""
    answers: Mapping[int, str]
    """Answers by sample."""

    def counted(self) -> dict[int, Counts]:
        """Return the counts by sample, after all programs have ended."""
        return {sample: self.runs[answer].result() for sample, answer in self.answers.items()}


class EvaluationExcess:
    """The excess code of the sampled completions that passed an evaluation. All ranks keep it together. Each rank runs
    the programs of its share of the tasks, and each distinct answer of a task once.

    Args:
        executor: makes the edited program of an action. It is required if the answers of the domain are not programs.
    """

    def __init__(self, runner: LineCoverageRunner, domain: HasEditTests, executor: Executor | None = None):
        self._runner, self._domain, self._executor = runner, domain, executor
        self._begun: list[_Measured] = []
        self._tasks: list[str] = []

    def answered(self, samples: Sequence[EvalSample]) -> None:
        """Begin to run the passing programs among all samples of a task."""
        if len(self._tasks) % ranks() == rank():
            self._begun.append(self._begin(samples))
        self._tasks.append(samples[0].completion.task.id)

    def marked(self, results: Iterable[EvalSample]) -> list[EvalSample]:
        """Return the samples. Each measured sample has its counts under `excess_code`."""
        shares = all_gather_object([task.counted() for task in self._begun])
        found = dict(zip(self._tasks, interleave(shares), strict=True))
        return [_marked(one, found[one.completion.task.id]) for one in results]

    def _begin(self, samples: Sequence[EvalSample]) -> _Measured:
        counted = {one.completion.sample: one.completion for one in samples if counts_for_excess(one)}
        answers = {sample: str(one.candidate.text) for sample, one in counted.items()}
        distinct = {answers[sample]: one for sample, one in counted.items()}
        return _Measured({text: self._counts(one.task, one.candidate) for text, one in distinct.items()}, answers)

    def _counts(self, task: Task, candidate: Candidate) -> Future[Counts]:
        if self._executor is None:
            return self._of_program(task, str(candidate.text))
        edited = self._executor.execute(Request(task.problem, candidate))
        return then(edited, lambda found: self._of_program(task, *found.outputs) if found.outputs else None)

    def _of_program(self, task: Task, program: str) -> Future[Counts]:
        edit = self._domain.edit_with_tests(task, program)
        if edit is None:
            return completed_future(None)
        return then(self._runner.measure(edit.script), lambda lines: counts(edit, lines))


def counts_for_excess(one: EvalSample) -> bool:
    """Return whether the excess code of a sample enters the figures: the sample is not greedy, and it passed."""
    return one.mode == "sampled" and one.completion.correct


def _marked(one: EvalSample, found: Mapping[int, Counts]) -> EvalSample:
    measured = found.get(one.completion.sample) if counts_for_excess(one) else None
    return one if measured is None else replace(one, about={**(one.about or {}), "excess_code": measured})


def excess_section(results: Sequence[EvalSample]) -> dict[str, Any]:
    """Return the number of passing completions, the number of measured ones, and the version of coverage."""
    passed = [one for one in results if counts_for_excess(one)]
    measured = sum("excess_code" in (one.about or {}) for one in passed)
    return {"passed": len(passed), "measured": measured, "coverage": metadata.version("coverage")}
