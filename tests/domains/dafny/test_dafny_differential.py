"""Our parser and Dafny's agree: on small programs of every kind and on mutated programs; and a fault is
found."""

from pathlib import Path

import pytest
from functions import measured

from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.domains.dafny import differential
from rlvr_exp.domains.dafny.differential import AGREES, NO_PARSE, REFUSED, UNREADABLE, Reader, compare, mutants
from rlvr_exp.domains.dafny.tool import Tool

PROGRAMS = {
    "method": """
method Sum(a: array<int>, n: nat) returns (s: int)
  requires n <= a.Length
  ensures n == 0 ==> s == 0
{
  var i := 0; s := 0;
  while i < n
    invariant 0 <= i <= n
    decreases n - i
  { s := s + a[i]; i := i + 1; }
}
""",
    "types": """
module Shapes { datatype Tree<T> = Leaf | Node(left: Tree<T>, value: T, right: Tree<T>) type Small = x: int | 0 <= x < 0x1_0 }
codatatype Stream = Cons(head: int, tail: Stream)
class Cell<T> { var value: T const size: int := 3 constructor (v: T) ensures value == v { value := v; }
  predicate Fresh() reads this { size > 2 } }
trait Sized { function Size(): nat }
iterator Count(n: nat) yields (k: nat) yield ensures k <= n { k := 0; yield; }
""",
    "proofs": """
function Tri(n: nat): nat { if n == 0 then 0 else n + Tri(n - 1) }
lemma {:induction false} Up(n: nat) ensures Tri(n) >= n { if n > 0 { calc { Tri(n); == n + Tri(n - 1); } Up(n - 1); } }
predicate P(s: seq<int>) { forall i, j :: 0 <= i < j < |s| ==> s[i] <= s[j] }
lemma All() { forall x: int ensures x * x >= 0 { } assert exists y :: y > 3; var z :| z > 3; }
""",
    "strings": 'method S() { var a, b, c := "é /* \\" //", @"x""\n// y", \'"\'; print a, b, c; } // the end',
}


@pytest.fixture(scope="module")
def reader(dafny: Tool) -> Reader:
    return Reader(dafny)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_both_read_the_same(reader: Reader, name: str) -> None:
    assert compare(reader, PROGRAMS[name]) == AGREES


@pytest.mark.slow
@pytest.mark.parametrize("name", ["method", "proofs"])
def test_both_read_the_same_of_mutated_programs(reader: Reader, name: str) -> None:
    found = {what: compare(reader, text) for what, text in mutants(PROGRAMS[name])}
    assert set(found.values()) <= {AGREES, REFUSED, NO_PARSE, UNREADABLE}, found
    assert {what for what, end in found.items() if "directive" in what and end != REFUSED} <= {
        "directive inside a verbatim string's line"
    }
    assert found["nested comment"] == found["marks in a string"] == found["unicode in a string"] == AGREES


def test_a_reading_that_is_not_dafnys_is_found(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differential, "printed", lambda text: text.replace("ensures", "requires"))
    assert compare(reader, PROGRAMS["method"]).startswith("differs: ")


def test_it_counts_and_stops_at_a_difference(reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differential, "Reader", lambda tool: reader)
    with pytest.raises(InputError, match="no .dfy files"):
        measured(tmp_path, "dafny_differential", f"benchmark.path={tmp_path}")
    (tmp_path / "a.dfy").write_text(PROGRAMS["method"])
    (tmp_path / "b.dfy").write_text("method {")
    text, counts = measured(tmp_path, "dafny_differential", f"benchmark.path={tmp_path}")
    assert counts[AGREES] == 1 and "  1 agrees" in text
    monkeypatch.setattr(differential, "printed", lambda text: text.replace("ensures", "requires"))
    with pytest.raises(GuardStop, match="a.dfy : differs"):
        measured(tmp_path, "dafny_differential", f"benchmark.path={tmp_path}")
