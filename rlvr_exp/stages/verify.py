"""Judge candidates from a file: rows in, verdicts out, in the same order. No model, no torch.

Everything that can be refused is refused before the first row is judged. A row that cannot be read is answered with
`no_verdict`; past `verifier.max_no_verdict_rate` the run ends with exit 3, once every row is answered.
"""

import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from rlvr_exp.config import Config
from rlvr_exp.config.options import allowed_of
from rlvr_exp.config.paths import PACKAGE
from rlvr_exp.config.run import SAMPLES
from rlvr_exp.core.errors import InputError, Interrupted, Problem, RlvrError
from rlvr_exp.run import manifest
from rlvr_exp.run.in_order import Asked, InOrder
from rlvr_exp.run.job import Job, Result
from rlvr_exp.evaluation.tally import Tally
from rlvr_exp.run.verdict_file import VerdictFile, row_of
from rlvr_exp.stages.judging import built_verifier, ready, system_metrics
from rlvr_exp.tasks.row_file import Line, fingerprint, lines
from rlvr_exp.tasks.rows import FORMATS, Malformed, read_row
from rlvr_exp.verifiers.base import Request, Verdict, Verifier, settled
from rlvr_exp.verifiers.guarded import Silence

EVERY_S = 0.5
"""Between messages of progress."""
DRAIN_S = 10.0
"""An interrupted run waits this long for rows that stand before judged ones."""


def run(config: Config, job: Job) -> Result:
    with built_verifier(config) as verifier:
        row_format = format_of(verifier)
        source = source_of(config.verify.input, row_format)
        told = ready(verifier, job)
        found = fingerprint(source)
        target = Path(config.verify.output or job.directory / "verdicts.jsonl")
        made = {"input": found.hash, "verifier": _decides(config, told), "max_row_mb": config.verify.max_row_mb}
        with VerdictFile(target, made) as out:
            described = {"path": str(source), "hash": found.hash, "rows": found.rows}
            manifest.extend(job.directory, verifier=told, input=described, output=str(target))
            judging = Judging(verifier, row_format, out, job, found.rows, config.verifier.max_no_verdict_rate)
            return judging.run(lines(source, config.verify.max_row_mb << 20))


def format_of(verifier: Verifier) -> str:
    """The format of rows that a verifier takes. Raises InputError for one that names none."""
    name = verifier.row_format or verifier.name
    if name not in FORMATS:
        remedy = "give the class an attribute row_format, the name of the format that it takes"
        raise InputError(Problem("verifier", "takes no rows of a file", verifier.name, ", ".join(FORMATS), "", remedy))
    return name


def source_of(given: str, row_format: str) -> Path:
    """The file to read. Raises InputError where it is the samples and there are none."""
    if given != SAMPLES:
        return Path(given)
    path = PACKAGE / "assets" / "rows" / f"{row_format}.jsonl"
    if not path.is_file():
        raise InputError(Problem("verify.input", "no samples for this format", row_format, "a file of JSON lines"))
    return path


def _decides(config: Config, told: Mapping[str, Any]) -> dict[str, Any]:
    """What decides verdicts beside the rows."""
    node, sandbox = config.verifier, config.sandbox
    options = {spec.name: getattr(node, spec.name) for spec in fields(node) if not allowed_of(spec).outside}
    limits = {name: getattr(sandbox, name) for name in ("cpu_s", "wall_s", "memory_mb", "output_kb")}
    limits["level"] = told["isolation"]["level"]
    return {**{name: told[name] for name in ("name", "version", "tool")}, "options": options, "sandbox": limits}


class Judging:
    """One pass over the rows."""

    def __init__(self, verifier: Verifier, row_format: str, out: VerdictFile, job: Job, total: int, max_rate: float):
        self._verifier, self._format, self._out, self._job, self._total = verifier, row_format, out, job, total
        self._tally, self._silence = Tally(), Silence(verifier.name, max_rate, least=1)
        self._flight = InOrder()
        self._began = self._told = time.monotonic()
        self._before = out.rows
        for row in out.existing():
            self._count(row)

    def run(self, rows: Iterator[Line]) -> Result:
        if self._before:
            self._job.progress(kind="note", text=f"going on after the {self._before} rows of {self._out.path}")
        self._progress(now=True)
        for index, line in enumerate(rows):
            if index >= self._before:
                self._ask(line)
                self._take_while(lambda: self._flight.full)
        self._take_while(lambda: len(self._flight) > 0)
        self._progress(now=True)
        metrics = self._job.metrics = self._metrics()
        self._job.progress(kind="note", text=f"{self._tally.text()}; verdicts: {self._out.path}")
        self._silence.check()
        return Result(after=self._tally.passed(), metrics=metrics)

    def _ask(self, line: Line) -> None:
        if line.text is None:
            row: Any = Malformed(None, "longer than verify.max_row_mb allows")
        else:
            row = read_row(line.text, self._format)
        if isinstance(row, Malformed):
            verdict = settled(Verdict("no_verdict", log=f"line {line.number}: {row.reason}"))
        else:
            verdict = self._asked(Request(row.problem, row.candidate))
        self._flight.ask(row.id, verdict, len(line.text or b""))

    def _asked(self, request: Request) -> Future[Verdict]:
        """A verifier that fails on one row is at fault for that row: the rest goes on."""
        try:
            return self._verifier.submit(request)
        except RlvrError:
            raise
        except Exception as fault:
            failed: Future[Verdict] = Future()
            failed.set_exception(fault)
            return failed

    def _take_while(self, waiting: Any) -> None:
        """Write what is there, and wait while `waiting()`. Raises Interrupted once the run was asked to stop."""
        while True:
            for asked in self._flight.take():
                self._answer(asked)
            self._progress()
            if self._job.interrupted:
                self._stop()
            if not waiting():
                return
            self._flight.wait()

    def _stop(self) -> None:
        for asked in self._flight.take_before_last_done(DRAIN_S):
            self._answer(asked)
        self._job.metrics = self._metrics()
        text = f"stopped after {self._out.rows} of {self._total} rows; the same command with this output goes on there"
        raise Interrupted(f"{text}: {self._out.path}")

    def _answer(self, asked: Asked) -> None:
        try:
            verdict = asked.verdict.result()
        except RlvrError:
            raise
        except Exception as fault:  # Told on the row and, whole, in the log: the rest goes on.
            traceback.print_exception(fault, file=sys.stderr)
            verdict = Verdict("no_verdict", log=f"the verifier failed: {type(fault).__name__}: {fault}")
        row = row_of(asked.id, verdict)
        self._out.write(row)
        self._count(row)

    def _count(self, row: Mapping[str, Any]) -> None:
        self._tally.add(row)
        self._silence.count(row["outcome"], row["log"])

    def _progress(self, now: bool = False) -> None:
        if now or time.monotonic() - self._told >= EVERY_S:
            self._told = time.monotonic()
            with suppress(Interrupted):  # `_take_while` sees it too, and writes what is judged before it stops.
                self._job.progress(kind="phase", name="verify", done=self._out.rows, total=self._total)

    def _metrics(self) -> dict[str, Any]:
        seconds = time.monotonic() - self._began
        judged = self._out.rows - self._before
        return {
            **self._tally.metrics(),
            **system_metrics(self._verifier),
            "system/rows_from_before": self._before,
            "time/verify": seconds,
            "time/verdicts_per_second": judged / seconds if seconds else 0.0,
        }
