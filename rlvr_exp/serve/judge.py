"""The judge of a server: a verifier behind a bounded queue, and `POST /verify`.

A request has rows of +stage=verify, one JSON object per line, and its answer has a row for each, in the same order.
"""

import json
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from rlvr_exp.records.resumable_jsonl import row_of
from rlvr_exp.tasks.formats.rows import CandidateRow, Malformed, read_row
from rlvr_exp.verifiers.base import Request, Verdict, Verifier

BROKEN = "the verifier failed; the log of the server has the reason"


class Refused(Exception):
    """A request that a client has to change. The text goes to the client."""

    def __init__(self, text: str, status: int = 400):
        self.status = status
        super().__init__(text)


class Busy(Exception):
    """The queue is full: the client may repeat the request later. The text goes to the client."""


class Judge:
    """A verifier that takes a bounded number of candidates at the same time. Thread-safe.

    Args:
        verifier: owned by the caller.
        most: candidates that may wait for their verdicts.
    """

    def __init__(self, verifier: Verifier, most: int):
        self._verifier, self.most = verifier, most
        self._lock = threading.Lock()
        self._waiting = 0
        self._outcomes: Counter[str] = Counter()

    def submit(self, requests: Sequence[Request]) -> list[Future[Verdict]]:
        """Futures of the verdicts. A failure of the verifier is a `no_verdict`.

        Raises:
            Busy: the queue has no place for all requests. None of them was taken.
            Refused: the queue is too short for them.
        """
        if len(requests) > self.most:
            raise Refused(f"{len(requests)} candidates: at most serve.queue={self.most} in a request", 413)
        with self._lock:
            if self._waiting + len(requests) > self.most:
                raise Busy(f"{self._waiting} of {self.most} places of the queue are taken")
            self._waiting += len(requests)
        return [self._submitted(one) for one in requests]

    def outcomes(self) -> dict[str, int]:
        """Number of verdicts since the start, by outcome."""
        with self._lock:
            return dict(self._outcomes)

    def _submitted(self, request: Request) -> Future[Verdict]:
        answer: Future[Verdict] = Future()
        answer.set_running_or_notify_cancel()  # A client that leaves does not cancel a verdict that others may share.
        try:
            self._verifier.submit(request).add_done_callback(lambda done: self._settle(done, answer))
        except Exception as fault:
            failed: Future[Verdict] = Future()
            failed.set_exception(fault)
            self._settle(failed, answer)
        return answer

    def _settle(self, done: Future[Verdict], answer: Future[Verdict]) -> None:
        try:
            verdict = done.result()
        except Exception as fault:
            traceback.print_exception(fault, file=sys.stderr)
            verdict = Verdict("no_verdict", log=BROKEN)
        with self._lock:
            self._waiting -= 1
            self._outcomes[verdict.outcome] += 1
        answer.set_result(verdict)


class VerifyEndpoint:
    """`POST /verify`.

    Args:
        row_format: of the rows, one of rlvr_exp.tasks.formats.rows.FORMATS.
    """

    def __init__(self, judge: Judge, row_format: str):
        self._judge, self._format = judge, row_format

    async def __call__(self, request: HttpRequest) -> Response:
        body = await request.body()
        return Response(await run_in_threadpool(self.answers, body), media_type="application/jsonl")

    def answers(self, body: bytes) -> bytes:
        """The rows of the answer. A row that cannot be read gets `no_verdict`. Raises Busy and Refused."""
        rows = self._rows(body)
        good = [row for row in rows if isinstance(row, CandidateRow)]
        judged = iter(self._judge.submit([Request(row.problem, row.candidate) for row in good]))
        found = (
            Verdict("no_verdict", log=row.reason) if isinstance(row, Malformed) else next(judged).result()
            for row in rows
        )
        answers: list[dict[str, Any]] = [row_of(row.id, verdict) for row, verdict in zip(rows, found, strict=True)]
        return b"".join(json.dumps(answer).encode() + b"\n" for answer in answers)

    def _rows(self, body: bytes) -> list[CandidateRow | Malformed]:
        numbered = [(number, line) for number, line in enumerate(body.split(b"\n"), 1) if line.strip()]
        if not numbered:
            raise Refused("no rows: the body has to be rows of +stage=verify, one JSON object per line")
        if len(numbered) > self._judge.most:  # Before they are read.
            raise Refused(f"{len(numbered)} rows: at most serve.queue={self._judge.most} in a request", 413)
        read = ((number, read_row(line, self._format)) for number, line in numbered)
        return [
            Malformed(row.id, f"line {number}: {row.reason}") if isinstance(row, Malformed) else row
            for number, row in read
        ]
