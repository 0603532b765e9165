"""Calls of a function in its own promise: replaced with its result, or refused."""

import pytest

from rlvr_exp.domains.dafny import guards
from rlvr_exp.domains.dafny.guards import read_declarations
from rlvr_exp.domains.dafny.self_calls import with_results

HEAD = "method M(n: int) returns (m: int) ensures m == 7\n"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (
            "function F(n: int): int ensures var i := 1; F(n) == i { 1 }",
            "): (rlvr_result: int) ensures var i := 1; rlvr_result == i {",
        ),
        (
            "predicate P(n: int) ensures match n case _ => P(n) { true }",
            "): (rlvr_result: bool) ensures match n case _ => rlvr_result {",
        ),
        (
            "function F<T(0)>(n: T, k: int := 3): (r: T) ensures (var i := n; F(n, k) == n) { n }",
            "ensures (var i := n; r == n) {",
        ),
        (
            "datatype D = D { function F(): (r: int) ensures D.(v := this.F()) == F() { 1 } }",
            "ensures D.(v := r) == r {",
        ),
        (
            "datatype D = D(v: int) { const c := v }\nfunction F(): (r: D) ensures F().c == 0 { D(1) }",
            "ensures r.c == 0 {",
        ),
        (
            "function F(n: nat): (r: seq<int>) ensures |F(n)| == n + 1 ensures var i := n; F(n)[i] == 3 { s(n) }",
            "ensures |r| == n + 1 ensures var i := n; r[i] == 3 {",
        ),
        ("function F(n: int): (r: int) ensures F(n) == 0 { 1 }", "ensures F(n) == 0 {"),
        ("function F(n: int): (r: int) ensures var i := F(n - 1); i == 0 { 1 }", "var i := F(n - 1);"),
    ],
)
def test_calls_become_the_result(given: str, wanted: str) -> None:
    assert "".join(wanted.split()) in "".join(with_results(given).split())


@pytest.mark.parametrize(
    ("more", "refused"),
    [
        ("function F(n: int): (r: int) ensures var i := 1; F(n + 0) == i { 1 }", True),
        ("function F(n: int): (r: int) ensures var n := 1; F(n) == n { 1 }", True),
        ("function F(n: int): (r: int) ensures (r => F(n) == 0)(3) { 1 }", True),
        ("function F(n: int): (r: int) ensures forall i, n: int :: var j := 1; F(n) == j { 1 }", True),
        ("function F(n: int): (r: int) ensures match n case n => F(n) == 0 { 1 }", True),
        ("function F(n: int): (r: int) ensures var f := 3; F<int>(n) == 0 { 1 }", True),
        ("datatype D = D { function F(): int ensures var d := this; d.F() == 0 { 1 } }", True),
        ("predicate P(n: int) ensures var f := 3; P(n + 0) { true }", True),
        (
            "function F(s: seq<int>): (r: seq<int>) ensures forall i | 0 <= i < |s| :: var j := i; F(s)[j] == s[j] { s }",
            False,
        ),
        ("function F(n: int): (r: int) ensures F(n) > 0 && F(n + 0) > 0 { 1 }", False),
    ],
)
def test_other_calls_are_refused(more: str, refused: bool) -> None:
    violation, _ = guards.check(read_declarations(HEAD), f"{HEAD}{{ m := 7; }}\n{more}", "specification")
    assert (violation and violation.rule) == ("self-call" if refused else None)
