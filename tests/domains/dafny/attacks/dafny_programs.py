"""Given programs of the attacks, each with a body that breaks its promise, and one that keeps it."""

SORT = """
predicate Sorted(s: seq<int>) { forall i, j :: 0 <= i < j < |s| ==> s[i] <= s[j] }
function Least(): int { 3 }
method Sort(s: seq<int>) returns (r: seq<int>)
  requires |s| > 0
  ensures Sorted(r)
  ensures |r| == |s| && r[0] >= Least()
{
  r := s;
}
"""
SORT_DONE = SORT.replace(
    "r := s;",
    """r := [];
  while |r| < |s|
    invariant |r| <= |s|
    invariant forall i :: 0 <= i < |r| ==> r[i] == 3
  { r := r + [3]; }""",
)
STACK = """
module Stacks {
  datatype Op = Push(value: int) | Pop
  const Limit: int := 10
  newtype small = x: int | 0 <= x < 100
  trait Sized { function Size(): nat reads this }
  class Stack {
    var items: seq<int>
    predicate Valid() reads this { |items| <= Limit }
    constructor () ensures Valid() && items == [] { items := []; }
    method Push(x: int)
      requires Valid() && |items| < Limit
      modifies this
      ensures Valid() && items == old(items) + [x]
    { }
    method Top() returns (x: int)
      requires Valid() && items != []
      ensures x == items[|items| - 1]
    { x := 0; }
  }
}
"""
STACK_DONE = STACK.replace("{ }", "{ items := items + [x]; }").replace("x := 0;", "x := items[|items| - 1];")
LEMMAS = """
function Tri(n: nat): nat { if n == 0 then 0 else n + Tri(n - 1) }
lemma Grows(n: nat) ensures Tri(n) > n { }
method Run(n: nat) returns (r: nat) ensures r > n { Grows(n); r := Tri(n); }
"""
EXTENDED = """
lemma {:axiom} Given(x: int) ensures x * x >= 0
method {:extern} Outside(x: int) returns (y: int) ensures y > x
method Helped(x: int) returns (y: int) ensures y > x
method Loose(x: int) returns (y: int) ensures y > x { assume x < 0; y := 0; }
method Ever() ensures false decreases * { while true decreases * { } }
method Caller() { var z := Helped(1); }
method Use(x: int) returns (y: int) ensures y > x { y := x; }
"""
"""A program that itself assumes: what it does is allowed, in its own places alone."""
EXTENDED_DONE = EXTENDED.replace("{ y := x; }", "{ Given(x); y := Helped(x); }")
HOLE = """
method Max(a: int, b: int) returns (m: int)
  ensures m >= a && m >= b
  ensures m == a || m == b
method Main() { var m := Max(1, 2); assert m == 2; }
"""
HOLE_DONE = HOLE.replace("m == b\n", "m == b\n{ if a < b { m := b; } else { m := a; } }\n")
NTH = """
function Val(n: nat): int { if n < 2 then 5 else Val(n - 1) + 3 * Val(n - 2) }
class Cell { ghost var value: int }
method Nth(k: nat) returns (y: int) ensures y == Val(k)
"""
"""A function that is no part of any code, to be computed."""
NTH_DONE = (
    NTH
    + """{
  y := 5;
  var next, i := 5, 0;
  while i < k
    invariant 0 <= i <= k && y == Val(i) && next == Val(i + 1)
  { y, next := next, next + 3 * y; i := i + 1; }
}
"""
)
TOLL = """
method Toll(z: int) returns (r: int)
  ensures z < 1 ==> r == z + 19
  ensures 1 <= z ==> r == 3 * z + 1
"""


def sort_with(body: str, more: str = "") -> str:
    """SORT with another body and further declarations."""
    return SORT.replace("r := s;", body) + more
