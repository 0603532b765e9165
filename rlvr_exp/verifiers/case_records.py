"""A candidate's records compared with the expected values. Records are untrusted data: in order, or refused.

Reads the records of the harness `calls`, compares, and notes the first fault in words. Never raises for their content.
"""

from collections.abc import Sequence
from typing import Any

from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.harnesses.python.reporter import LOADING
from rlvr_exp.sandbox.pool.job_queue import frames
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem, StdinCase
from rlvr_exp.verifiers.compare import equal, same_output
from rlvr_exp.verifiers.differ import differing_output, differing_value, short

BUCKETS = {
    "parse": "parse",
    "resolve": "resolve",
    "exception": "runtime_error",
    "memory": "memory",
    "output": "output_limit",
    "type": "wrong_answer",
    "timeout": "timeout",
}
"""The bucket of each kind of error that a harness reports."""
_MAX_TEXT = 400


class CaseRecords:
    """The results of all cases. `records`: the bytes from the result pipe. `passed`: cases with the right answer."""

    def __init__(self, problem: PythonProblem, records: bytes):
        self.passed = 0
        self.bucket: str | None = None
        """The bucket of the first fault, None if there is none."""
        self.log = ""
        self.finished = False
        """Whether every case was reported, and then the end."""
        self.next = 0
        """The first case without a report."""
        self._problem, self._closed = problem, False
        self._outputs: list[Any] = [None] * len(problem.cases)
        self._raised: list[tuple[str, ...]] = [()] * len(problem.cases)
        try:
            for frame in frames(records):
                self._take(wire.decode(frame))
        except ValueError as fault:
            self._note("runtime_error", f"its results are damaged: {fault}"[:_MAX_TEXT])

    @property
    def outputs(self) -> tuple[Any, ...]:
        """The value of each case; None where none was returned."""
        return tuple(self._outputs)

    @property
    def raised(self) -> tuple[tuple[str, ...], ...]:
        """The built-in classes of the exception of each case; empty where none was raised."""
        return tuple(self._raised)

    def call(self, index: int) -> str:
        """A case in words: its input or its call."""
        case = self._problem.cases[index]
        if isinstance(case, StdinCase):
            return f"case {index}, input {short(case.stdin)}"
        return f"case {index}: {self._problem.entry_point}({', '.join(map(short, case.args[:6]))})"

    def _take(self, record: Any) -> None:
        if type(record) is not list or not record or self._closed:
            raise ValueError("not a record")
        if record == ["done"]:
            self._closed, self.finished = True, self.next == len(self._problem.cases)
        elif record[0] == "value" and len(record) == 3:
            self._value(self._case(record[1]), record[2])
        elif record[0] == "error" and len(record) >= 4 and all(type(one) is str for one in record[3:]):
            self._error(record[1], record[2], record[3][:_MAX_TEXT], record[4:])
        else:
            raise ValueError("not a record")

    def _case(self, index: Any) -> int:
        if type(index) is not int or index != self.next or index >= len(self._problem.cases):
            raise ValueError("a case out of order")
        self.next += 1
        return index

    def _value(self, index: int, got: Any) -> None:
        problem, case = self._problem, self._problem.cases[index]
        self._outputs[index] = got
        if isinstance(case, Case):
            right = equal(got, case.expected, *problem.comparison)
        else:
            right = type(got) is str and same_output(got, case.expected_stdout, *problem.comparison)
        if right:
            self.passed += 1
        elif self.bucket is None:
            self._note("wrong_answer", f"{self.call(index)}{self._difference(case, got)}")

    def _difference(self, case: Case | StdinCase, got: Any) -> str:
        rules = self._problem.comparison
        if isinstance(case, Case):
            return f" {differing_value(got, case.expected, *rules)}"
        if type(got) is not str:
            return ": its output is not UTF-8 text"
        return f": {differing_output(got, case.expected_stdout, *rules)}"

    def _error(self, index: Any, kind: Any, text: str, names: Sequence[str]) -> None:
        if type(kind) is not str or kind not in BUCKETS:
            raise ValueError("an unknown error")
        if type(index) is int and index == LOADING and self.next == 0:
            self._closed = True
            self._note(BUCKETS[kind], text)
        else:
            case = self._case(index)
            self._raised[case] = tuple(names)
            self._note(BUCKETS[kind], f"case {case}: {text}")

    def _note(self, bucket: str, log: str) -> None:
        if self.bucket is None:
            self.bucket = bucket
            self.log = log.encode("utf-8", "backslashreplace").decode()
