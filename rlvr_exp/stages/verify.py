"""Verify candidates from a file. Verdicts have the order of the rows. No model, no torch.

Every problem that can be detected early is reported before the first row is verified. A row that cannot be read gets
`no_verdict`. If more rows than `verifier.max_no_verdict_rate` have no verdict, the stage ends with exit 3 after the
last row.
"""

import sys
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from rlvr_exp.config.schema import Config
from rlvr_exp.config.stage_options import SAMPLES
from rlvr_exp.config.tree import PACKAGE
from rlvr_exp.core.errors import InputError, InputProblem, Interrupted, RlvrError
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.resumable_jsonl import ResumableJsonl, VerdictCounter, VerdictFile, row_of
from rlvr_exp.stages.shared.data_and_verifier import build_verifier, checked_description, decides, system_metrics
from rlvr_exp.tasks.formats.rows import FORMATS, Malformed, read_row
from rlvr_exp.tasks.rows import RowLine, fingerprint, lines
from rlvr_exp.verifiers.base import Request, Verdict, Verifier
from rlvr_exp.verifiers.futures import OrderedFutures, Pending, completed_future
from rlvr_exp.verifiers.guarded import NoVerdictRate

EVERY_S = 0.5
"""Progress messages are at least this many seconds apart."""

DRAIN_S = 10.0
"""An interrupted run waits this many seconds for pending rows that precede completed ones."""


def run(config: Config, context: RunContext) -> StageResult:
    options = config.verify
    assert options is not None  # The stage has its node.
    with build_verifier(config) as verifier:
        row_format = format_of(verifier)
        source = source_of(options.input, row_format)
        description = checked_description(verifier, context)
        found = fingerprint(source)
        target = Path(options.output or context.directory / "verdicts.jsonl")
        provenance = {
            "input": found.hash,
            "verifier": decides(config, description),
            "max_row_mb": options.max_row_mb,
        }
        with VerdictFile(target, provenance) as out:
            described = {"path": str(source), "hash": found.hash, "rows": found.rows}
            manifest.update(context.directory, verifier=description, input=described, output=str(target))
            given = (verifier, out, context, found.rows, config.verifier.max_no_verdict_rate)
            return RowVerification(row_format, *given).run(lines(source, options.max_row_mb << 20))


def format_of(verifier: Verifier) -> str:
    """Return the row format of a verifier. Raises InputError for a verifier that names none."""
    name = verifier.row_format or verifier.name
    if name not in FORMATS:
        remedy = "give the class an attribute row_format, the name of the format that it takes"
        raise InputError(
            InputProblem("verifier", "takes no rows of a file", verifier.name, ", ".join(FORMATS), "", remedy)
        )
    return name


def source_of(given: str, row_format: str) -> Path:
    """Return the file to read. Raises InputError if samples are requested and none exist for the format."""
    if given != SAMPLES:
        return Path(given)
    path = PACKAGE / "assets" / "rows" / f"{row_format}.jsonl"
    if not path.is_file():
        raise InputError(InputProblem("verify.input", "no samples for this format", row_format, "a file of JSON lines"))
    return path


