"""Rules for a writer's body, checked on its text."""

import pytest

from rlvr_exp.domains.dafny.guards import body_violation

HEAD = "method Twice(n: nat) returns (r: nat)\n  ensures r == 2 * n\n"
BODY = "{\n  r := 0;\n  var i := 0;\n  while i < n\n  {\n    i := i + 1;\n    r := r + 2;\n  }\n}\n"
PROVED = BODY.replace("while i < n\n", "while i < n\n    invariant i <= n && r == 2 * i\n")


@pytest.mark.parametrize(
    "body", ["{ assume false; }", "{ r := 0; assume r == 2 * n; }", "{ while true { assume false; } }"]
)
def test_a_body_that_assumes_is_the_writers_violation(body: str) -> None:
    violation = body_violation(HEAD, HEAD + body)
    assert violation is not None and violation.rule == "assume"


@pytest.mark.parametrize(
    "body",
    ["{ } lemma {:axiom} L() ensures false", "{ }\nmethod {:extern} E() ensures false", "{ } lemma L() ensures false"],
)
def test_a_body_that_leaves_its_braces_is_the_writers_violation(body: str) -> None:
    assert body_violation(HEAD, HEAD + body) is not None


@pytest.mark.parametrize("body", [BODY, PROVED, "{ r := n + n; }", "{ }", "{ r := 2 *; }", "{ r := Nothing(n); }"])
def test_a_plain_body_breaks_no_rule(body: str) -> None:
    assert body_violation(HEAD, HEAD + body) is None
