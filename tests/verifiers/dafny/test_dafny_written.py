"""A cascade's rules, read off the texts: an annotator keeps the writer's code, a writer assumes nothing."""

from concurrent.futures import Future

import pytest

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.problems import DafnyProblem
from rlvr_exp.verifiers.base import Request, Verdict, Verifier, settled
from rlvr_exp.verifiers.dafny.written import WrittenCode, WrittenProblem, breach_of_annotations, breach_of_body

HEAD = "method Twice(n: nat) returns (r: nat)\n  ensures r == 2 * n\n"
BODY = "{\n  r := 0;\n  var i := 0;\n  while i < n\n  {\n    i := i + 1;\n    r := r + 2;\n  }\n}\n"
PROVED = BODY.replace("while i < n\n", "while i < n\n    invariant i <= n && r == 2 * i\n")


def rule(breach) -> str | None:
    return None if breach is None else breach.rule


@pytest.mark.parametrize(
    "body", ["{ assume false; }", "{ r := 0; assume r == 2 * n; }", "{ while true { assume false; } }"]
)
def test_a_body_that_assumes_is_the_writers_breach(body: str) -> None:
    assert rule(breach_of_body(HEAD, HEAD + body)) == "assume"


@pytest.mark.parametrize(
    "body",
    ["{ } lemma {:axiom} L() ensures false", "{ }\nmethod {:extern} E() ensures false", "{ } lemma L() ensures false"],
)
def test_a_body_that_leaves_its_braces_is_the_writers_breach(body: str) -> None:
    assert breach_of_body(HEAD, HEAD + body) is not None


@pytest.mark.parametrize("body", [BODY, PROVED, "{ r := n + n; }", "{ }", "{ r := 2 *; }"])
def test_a_plain_body_breaks_no_rule(body: str) -> None:
    assert breach_of_body(HEAD, HEAD + body) is None


def test_annotations_may_be_added() -> None:
    assert breach_of_annotations(HEAD + BODY, HEAD + PROVED) is None


@pytest.mark.parametrize(
    "text",
    [
        PROVED.replace("r := r + 2", "r := r + 1 + 1"),
        "{ r := 2 * n; }",
        PROVED.replace("var i := 0;", "var i := 0; r := 2 * n; return;"),
    ],
)
def test_code_that_changes_is_the_annotators_breach(text: str) -> None:
    assert rule(breach_of_annotations(HEAD + BODY, HEAD + text)) == "program-changed"


def test_a_body_that_was_written_empty_stays_empty() -> None:
    assert rule(breach_of_annotations(HEAD + "{ }", HEAD + "{ r := 2 * n; }")) == "program-changed"
    assert breach_of_annotations(HEAD + "{ }", HEAD + "{ assert true; }") is None


@pytest.mark.parametrize(
    "text",
    [HEAD.replace("2 *", "r * 0 + r + 0 *") + PROVED, HEAD + PROVED.replace("{\n  r", "{\n  assume false;\n  r", 1)],
)
def test_a_specification_that_changes_and_an_assumption_are_refused(text: str) -> None:
    assert breach_of_annotations(HEAD + BODY, text) is not None


class Proves(Verifier):
    """Whatever is asked; notes against what."""

    name, version = "dafny", "0"

    def __init__(self) -> None:
        self.asked: list[Request] = []

    def submit(self, request: Request) -> Future[Verdict]:
        self.asked.append(request)
        return settled(Verdict("passed"))

    def close(self) -> None:
        """Nothing to end."""


def test_what_breaks_no_rule_is_proved_against_the_hole() -> None:
    inner = Proves()
    verifier, problem = WrittenCode(inner), WrittenProblem(DafnyProblem(HEAD), HEAD + BODY)
    asked = [Request(problem, Candidate(HEAD + text)) for text in (PROVED, "{ r := 2 * n; }")]
    verdicts = verifier.verify([*asked, Request(problem, Candidate(None, "no body"))])
    assert [one.outcome for one in verdicts] == ["passed", "rejected", "passed"]
    assert [one.problem for one in inner.asked] == [DafnyProblem(HEAD)] * 2
