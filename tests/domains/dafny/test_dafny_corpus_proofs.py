"""A sample of the embedded corpus before the real Dafny: golds are proved, mutants are refused."""

import json
import lzma
from random import Random

import pytest
from shipped import Shipped

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.domains.dafny.problem import DafnyProblem
from rlvr_exp.domains.dafny.tasks import EMBEDDED
from rlvr_exp.domains.dafny.tool import Tool
from rlvr_exp.domains.dafny.verifier import DafnyVerifier
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request


@pytest.fixture(scope="module")
def verdicts(warm_dafny: Tool):
    lines = lzma.decompress((EMBEDDED / "dev.jsonl.xz").read_bytes()).splitlines()
    rows = Random(0).sample([row for row in map(json.loads, lines) if row["mutants"]], 10)
    asked = [
        (row, text, text == row["annotated_body"])
        for row in rows
        for text in (row["annotated_body"], row["mutants"][0])
    ]
    rlimit = int(Shipped(EMBEDDED).manifest()["tool"]["rlimit"])
    with DafnyVerifier(Sandbox(workers=1), rlimit=rlimit, cpu_s=60, wall_s=300, memory_mb=2048) as verifier:
        heads = [row["before"] + row["header"] + row["spec"] for row, _, _ in asked]
        requests = [
            Request(DafnyProblem(head + "\n"), Candidate(head + text + "\n"))
            for head, (_, text, _) in zip(heads, asked, strict=True)
        ]
        said = verifier.verify(requests)
    return [(gold, verdict) for (_, _, gold), verdict in zip(asked, said, strict=True)]


@pytest.mark.slow
def test_golds_are_proved(verdicts) -> None:
    assert all(verdict.outcome == "passed" for gold, verdict in verdicts if gold)


@pytest.mark.slow
def test_mutants_are_refused(verdicts) -> None:
    wrong = [verdict for gold, verdict in verdicts if not gold]
    assert len(wrong) == 10 and all((verdict.outcome, verdict.bucket) == ("failed", "verify") for verdict in wrong)
