"""The honest controls: (name, given program, candidate) that must pass: proofs in every style, and unusual surfaces."""

from dafny_programs import (
    EXTENDED,
    EXTENDED_DONE,
    HOLE,
    HOLE_DONE,
    LEMMAS,
    NTH,
    NTH_DONE,
    SORT,
    SORT_DONE,
    STACK,
    STACK_DONE,
    sort_with,
)

_DONE = SORT_DONE[SORT_DONE.index("r := [];") : SORT_DONE.rindex("}")].rstrip()
_ABS = "method Abs(x: int) returns (y: int) ensures y >= 0 ensures y == x || y == -x { y := x; }"
_SUM = """
function Sum(s: seq<int>): int { if |s| == 0 then 0 else s[0] + Sum(s[1..]) }
method Total(s: seq<int>) returns (t: int)
  ensures t == Sum(s)
{
  t := 0; var i := |s|;
  while i > 0 { i := i - 1; t := t + s[i]; }
}
"""
_SUM_PROOF = _SUM.replace("while i > 0 {", "while i > 0 invariant 0 <= i <= |s| invariant t == Sum(s[i..]) {").replace(
    "t := t + s[i]; }", "t := t + s[i]; assert s[i..][1..] == s[i + 1..]; }\n  assert s[0..] == s;"
)
_ITERATE = """
method Fill(a: array<int>, v: int)
  modifies a
  ensures forall i :: 0 <= i < a.Length ==> a[i] == v
{
  var i := 0;
  while i < a.Length { a[i] := v; i := i + 1; }
}
"""
_TREE = """
datatype Tree = Leaf | Node(left: Tree, value: int, right: Tree)
function Size(t: Tree): nat { match t case Leaf => 0 case Node(l, _, r) => Size(l) + 1 + Size(r) }
function Mirror(t: Tree): Tree { match t case Leaf => Leaf case Node(l, v, r) => Node(Mirror(r), v, Mirror(l)) }
lemma SameSize(t: Tree) ensures Size(Mirror(t)) == Size(t) { }
lemma Twice(t: Tree) ensures Mirror(Mirror(t)) == t
{ }
"""
_SETS = """
method Two(x: int, y: int) returns (r: set<int>)
  requires x in {1, 2, 3}
  ensures r == {x, y}
{ r := {}; }
"""
_MODULES = """
module Base { predicate Even(x: int) { x % 2 == 0 } const Zero: int := 0 }
module Top { import opened Base
  method Double(x: int) returns (y: int) ensures Even(y) && y == 2 * x + Zero { y := x; } }
"""
_TRUE_LEMMA = LEMMAS.replace("Tri(n) > n", "Tri(n) >= n").replace("Grows(n); r := Tri(n)", "r := 0")
_OLD_STYLE = """
class Counter {
  var n: int;
  method Inc()
    requires n >= 0;
    modifies this;
    ensures n == old(n) + 1;
  { }
}
"""
CONTROLS = [
    ("whole proof", SORT, SORT_DONE),
    ("with carriage returns", SORT, SORT_DONE.replace("\n", "\r\n")),
    ("with a byte-order mark", SORT, "\ufeff" + SORT_DONE),
    ("everything on one line", SORT, " ".join(SORT_DONE.split())),
    ("comments everywhere", SORT, SORT_DONE.replace(" ", " /* x /* nested */ // y */ ") + "// assume false; {:axiom}"),
    ("an open comment at the end", SORT, SORT_DONE + "/* the end"),
    ("words of cheats in strings", SORT, sort_with(_DONE + ' var c := "assume false; /* } {:axiom}"; var d := @"\\";')),
    ("braces and quotes in characters", SORT, sort_with("var c := '{'; var d := '\"'; var e := '\\''; " + _DONE)),
    (
        "declarations in another order",
        SORT,
        SORT_DONE[SORT_DONE.index("method") :] + SORT_DONE[: SORT_DONE.index("method")],
    ),
    ("a helper lemma", SORT, sort_with(_DONE + " L(r);", "lemma L(s: seq<int>) ensures |s| >= 0 { }")),
    (
        "a lemma with requires false",
        SORT,
        sort_with("if false { L(); } " + _DONE, "lemma L() requires false ensures 1 > 2 { }"),
    ),
    (
        "a helper method and function",
        SORT,
        sort_with(
            "var k := H(); " + _DONE.replace("[3]", "[k]").replace("== 3", "== k"),
            "function Three(): int { 3 }\nmethod H() returns (k: int) ensures k == 3 { k := Three(); }",
        ),
    ),
    (
        "a new datatype and a constant",
        SORT,
        sort_with("L(); " + _DONE, "datatype D = D(x: int) { predicate P() { x > 3 } } const K := 3 lemma L() { }"),
    ),
    ("ghost variables", SORT, sort_with("ghost var before := s; " + _DONE + " assert before == s;")),
    ("a promise added", SORT, SORT_DONE.replace("ensures Sorted(r)", "ensures |r| > 0 ensures Sorted(r)")),
    (
        "decreases and attributes of proofs",
        SORT,
        SORT_DONE.replace("invariant |r| <= |s|", "invariant |r| <= |s| decreases |s| - |r|")
        .replace("method Sort", "method {:timeLimitMultiplier 2} Sort")
        .replace("forall i :: 0 <= i < |r| ==>", "forall i {:trigger r[i]} :: 0 <= i < |r| ==>"),
    ),
    ("other code, same promise", _ABS, _ABS.replace("{ y := x; }", "{ if x < 0 { return -x; } return x; }")),
    ("invariants and asserts", _SUM, _SUM_PROOF),
    (
        "calc with hints",
        _SUM,
        _SUM_PROOF.replace(
            "assert s[i..][1..] == s[i + 1..];",
            "calc { Sum(s[i..]); == { assert s[i..][1..] == s[i + 1..]; } s[i] + Sum(s[i + 1..]); }",
        ),
    ),
    (
        "assert by, in words of statements",
        _SUM,
        _SUM_PROOF.replace("assert s[0..] == s;", "assert s[0..] == s by { if t > 3 { assert |s| >= 0; } }"),
    ),
    ("an assert in a function", _SUM, _SUM_PROOF.replace("else s[0] +", "else assert |s| > 0; s[0] +")),
    (
        "array loop",
        _ITERATE,
        _ITERATE.replace(
            "{ a[i] := v;", "invariant 0 <= i <= a.Length invariant forall j :: 0 <= j < i ==> a[j] == v { a[i] := v;"
        ),
    ),
    (
        "array by forall",
        _ITERATE,
        _ITERATE[: _ITERATE.index("{\n")] + "{ forall i | 0 <= i < a.Length { a[i] := v; } }",
    ),
    (
        "loop over alternatives",
        _ABS,
        _ABS.replace(
            "{ y := x; }",
            "{ y := x; while invariant y == x || y == -x decreases if y < 0 then 1 else 0 { case y < 0 => y := -y; } }",
        ),
    ),
    (
        "datatypes and induction",
        _TREE,
        _TREE.replace("== t\n{ }", "== t\n{ match t { case Leaf => case Node(l, _, r) => Twice(l); Twice(r); } }"),
    ),
    (
        "forall statement",
        _TREE,
        _TREE
        + "lemma All() ensures forall t: Tree :: Size(Mirror(t)) == Size(t) { forall t: Tree ensures Size(Mirror(t)) == Size(t) { SameSize(t); } }",
    ),
    ("set displays before the body", _SETS, _SETS.replace("{ r := {}; }", "{ r := {x} + {y}; }")),
    ("class with state", STACK, STACK_DONE),
    ("modules and opened imports", _MODULES, _MODULES.replace("{ y := x; }", "{ y := x + x; }")),
    ("semicolons of the older style", _OLD_STYLE, _OLD_STYLE.replace("{ }", "{ n := n + 1; }")),
    (
        "older style made new",
        _OLD_STYLE,
        _OLD_STYLE.replace(";\n    ", "\n    ").replace("1;\n", "1\n").replace("{ }", "{ n := n + 1; }"),
    ),
    ("what the given program assumes", EXTENDED, EXTENDED_DONE),
    ("a hole filled", HOLE, HOLE_DONE),
    (
        "lemma proved and used",
        _TRUE_LEMMA,
        _TRUE_LEMMA.replace("{ }", "{ if n > 0 { Grows(n - 1); } }").replace("r := 0", "Grows(n); r := Tri(n) + 1"),
    ),
    (
        "ghost values, patterns and variables of their own in proofs",
        NTH,
        NTH_DONE.replace(
            "var next, i",
            "ghost var (g, h) := (Val(k), 0); assert g == Val(k) by { var m: int, n := g, 2; ghost var a :| a == m + n; "
            "Same(a - n); var q := [1, 2][0 := a]; assert q[0] == a; } var next, i",
        ).replace("i := i + 1; }", "i := i + 1; calc { y; == { var w := Val(i); Same(w); } Val(i); } }")
        + "lemma Same(x: int) ensures x == x { var (a, b) := (x, 0); }",
    ),
    (
        "names of bound variables, members and limits of proofs",
        SORT,
        SORT_DONE
        + """
predicate i(x: int) { x > 0 }
function j(x: int): int { x }
function Length(s: seq<int>): nat { |s| }
lemma {:timeLimit 60} {:rlimit 100000} {:induction false} Quote'(x: int) ensures x == x { }
lemma Ask?(a_k: int) returns (y: int) ensures y > a_k { return a_k + 1; }
""",
    ),
]
