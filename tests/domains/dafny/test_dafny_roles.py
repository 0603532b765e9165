"""Both roles' tasks before the real Dafny: golds pass, with the changes that each role may make, and no further."""

import json
from pathlib import Path

import pytest

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.domains.dafny.problem import DafnyProblem
from rlvr_exp.domains.dafny.tasks import DafnyDomain
from rlvr_exp.domains.dafny.tool import Tool
from rlvr_exp.domains.dafny.verifier import DafnyVerifier
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request, Verdict

ROW = {
    "id": "sum",
    "before": "function Tri(n: nat): nat { if n == 0 then 0 else n + Tri(n - 1) }\n\n",
    "header": "method Sum(n: nat) returns (s: nat)\n",
    "spec": "  ensures s == Tri(n)\n",
    "body": "{\n  s := 0;\n  var i := 0;\n  while i < n\n  {\n    i := i + 1;\n    s := s + i;\n  }\n}",
    "annotated_body": "{\n  s := 0;\n  var i := 0;\n  while i < n\n    invariant 0 <= i <= n\n    invariant s == Tri(i)\n"
    "  {\n    i := i + 1;\n    s := s + i;\n  }\n}",
}
SUM2 = """function method Sum2(n: nat): nat
  ensures Sum2(n) == Tri(n)
{ if n == 0 then 0 else n + Sum2(n - 1) }
"""
BODY, ANNOTATED = ROW["body"], ROW["annotated_body"]


@pytest.fixture(scope="module")
def verifier(dafny: Tool):
    with DafnyVerifier(Sandbox(workers=1), cpu_s=60, wall_s=300, memory_mb=2048) as verifier:
        yield verifier


@pytest.fixture(scope="module")
def ask(verifier: DafnyVerifier, tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("rows")
    (folder / "train.jsonl").write_text(json.dumps(ROW))
    domains = {
        role: DafnyDomain(str(folder), role=role, dev_fraction=0, test_fraction=0) for role in ("writer", "annotator")
    }

    def judge_role(role: str, completion: str | None) -> Verdict:
        (task,) = domains[role].splits()["train"]
        candidate = domains[role].parse(task.gold if completion is None else completion, task)
        return verifier.verify([Request(task.problem, candidate)])[0]

    return judge_role


def told(verdict: Verdict) -> str:
    return verdict.bucket or verdict.rule or verdict.outcome


@pytest.mark.parametrize(
    ("role", "completion", "wanted"),
    [
        ("writer", None, "passed"),
        ("writer", BODY.replace("i", "k").replace("whkle", "while"), "passed"),
        (
            "writer",
            "{\n  s := n;\n  var i := 0;\n  while i < n\n  {\n    s := s + i;\n    i := i + 1;\n  }\n}",
            "verify",
        ),
        ("writer", "{ assume s == Tri(n); }", "assume"),
        ("writer", "{ s := 0; var x: nothing; }", "resolve"),
        ("writer", "{ s := 0; x x }", "parse"),
        ("writer", "nothing", "parse"),
        ("annotator", None, "passed"),
        ("annotator", BODY, "verify"),
        ("annotator", ANNOTATED.replace("s := 0;", "s := 0; s := 0 + s;"), "program-changed"),
        ("annotator", "{ s := n * (n + 1) / 2; }", "program-changed"),
        ("annotator", ANNOTATED.replace("    i := i", "    assert s >= 0;\n    i := i"), "passed"),
        ("annotator", BODY.replace("while", "assume false; while"), "program-changed"),
    ],
)
def test_what_a_role_may_do(ask, role: str, completion: str | None, wanted: str) -> None:
    assert told(ask(role, completion)) == wanted


def test_a_problem_without_a_word_on_it_is_protected_as_the_verifier_says(verifier: DafnyVerifier) -> None:
    given, other = (ROW["before"] + ROW["header"] + ROW["spec"] + body for body in (BODY, "{ s := Sum2(n); }\n" + SUM2))
    problems = [DafnyProblem(given, protect=what) for what in (None, "specification", "program")]
    found = verifier.verify([Request(problem, Candidate(other)) for problem in problems])
    assert [told(one) for one in found] == ["passed", "passed", "program-changed"]
