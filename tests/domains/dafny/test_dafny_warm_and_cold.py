"""A server gives the verdicts of a process per program, also if it is killed. RLVR_DAFNY_PROGRAMS=1000 judges so many programs."""

import json
import lzma
import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.domains.dafny.problem import DafnyProblem
from rlvr_exp.domains.dafny.tasks import EMBEDDED
from rlvr_exp.domains.dafny.tool import Tool
from rlvr_exp.domains.dafny.verifier import DafnyVerifier
from rlvr_exp.sandbox.tools import tree
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request, Verdict

pytestmark = pytest.mark.slow
COUNT = int(os.environ.get("RLVR_DAFNY_PROGRAMS", "20"))
KILLED = min(COUNT, 200)
EVERY = 10
"""Verdicts between two kills."""


def requests(count: int) -> list[Request]:
    """Embedded tasks, spread over the families, with four kinds of candidates: the reference, its body without annotations, a
    postcondition that does not hold, and a text that does not parse or does not resolve."""
    with lzma.open(EMBEDDED / "train.jsonl.xz", "rt", encoding="utf-8") as file:
        rows = list(map(json.loads, file))
    found = []
    for number in range(count):
        row = rows[number * (len(rows) - 1) // max(1, count - 1)]
        head = row["before"] + row["header"] + row["spec"]
        given, reference = (head + row[body] + row["after"] for body in ("body", "annotated_body"))
        wrong = head + row["annotated_body"].replace("{", "{ assert 1 == 2;", 1) + row["after"]
        broken = reference[:-8] if number % 8 < 4 else reference.replace("{", "{ var unknown := missing;", 1)
        found.append(Request(DafnyProblem(given), Candidate((reference, given, wrong, broken)[number % 4])))
    return found


def told(verdict: Verdict) -> tuple[object, ...]:
    return verdict.outcome, verdict.bucket, verdict.rule, verdict.passed, verdict.total, verdict.log


def test_a_server_and_a_process_per_program_give_equal_verdicts(dafny: Tool) -> None:
    rows = requests(COUNT)
    with DafnyVerifier(Sandbox(workers=2)) as warm, DafnyVerifier(Sandbox(workers=2), warm=False) as cold:
        both = [[told(verdict) for verdict in verifier.verify(rows)] for verifier in (warm, cold)]
    assert [pair for pair in zip(*both, strict=True) if pair[0] != pair[1]] == []
    kinds = Counter(one[1] or one[0] for one in both[0])
    assert kinds["passed"] >= COUNT // 5 and kinds["verify"] >= COUNT // 5 and kinds["parse"] and kinds["resolve"], (
        kinds
    )


def test_killed_servers_lose_no_verdict_and_change_none(dafny: Tool) -> None:
    rows, killed = requests(KILLED), 0
    with DafnyVerifier(Sandbox(workers=2)) as undisturbed:
        right = [told(verdict) for verdict in undisturbed.verify(rows)]
    with DafnyVerifier(Sandbox(workers=2)) as verifier:
        futures = [verifier.submit(row) for row in rows]
        for number, future in enumerate(futures):
            future.result()
            if number % EVERY == EVERY // 2:
                killed += sum(map(kill, servers()))
        found = [told(future.result()) for future in futures]
    assert killed >= KILLED // EVERY and found == right


def servers() -> list[int]:
    """The processes below this one that run `dafny server`."""
    return [pid for pid in tree(os.getpid())[1:] if b"Dafny.dll\0server\0" in command(pid)]


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