class VerificationPass(ABC):
    """A pass over rows. It requests each row and completes them in order. A failure of the verifier affects only its
    row.

    Args:
        name: of the stage.
        out: the file of verdicts. Rows that it already has are not verified again.
        total: number of rows of the full input, for the progress.
        max_rate: maximum share of rows without a verdict. Above it, `self.no_verdict_rate` raises GuardStop.
    """

    def __init__(
        self, name: str, verifier: Verifier, out: ResumableJsonl, context: RunContext, total: int, max_rate: float
    ):
        self.name, self.verifier, self.out, self.context, self.total = name, verifier, out, context, total
        self.no_verdict_rate = NoVerdictRate(verifier.name, max_rate, least=1)
        self.flight = OrderedFutures()
        self.before, self.began = out.rows, time.monotonic()
        self._reported = self.began
        if self.before:
            context.progress(kind="note", text=f"resuming after the {self.before} rows of {out.path}")

    @abstractmethod
    def answer(self, pending: Pending, verdict: Verdict) -> None:
        """Write and count the verdict of a row."""

    @abstractmethod
    def metrics(self) -> dict[str, Any]:
        """Metrics so far."""

    def submit(self, request: Request) -> Future[Verdict]:
        try:
            return self.verifier.submit(request)
        except RlvrError:
            raise
        except Exception as fault:
            failed: Future[Verdict] = Future()
            failed.set_exception(fault)
            return failed

    def take_while(self, waiting: Callable[[], bool]) -> None:
        """Write completed rows, and wait while `waiting()` is true. Raises Interrupted after a request to stop."""
        while True:
            for pending in self.flight.take():
                self._complete(pending)
            self.show()
            if self.context.interrupted:
                for pending in self.flight.take_before_last_done(DRAIN_S):
                    self._complete(pending)
                self.context.metrics = self.metrics()
                raise Interrupted(
                    f"stopped after {self.out.rows} of {self.total} rows; the same command with this {self.out.option} "
                    f"continues there: {self.out.path}"
                )
            if not waiting():
                return
            self.flight.wait()

    def _complete(self, pending: Pending) -> None:
        try:
            verdict = pending.verdict.result()
        except RlvrError:
            raise
        except Exception as fault:  # Logged in the row and, completely, in the log; other rows continue.
            traceback.print_exception(fault, file=sys.stderr)
            verdict = Verdict("no_verdict", log=f"the verifier failed: {type(fault).__name__}: {fault}")
        self.answer(pending, verdict)

    def show(self, now: bool = False) -> None:
        """Report the progress, at most every EVERY_S seconds unless `now`."""
        if now or time.monotonic() - self._reported >= EVERY_S:
            self._reported = time.monotonic()
            with suppress(Interrupted):  # `take_while` sees it too, and writes completed rows before it stops.
                self.context.progress(kind="phase", name=self.name, done=self.out.rows, total=self.total)


class RowVerification(VerificationPass):
    """A pass over the rows of a file whose format is one of FORMATS."""

    def __init__(self, row_format: str, *given: Any):
        super().__init__("verify", *given)
        self._format, self._tally = row_format, VerdictCounter()
        for row in self.out.existing():
            self._count(row)

    def run(self, rows: Iterator[RowLine]) -> StageResult:
        """Verify all rows. Raises GuardStop and Interrupted; `context.metrics` is set before."""
        self.show(now=True)
        for index, line in enumerate(rows):
            if index >= self.before:
                self._request(line)
                self.take_while(lambda: self.flight.full)
        self.take_while(lambda: len(self.flight) > 0)
        self.show(now=True)
        metrics = self.context.metrics = self.metrics()
        self.context.progress(kind="note", text=f"{self._tally.text()}; verdicts: {self.out.path}")
        self.no_verdict_rate.check()
        return StageResult(after=self._tally.passed(), metrics=metrics)

    def _request(self, line: RowLine) -> None:
        if line.text is None:
            row: Any = Malformed(None, "longer than verify.max_row_mb allows")
        else:
            row = read_row(line.text, self._format)
        if isinstance(row, Malformed):
            verdict = completed_future(Verdict("no_verdict", log=f"line {line.number}: {row.reason}"))
        else:
            verdict = self.submit(Request(row.problem, row.candidate))
        self.flight.add(row.id, verdict, len(line.text or b""))

    def answer(self, pending: Pending, verdict: Verdict) -> None:
        row = row_of(pending.id, verdict)
        self.out.write(row)
        self._count(row)

    def _count(self, row: Mapping[str, Any]) -> None:
        self._tally.add(row)
        self.no_verdict_rate.count(row["outcome"], row["log"])

    def metrics(self) -> dict[str, Any]:
        seconds = time.monotonic() - self.began
        judged = self.out.rows - self.before
        return {
            **self._tally.metrics(),
            **system_metrics(self.verifier),
            "system/rows_from_before": self.before,
            "time/verify": seconds,
            "time/verdicts_per_second": judged / seconds if seconds else 0.0,
        }
