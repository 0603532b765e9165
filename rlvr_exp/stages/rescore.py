"""Verify the stored rollouts of a run with a new version of the verifier or other limits. No model, no torch.

`rescored.jsonl` has old and new verdicts row by row, in the order of the rollouts. `changed.jsonl` has each changed
verdict with the full text. The stage never writes to the run itself. Equal answers to the same task are verified once.
If more rows than `verifier.max_no_verdict_rate` have no verdict, the stage ends with exit 3 after the last row.

A completion that was carried over counts in the step that sampled it. Rates are means over tasks with 95% intervals
over tasks. A completion without a verdict on one side enters no rate of that side.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rlvr_exp.config.schema import Config
from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.core.measures import counted
from rlvr_exp.core.statistics import mean_interval
from rlvr_exp.episodes.types import TRUNCATED
from rlvr_exp.evaluation.metrics import Rate
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.resumable_jsonl import ResumableJsonl, shown
from rlvr_exp.records.rollout_files import RolloutRow, RunReader
from rlvr_exp.stages.shared.data_and_verifier import (
    all_tasks,
    build_domain,
    build_verifier,
    check_verifier_match,
    checked_description,
    decides,
    system_metrics,
)
from rlvr_exp.stages.shared.start import check_rescored
from rlvr_exp.stages.verify import VerificationPass
from rlvr_exp.tasks.base import Candidate, Domain, Task
from rlvr_exp.verifiers.base import BUCKETS, Request, Verdict
from rlvr_exp.verifiers.futures import Pending, completed_future

KEYS = ("id", "step", "task", "waited", "old", "new", "changed", "log")

VERDICT, SCORE = "verdict", "score"
"""Kinds of change: another outcome, bucket or rule; or only another number of passed cases."""

FIELDS = ("outcome", "bucket", "rule", "passed", "total")
"""A comparison reads these fields of a verdict."""


class RescoredFile(ResumableJsonl):
    """The file `rescored.jsonl`."""

    option = "rescore.output"

    @staticmethod
    def fits(row: Any) -> bool:
        return tuple(row) == KEYS


ORDER = ("passed", *BUCKETS, "rejected", "no_verdict")


@dataclass
class _Task:
    """Counts of one task in one step: (passed, judged) on each side."""

    old: list[int] = field(default_factory=lambda: [0, 0])
    new: list[int] = field(default_factory=lambda: [0, 0])


class Rescored:
    """Collects completions with their old and new verdicts."""

    def __init__(self) -> None:
        self.table: Counter[tuple[str, str]] = Counter()
        """Number of completions by (old label, new label)."""
        self.scores = 0
        """Number of completions with the same verdict and another number of passed cases."""
        self._steps: dict[int, dict[str, _Task]] = defaultdict(lambda: defaultdict(_Task))

    def add(self, row: RolloutRow, new: Verdict) -> None:
        if row.waited:  # It stands in an earlier step's file already.
            return
        old = row.verdict
        self.table[label(old), label(new)] += 1
        self.scores += change(old, new) == SCORE
        counted = self._steps[row.step][row.completion.task.id]
        for side, verdict in ((counted.old, old), (counted.new, new)):
            if verdict.outcome != "no_verdict":
                side[0] += verdict.outcome == "passed"
                side[1] += 1

    @property
    def count(self) -> int:
        return self.table.total()

    @property
    def changed(self) -> int:
        """Return the number of completions with another outcome, bucket or rule."""
        return sum(count for (old, new), count in self.table.items() if old != new)

    def metrics(self) -> dict[str, float]:
        counts = {"completions": self.count, "changed": self.changed, "scores_changed": self.scores}
        counts |= {"gained": self._moved(to="passed"), "lost": self._moved(of="passed")}
        return {**counts, "agreement": 1 - self.changed / self.count if self.count else 1.0}

    def _moved(self, of: str = "", to: str = "") -> int:
        pairs = ((old, new, count) for (old, new), count in self.table.items() if old != new)
        return sum(count for old, new, count in pairs if of in ("", old) and to in ("", new))

    def rates(self) -> dict[str, Rate]:
        """Return the success over all steps by the old and by the new verdicts. A side without verdicts is left out."""
        whole: dict[str, _Task] = defaultdict(_Task)
        for tasks in self._steps.values():
            for name, count in tasks.items():
                for side in ("old", "new"):
                    mine, theirs = getattr(whole[name], side), getattr(count, side)
                    mine[0], mine[1] = mine[0] + theirs[0], mine[1] + theirs[1]
        return _rates(whole)

    def steps(self) -> dict[int, dict[str, Rate]]:
        """Return the success of each step on both sides."""
        return {step: _rates(tasks) for step, tasks in sorted(self._steps.items())}

    def to_dict(self) -> dict[str, Any]:
        rows = [{"old": old, "new": new, "completions": count} for (old, new), count in self.table.most_common()]
        steps = [{"step": step, **_plain(rates)} for step, rates in self.steps().items()]
        return {"metrics": self.metrics(), "rates": _plain(self.rates()), "table": rows, "steps": steps}

    def text(self) -> str:
        """Return the tables in Markdown that is also readable as text."""
        metrics = self.metrics()
        head = (
            f"{self.count} completions rescored: {metrics['agreement']:.2%} agree, {self.changed} changed "
            f"({metrics['gained']:.0f} pass now, {metrics['lost']:.0f} no longer), of the others {self.scores} passed "
            "another number of cases"
        )
        overall = " -> ".join(f"{name} {_shown(rate)}" for name, rate in self.rates().items())
        parts = [head, f"success: {overall or 'nothing was judged'}", self._buckets(), self._by_step()]
        return "\n\n".join(parts) + "\n"

    def _buckets(self) -> str:
        olds, news = ([*dict.fromkeys(sorted((pair[side] for pair in self.table), key=_place))] for side in (0, 1))
        rows = [[old, *(str(self.table[old, new] or "") for new in news)] for old in olds]
        return _table(["old \\ new", *news], rows)

    def _by_step(self) -> str:
        rows = [
            [str(step), *(_shown(rates[side]) if side in rates else "-" for side in ("old", "new"))]
            for step, rates in self.steps().items()
        ]
        return _table(["step", "success, old verdicts", "success, new verdicts"], rows)


def _rates(tasks: Mapping[str, _Task]) -> dict[str, Rate]:
    found = {}
    for side in ("old", "new"):
        counts = [count for task in tasks.values() if (count := getattr(task, side))[1]]
        if counts:
            interval = mean_interval([passed / judged for passed, judged in counts])
            found[side] = Rate(*interval, n=len(counts), samples=max(judged for _, judged in counts))
    return found


def label(verdict: Verdict) -> str:
    return f"rejected: {verdict.rule}" if verdict.outcome == "rejected" else verdict.reason


def change(old: Verdict, new: Verdict) -> str:
    """Return VERDICT, SCORE, or an empty string if the two verdicts agree."""
    if label(old) != label(new):
        return VERDICT
    return SCORE if (old.passed, old.total) != (new.passed, new.total) else ""


def run(config: Config, context: RunContext) -> StageResult:
    options = config.rescore
    assert options is not None  # The stage has its node.
    source = RunReader(Path(options.run))
    domain = build_domain(config, context)
    tasks = {task.id: task for task in all_tasks(domain)}
    fingerprint, total = source.fingerprint(), check_rescored(source, tasks)
    with build_verifier(config) as verifier:
        check_verifier_match(verifier, tasks.values())
        description = checked_description(verifier, context)
        provenance = {"rollouts": fingerprint, "verifier": decides(config, description)}
        target = Path(options.output or context.directory / "rescored.jsonl")
        with RescoredFile(target, provenance) as out:
            described = {"run": str(source.directory), "rollouts": fingerprint, "rows": total}
            manifest.update(context.directory, verifier=description, input=described, output=str(target))
            given = (verifier, out, context, total, config.verifier.max_no_verdict_rate)
            return Rescoring(domain, tasks, *given).run(source.rows())


class Rescoring(VerificationPass):
    """A pass over the rollouts. Equal programs of a task are verified once."""

    def __init__(self, domain: Domain, tasks: Mapping[str, Task], *given: Any):
        super().__init__("rescore", *given)
        self._domain, self._tasks, self._counted = domain, tasks, Rescored()
        self._requested: dict[tuple[str, Candidate], Future[Verdict]] = {}

    def run(self, rows: Iterator[RolloutRow]) -> StageResult:
        """Verify all rows. Before it raises GuardStop or Interrupted, it writes every completed row."""
        known = self.out.existing()
        self.show(now=True)
        with open(self.context.directory / "changed.jsonl", "w", encoding="utf-8") as changed:
            self._changed = changed
            for index, row in enumerate(rows):
                if index < self.before:
                    self._count(row, next(known))
                    continue
                self._request(row)
                self.take_while(lambda: self.flight.full)
            self.take_while(lambda: len(self.flight) > 0)
        self.show(now=True)
        counted, directory = self._counted, self.context.directory
        write_json(directory / "rescore.json", counted.to_dict())
        write_text(directory / "rescore.md", counted.text())
        self.context.progress(kind="note", text=counted.text())
        metrics = self.context.metrics = self.metrics()
        self.no_verdict_rate.check()
        rates = counted.rates()
        return StageResult(
            before={"success": rates["old"]} if "old" in rates else {},
            after={"success": rates["new"]} if "new" in rates else {},
            metrics=metrics,
        )

    def _request(self, row: RolloutRow) -> None:
        task = self._tasks[row.completion.task.id]
        candidate = self._domain.parse(row.completion.text, task)
        if row.completion.truncated:
            verdict = completed_future(TRUNCATED)
        else:
            key = task.id, candidate
            if key not in self._requested:
                self._requested[key] = self.submit(Request(task.problem, candidate))
            verdict = self._requested[key]
        self.flight.add(row, verdict, len(row.completion.text))

    def answer(self, pending: Pending, verdict: Verdict) -> None:
        row = pending.id
        old, new = ({name: getattr(one, name) for name in FIELDS} for one in (row.verdict, verdict))
        written = {
            "id": f"{row.step:06d}/{row.group}/{row.completion.sample}",
            "step": row.step,
            "task": row.completion.task.id,
            "waited": row.waited,
            "old": old,
            "new": new,
            "changed": change(row.verdict, verdict),
            "log": shown(verdict.log),
        }
        self.out.write(written)
        self._count(row, written)

    def _count(self, row: RolloutRow, written: Mapping[str, Any]) -> None:
        self._counted.add(row, Verdict(**written["new"]))
        self.no_verdict_rate.count(written["new"]["outcome"], written["log"])
        if written["changed"] and not row.waited:
            complete = {**written, "old_log": row.verdict.log, "prompt": row.prompt, "completion": row.completion.text}
            self._changed.write(json.dumps(complete) + "\n")

    def metrics(self) -> dict[str, Any]:
        distinct = {"distinct": float(len(self._requested)), "system/rows_from_before": float(self.before)}
        return {**self._counted.metrics(), **distinct, **system_metrics(self.verifier)}


def _plain(rates: Mapping[str, Rate]) -> dict[str, Any]:
    return {side: asdict(rate) for side, rate in rates.items()}


def _shown(rate: Rate) -> str:
    return f"{rate.value:.1%} [{rate.low:.1%}, {rate.high:.1%}], {counted(rate.n)}"


def _place(shown: str) -> tuple[int, str]:
    name = shown.partition(":")[0]
    return (ORDER.index(name) if name in ORDER else len(ORDER)), shown


def _table(head: list[str], rows: list[list[str]]) -> str:
    cells = [head, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    padded = [[text.ljust(width) for text, width in zip(row, widths, strict=True)] for row in cells]
    lines = [f"| {' | '.join(row)} |" for row in padded]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])
