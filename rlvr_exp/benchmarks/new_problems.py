"""`benchmark=new_problems`: held-out tasks that a trained policy solves within a few samples, and the base policy not within many.

A policy that only prefers better the answers that its base already finds solves no such task: it turns 1,024 guesses into 8. The
base is sampled further only on the tasks that decide: those that some trained policy solves within the few samples and the base does
not, and until its first success. Sample i of a task is the same draw in every run with the same seed, as in `+stage=evaluate`.

The outcomes of each policy's samples are kept in a file that is named by its weights. A run continues it, also after `kill -9`, and
samples nothing twice.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlvr_exp.config import benchmark as options
from rlvr_exp.core.statistics import wilson
from rlvr_exp.episodes.types import Completion
from rlvr_exp.records.resumable_jsonl import ResumableJsonl
from rlvr_exp.tasks.base import Task

FIRST, ROUND = 8, 64
"""Samples of the first round, and of each later one ends at a multiple of this number. Between rounds solved tasks are left out."""
Answer = Callable[[Sequence[tuple[Task, int]]], Sequence[Completion]]
"""Sample and verify the completion of each task with this index, in order."""
Progress = Callable[[str, int, int], None]


class Attempts(ResumableJsonl):
    """The outcomes of a policy's samples. A row holds consecutive samples of one task.

    Args:
        answer: samples with the policy.
        batch_size: completions sampled at once.
    """

    option = "benchmark.state"

    def __init__(self, path: Path, provenance: Mapping[str, Any], answer: Answer, batch_size: int):
        super().__init__(path, provenance)
        self._answer, self._batch_size = answer, batch_size
        self._sampled = Counter[str]()
        self._first_success: dict[str, int] = {}
        self.completions = self.no_verdict = 0
        for row in self.existing():
            self._count(row)

    @staticmethod
    def fits(row: Any) -> bool:
        return isinstance(row, dict) and row.keys() == {"task", "stop", "passed", "no_verdict"}

    def solved(self, task: Task, samples: int) -> bool:
        """Whether one of the first samples passed."""
        return self._first_success.get(task.id, samples) < samples

    def sample(self, tasks: Sequence[Task], samples: int, progress: Progress) -> None:
        """Sample each task so many times, or until the round of its first success.

        Args:
            progress: called after each batch with the round, its tasks done, and its tasks.
        """
        for end in _rounds(samples):
            open_tasks = [one for one in tasks if self._sampled[one.id] < end and one.id not in self._first_success]
            done = 0
            for batch in self._batches(open_tasks, end):
                for row in self._rows(batch, end):
                    self.write(row)
                    self._count(row)
                done += len(batch)
                progress(f"up to sample {end}", done, len(open_tasks))

    def _batches(self, tasks: Sequence[Task], end: int) -> Iterator[list[Task]]:
        batch, size = list[Task](), 0
        for task in tasks:
            more = end - self._sampled[task.id]
            if batch and size + more > self._batch_size:
                yield batch
                batch, size = [], 0
            batch.append(task)
            size += more
        if batch:
            yield batch

    def _rows(self, tasks: Sequence[Task], end: int) -> list[dict[str, Any]]:
        asked = [(task, index) for task in tasks for index in range(self._sampled[task.id], end)]
        answers = iter(self._answer(asked))
        rows = []
        for task in tasks:
            own = {index: next(answers) for index in range(self._sampled[task.id], end)}
            silent = [index for index, one in own.items() if one.verdict.outcome == "no_verdict"]
            passed = [index for index, one in own.items() if one.correct]
            rows.append({"task": task.id, "stop": end, "passed": passed, "no_verdict": len(silent)})
        return rows

    def _count(self, row: Mapping[str, Any]) -> None:
        name = row["task"]
        self.completions += row["stop"] - self._sampled[name]
        self._sampled[name] = row["stop"]
        self.no_verdict += row["no_verdict"]
        if row["passed"]:
            self._first_success.setdefault(name, min(row["passed"]))


def _rounds(samples: int) -> list[int]:
    """The last sample of each round."""
    return [end for end in (FIRST, *range(ROUND, samples, ROUND)) if end < samples] + [samples]


class NewProblems(options.NewProblems):
    def counts(self, tasks: Sequence[Task], base: Attempts, trained: Attempts, samples: int) -> dict[str, int]:
        """Tasks by who solves them: `solved` by the trained policy within so many samples, and of these by the base
        `within` as many, `later`, or not at all (`new`). `lost`: only by the base, within as many."""
        own = [task for task in tasks if trained.solved(task, samples)]
        within = [task for task in own if base.solved(task, samples)]
        found = [task for task in own if base.solved(task, self.base_samples)]
        lost = [task for task in tasks if base.solved(task, samples) and not trained.solved(task, samples)]
        return {
            "solved": len(own),
            "within": len(within),
            "later": len(found) - len(within),
            "new": len(own) - len(found),
            "lost": len(lost),
        }

    def page(self, tasks: int, solved: int, samples: int, found: Mapping[str, Mapping[str, int]]) -> str:
        """The table.

        Args:
            solved: tasks that the base solves: within `samples` if trained policies are compared, else within
                `base_samples`.
            found: the counts of each trained policy.
        """
        many, few = f"{self.base_samples:,}", f"{samples:,}"
        if not found:
            return f"{tasks:,} held-out tasks; within {many} samples the base solves {_share(solved, tasks)}"
        titles = [f"solved within {few}", f"base within {few}", f"base within {many}", f"base not within {many} (new)"]
        lines = [
            f"{tasks:,} held-out tasks; within {few} samples the base solves {_share(solved, tasks)}",
            "",
            f"| policy | {' | '.join(titles)} | only base, within {few} |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for name, one in found.items():
            cells = [_share(one[key], tasks) for key in ("solved", "within", "later", "new", "lost")]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        return "\n".join([*lines, "", "Counts of tasks, and their shares with 95% intervals (Wilson)."])


def _share(count: int, tasks: int) -> str:
    share = wilson(count, tasks)
    return f"{count} ({100 * share.value:.1f}%, {100 * share.low:.1f} to {100 * share.high:.1f})"
