"""Small Dafny programs written for these tests, and programs put together at random from their parts."""

from functools import partial

from hypothesis import strategies as st

SUM = """// adds up { not a brace }
function Sum(s: seq<int>): int { if |s| == 0 then 0 else s[0] + Sum(s[1..]) }

lemma Splits(s: seq<int>, i: nat)
  requires i < |s|
  ensures Sum(s[..i + 1]) == Sum(s[..i]) + s[i]
{
  if i > 0 { Splits(s[1..], i - 1); }
}

method Total(s: seq<int>) returns (t: int)
  ensures t == Sum(s)
{
  t := 0;
  var i := 0;
  while i < |s|
    invariant 0 <= i <= |s|
    // what is added so far
    invariant t == Sum(s[..i])
  {
    Splits(s, i);
    t := t + s[i];  // one more
    i := i + 1;
  }
  assert s[..i] == s;
}
"""
TOTAL_BODY = """{
  t := 0;
  var i := 0;
  while i < |s|
    // what is added so far
  {
    t := t + s[i];  // one more
    i := i + 1;
  }
}"""
MAX = "method Max(a: int, b: int) returns (m: int)\n  ensures m >= a && m >= b\n{\n  m := if a > b then a else b;\n}\n"
BY_METHOD = """function Twice(x: nat): nat
  ensures Twice(x) == 2 * x
{ 2 * x } by method {
  return x + x;
}
"""
GHOSTS = """module M {
  class C {
    var n: int
    ghost method Note(x: int) ensures x == x { assert x == x; }
    method {:verify true} Add(x: int)
      modifies this
      ensures n == old(n) + x
    { Note(x); n := n + x; }
  }
}
"""
PROGRAMS = {"sum": SUM, "max": MAX, "by_method": BY_METHOD, "ghosts": GHOSTS}

BLANKS = st.sampled_from(
    (" ", "\n", "\r\n", "\r", "\t", "\n\n  ")
    + ("/* } /* { */ ' */", '// " {\n', "/* é 中 */", "//\r\n", " /*a*/ /*b*/\n ")
)
NAMES = st.sampled_from(("M", "x'", "_a", "Is?", "method1", "B9"))
EXPRESSIONS = st.sampled_from(
    ("true", "x in {1, 2}", "|s| == 0", "'{' != '}'", '"}" == "{"', '@"""}" != ""', "forall i {:trigger} :: i == i")
    + ("s[..1] == [y]", "match x { case _ => true }", "(var k := 3; k == 3)", "old(x) !in {}", "multiset{1} == {}")
)
STATEMENTS = st.sampled_from(
    ("x := 1;", "assert x == 1;", "while x < 3 invariant { } == { } decreases 3 - x { x := x + 1; }", "{ { } }")
    + ('print "}";', "if x == 1 { } else { x := 2; }", "calc == { 1; { } 1; }", "forall i | i == 1 ensures i == 1 { }")
    + ("ghost var g := {1};", "match x { case 1 => y := 2; case _ => }", "var c := '}';")
    + ("label L: while true { break L; }",)
)


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A program of a few declarations, with blanks and comments wherever they are allowed."""
    gap = partial(draw, BLANKS)
    parts = [draw(st.sampled_from(("", "\ufeff"))), draw(st.sampled_from(("", gap())))]
    for number in range(draw(st.integers(0, 3))):
        one = _declaration(draw, number)
        holder = draw(st.sampled_from(("", f"module N{number}", f"class {{:attr {{1}}}} K{number}")))
        parts.append(f"{holder}{gap()}{{{gap()}{one}{gap()}}}" if holder else one)
        parts.append(gap())
    text = "".join(parts)
    return text.rstrip() if draw(st.booleans()) else text


def _declaration(draw: st.DrawFn, number: int) -> str:
    gap = partial(draw, BLANKS)
    name, expression = f"{draw(NAMES)}{number}", partial(draw, EXPRESSIONS)
    clauses = "".join(
        f"{gap()}{draw(st.sampled_from(('requires', 'ensures')))} {expression()}{draw(st.sampled_from(('', ';')))}"
        for _ in range(draw(st.integers(0, 2)))
    )
    kind = draw(st.sampled_from(("method", "ghost method", "lemma", "function", "by method", "datatype", "open")))
    if kind == "datatype":
        return f"datatype {name} = A{number}(x: int) | B{number}"
    if kind == "open":
        return f"method {name}(x: int){clauses}"
    if kind in ("function", "by method"):
        method = f"{gap()}by method{gap()}{{{gap()}return true;}}" if kind == "by method" else ""
        return f"function {name}(x: int): bool{clauses}{gap()}{{{gap()}{expression()}{gap()}}}{method}"
    body = "".join(f"{gap()}{draw(STATEMENTS)}" for _ in range(draw(st.integers(0, 4))))
    attribute = draw(st.sampled_from(("", "{:fuel {1}} ")))
    return f"{kind}{gap()}{attribute}{name}(x: int){clauses}{gap()}{{{body}{gap()}}}"
