"""The baselines of Dafny give right verdicts: beating a wrong baseline would mean nothing."""

import pytest

from rlvr_exp.benchmarks.verifiers import Verifiers
from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.domains.dafny import contest
from rlvr_exp.domains.dafny.tool import Tool


@pytest.mark.slow
def test_both_baselines_and_the_verifier_agree(dafny: Tool) -> None:
    programs = [*contest.candidates(0, 2), *contest.unreadable(0, 2)]
    with contest.baselines(Sandbox(workers=1)) as baselines, contest.verifier(Sandbox(workers=1)) as verifier:
        found = {name: [judge(program) for program in programs] for name, judge in baselines.items()}
        own = [verifier.submit(contest.request(program)).result() for program in programs]
    right = ["passed", "verify", "parse", "resolve"]
    assert found == {contest.PROCESSES: right, contest.COMMAND: right}
    assert [verdict.bucket or verdict.outcome for verdict in own] == right


@pytest.mark.slow
def test_servers_need_fewer_core_seconds(dafny: Tool) -> None:
    bench = Verifiers(Sandbox(workers=1), contests=["dafny"], candidates=40)
    lines = bench.contest("dafny", lambda *_: None)
    assert [line.against for line in lines] == [contest.PROCESSES, contest.COMMAND, contest.COMMAND]
    assert all(line.ratio.value > 2 and line.differing == 0 and " p95 " in line.note for line in lines), lines
