"""Verify the stored rollouts of a run with a new version of the verifier or other limits. No model, no torch.

Old and new verdicts are side by side in `rescored.jsonl`, row by row in the order of the rollouts, and changed verdicts
with the complete text in `changed.jsonl`; the run itself is read and never written. Equal answers to the same task are
verified once. Past `verifier.max_no_verdict_rate` it ends with exit 3, once every row has been processed.
"""

import json
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import Interrupted, RlvrError
from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.episodes.types import TRUNCATED
from rlvr_exp.evaluation.rescored import Rescored, change
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.resumable_jsonl import ResumableJsonl, shown
from rlvr_exp.records.rollout_files import RolloutRow, RunReader
from rlvr_exp.stages.shared.domain import build_domain
from rlvr_exp.stages.shared.stage_checks import check_rescored
from rlvr_exp.stages.shared.verifier_match import all_tasks, check_verifier_match
from rlvr_exp.stages.shared.verifier_setup import build_verifier, checked_description, system_metrics
from rlvr_exp.stages.verify import decides
from rlvr_exp.tasks.base import Candidate, Domain, Task
from rlvr_exp.verifiers.base import Request, Verdict, Verifier
from rlvr_exp.verifiers.futures import OrderedFutures, Pending, completed_future
from rlvr_exp.verifiers.guarded import NoVerdictRate

KEYS = ("id", "step", "task", "waited", "old", "new", "changed", "log")
VERDICT = ("outcome", "bucket", "rule", "passed", "total")
"""What is compared of a verdict."""
EVERY = 50
"""Rows between messages of progress."""


class RescoredFile(ResumableJsonl):
    """rescored.jsonl."""

    option = "rescore.output"

    @staticmethod
    def fits(row: Any) -> bool:
        return tuple(row) == KEYS


def run(config: Config, context: RunContext) -> StageResult:
    source = RunReader(Path(config.rescore.run))
    domain = build_domain(config, context)
    tasks = {task.id: task for task in all_tasks(domain)}
    fingerprint, total = source.fingerprint(), check_rescored(source, tasks)
    with build_verifier(config) as verifier:
        check_verifier_match(verifier, tasks.values())
        description = checked_description(verifier, context)
        provenance = {"rollouts": fingerprint, "verifier": decides(config, description)}
        target = Path(config.rescore.output or context.directory / "rescored.jsonl")
        with RescoredFile(target, provenance) as out:
            described = {"run": str(source.directory), "rollouts": fingerprint, "rows": total}
            manifest.update(context.directory, verifier=description, input=described, output=str(target))
            judging = Rescoring(domain, verifier, tasks, out, context, total, config.verifier.max_no_verdict_rate)
            return judging.run(source.rows())


class Rescoring:
    """A pass over the rollouts; rows that the output has already are counted and not verified a second time."""

    def __init__(
        self,
        domain: Domain,
        verifier: Verifier,
        tasks: Mapping[str, Task],
        out: RescoredFile,
        context: RunContext,
        total: int,
        max_rate: float,
    ):
        self._domain, self._verifier, self._tasks, self._out = domain, verifier, tasks, out
        self._context, self._total = context, total
        self._flight, self._rows = OrderedFutures(), deque[RolloutRow]()
        self._requested: dict[tuple[str, Candidate], Future[Verdict]] = {}
        self._no_verdict_rate = NoVerdictRate(verifier.name, max_rate, least=1)
        self._counted = Rescored()
        self._before = out.rows

    def run(self, rows: Iterator[RolloutRow]) -> StageResult:
        """Verify all rows. Raises GuardStop and Interrupted, with completed rows on the disk."""
        if self._before:
            self._context.progress(kind="note", text=f"resuming after the {self._before} rows of {self._out.path}")
        known = self._out.existing()
        self._progress()
        with open(self._context.directory / "changed.jsonl", "w", encoding="utf-8") as changed:
            self._changed = changed
            for index, row in enumerate(rows):
                if index < self._before:
                    self._count(row, next(known))
                    continue
                self._request(row)
                self._take_while(lambda: self._flight.full)
            self._take_while(lambda: len(self._flight) > 0)
        return self._finish()

    def _request(self, row: RolloutRow) -> None:
        task = self._tasks[row.completion.task.id]
        candidate = self._domain.parse(row.completion.text, task)
        if row.completion.truncated:
            verdict = completed_future(TRUNCATED)
        else:
            key = task.id, candidate
            if key not in self._requested:
                self._requested[key] = self._verifier.submit(Request(task.problem, candidate))
            verdict = self._requested[key]
        self._rows.append(row)
        self._flight.add(None, verdict, len(row.completion.text))

    def _take_while(self, waiting: Callable[[], bool]) -> None:
        while True:
            for pending in self._flight.take():
                self._answer(self._rows.popleft(), _verdict(pending))
            if self._context.interrupted:
                done = f"stopped after {self._out.rows} of {self._total} rows"
                raise Interrupted(
                    f"{done}; the same command with this rescore.output continues there: {self._out.path}"
                )
            if not waiting():
                return
            self._flight.wait()

    def _answer(self, row: RolloutRow, verdict: Verdict) -> None:
        old, new = ({name: getattr(one, name) for name in VERDICT} for one in (row.verdict, verdict))
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
        self._out.write(written)
        self._count(row, written)
        if self._out.rows % EVERY == 0:
            self._progress()

    def _count(self, row: RolloutRow, written: Mapping[str, Any]) -> None:
        self._counted.add(row, Verdict(**written["new"]))
        self._no_verdict_rate.count(written["new"]["outcome"], written["log"])
        if written["changed"] and not row.waited:
            complete = {**written, "old_log": row.verdict.log, "prompt": row.prompt, "completion": row.completion.text}
            self._changed.write(json.dumps(complete) + "\n")

    def _progress(self) -> None:
        with suppress(Interrupted):  # `_take_while` sees it too, with completed rows on the disk.
            self._context.progress(kind="phase", name="rescore", done=self._out.rows, total=self._total)

    def _finish(self) -> StageResult:
        self._progress()
        counted, directory = self._counted, self._context.directory
        write_json(directory / "rescore.json", counted.to_dict())
        write_text(directory / "rescore.md", counted.text())
        self._context.progress(kind="note", text=counted.text())
        distinct = {"distinct": float(len(self._requested)), "system/rows_from_before": float(self._before)}
        metrics = self._context.metrics = {**counted.metrics(), **distinct, **system_metrics(self._verifier)}
        self._no_verdict_rate.check()
        rates = counted.rates()
        return StageResult(
            before={"success": rates["old"]} if "old" in rates else {},
            after={"success": rates["new"]} if "new" in rates else {},
            metrics=metrics,
        )


def _verdict(pending: Pending) -> Verdict:
    """The verdict of a row; a failure of the verifier affects only its row."""
    try:
        return pending.verdict.result()
    except RlvrError:
        raise
    except Exception as fault:  # Logged in the row and, completely, in the log.
        traceback.print_exception(fault, file=sys.stderr)
        return Verdict("no_verdict", log=f"the verifier failed: {type(fault).__name__}: {fault}")
