"""Small Dafny examples that Dafny proves, and a folder of them."""

import json
from dataclasses import asdict, replace
from pathlib import Path

from rlvr_exp.domains.dafny.problem import DafnyExample

MAX = DafnyExample(
    "max",
    "method Max(a: int, b: int) returns (m: int)\n",
    "  ensures m >= a && m >= b\n  ensures m == a || m == b\n",
    "{\n  if a < b {\n    m := b;\n  } else {\n    m := a;\n  }\n}",
    "{\n  if a < b {\n    m := b;\n  } else {\n    m := a;\n  }\n}",
    family="branch",
)
SUM = DafnyExample(
    "sum",
    "method Sum(n: nat) returns (s: nat)\n",
    "  ensures s == Tri(n)\n",
    "{\n  s := 0;\n  var i := 0;\n  while i < n\n  {\n    i := i + 1;\n    s := s + i;\n  }\n}",
    "{\n  s := 0;\n  var i := 0;\n  while i < n\n    invariant 0 <= i <= n\n    invariant s == Tri(i)\n  {\n"
    "    i := i + 1;\n    s := s + i;\n    assert s == Tri(i);\n  }\n}",
    before="function Tri(n: nat): nat { if n == 0 then 0 else n + Tri(n - 1) }\n\n",
    after="\n",
    family="loop",
    mutants=(
        "{\n  s := 0;\n  var i := 0;\n  while i < n\n    invariant 0 <= i\n  {\n    i := i + 1;\n    s := s + i;\n  }\n}",
    ),
)
GROWS = DafnyExample(
    "grows",
    "lemma Grows(n: nat)\n",
    "  ensures Tri(n) >= n\n",
    "{\n}",
    "{\n  if n > 0 {\n    Grows(n - 1);\n  }\n}",
    before=SUM.before,
    family="lemma",
)
EXAMPLES = (MAX, SUM, GROWS)


UP = """method Up(n: nat) returns (m: nat)
  ensures m == n
{
  m := 0;
  while m < n
    invariant m <= n
  {
    assert m < n by {
      assert true;
    }
    m := m + 1;
  }
}
"""


def write_rows(folder: Path, **splits: tuple[DafnyExample, ...]) -> Path:
    """A folder of `SPLIT.jsonl` files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, examples in splits.items():
        rows = [json.dumps({key: value for key, value in asdict(one).items() if key != "source"}) for one in examples]
        (folder / f"{name}.jsonl").write_text("".join(row + "\n" for row in rows))
    return folder


def named(example: DafnyExample, name: str) -> DafnyExample:
    return replace(example, id=name)
