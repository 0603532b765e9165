"""Newer declarations and loops translated to Dafny 2.3; programs that need no change stay unchanged."""

import json
from pathlib import Path

import pytest
from makers import made
from surface_programs import MAX, PROGRAMS
from thinning import thinned

from rlvr_exp.domains.dafny.load import Program, load
from rlvr_exp.domains.dafny.prepare import port, ported

CALLED = "method M() { print F(1); }\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("function F(x: int): int { x }\n", "function method F(x: int): int { x }\n"),
        ("function {:opaque} F(x: int): int { x }\n", "function method {:opaque} F(x: int): int { x }\n"),
        (
            "function G(): int { 1 }\nfunction F(x: int): int { x + G() }\nfunction H(): int { 2 }\n",
            "function method G(): int { 1 }\nfunction method F(x: int): int { x + G() }\nfunction H(): int { 2 }\n",
        ),
        ("ghost predicate P() { true }\n// function F\n", "predicate P() { true }\n// function F\n"),
        ("function method F(x: int): int { x }\nfunction G(): int { F(1) }\n", None),
    ],
)
def test_functions_that_code_calls_are_said_to_be_compiled(text: str, wanted: str | None) -> None:
    assert ported(text + CALLED) == (text if wanted is None else wanted) + CALLED


def test_functions_that_only_proofs_call_stay() -> None:
    text = "function F(): int { 1 }\nlemma L() { assert F() == 1; }\nmethod M() ensures F() == 1 { assert F() == 1; }\n"
    assert ported(text) == text


@pytest.mark.parametrize(
    ("loop", "wanted"),
    [
        (
            "  for i := 0 to n\n    invariant P(i)\n  {\n    S(i);\n  }\n",
            "  { var i := 0;\n  while i < n\n    invariant 0 <= i <= n\n    invariant P(i)\n"
            "  {\n    S(i);\n    i := i + 1;\n  } }\n",
        ),
        (
            "  for i: nat := |s| downto 0 {\n    S(i);\n  }\n",
            "  { var i: nat := |s|;\n  while 0 < i\n    invariant 0 <= i <= |s| {\n    i := i - 1;\n    S(i);\n  } }\n",
        ),
        (
            "  for i := 0 to if b then 1 else 2 { }\n",
            "  { var i := 0;\n  while i < (if b then 1 else 2)\n    invariant 0 <= i <= (if b then 1 else 2) {"
            "   i := i + 1;\n  } }\n",
        ),
        ("  for _ := 0 to n { }\n", None),
        ("  for i := 0 to * { }\n", None),
        ('  print "for i := 0 to 3 { }"; // for i := 0 to 3 { }\n', None),
    ],
)
def test_counting_loops_become_while_loops(loop: str, wanted: str | None) -> None:
    program = "method M(n: nat)\n{{\n{}}}\n"
    assert ported(program.format(loop)) == program.format(loop if wanted is None else wanted)


def test_loops_in_loops_are_all_changed() -> None:
    text = "method M() { for i := 0 to 3 { for j := 0 to i { } for k := 0 to j { } } }"
    changed = ported(text)
    assert changed.count("while") == 3 and "for" not in changed and ported(changed) == changed


@pytest.mark.parametrize("name", thinned(PROGRAMS))
def test_what_is_not_newer_stays_byte_for_byte(name: str) -> None:
    program = Program("p", PROGRAMS[name], "f", "p.dfy")
    assert port(program) == program


def test_the_maker_writes_rows_whose_family_names_what_was_changed(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "max.dfy").write_text(MAX)
    (tmp_path / "in" / "new.dfy").write_text("ghost function F(): int { 1 }\n" + MAX)
    words = (f"prepare.path={tmp_path}/in", f"prepare.output={tmp_path}/out.jsonl")
    assert made(tmp_path, "dafny_backport", *words)[1] == {"programs": 2, "changed": 1}
    found = load(tmp_path / "out.jsonl")
    assert [(one.id, one.family) for one in found] == [
        ("max/Max", "programs"),
        ("new/Max", "programs, back-ported to 2.3"),
    ]
    assert found[1].gold.startswith("function F()") and len((tmp_path / "out.jsonl").read_text().splitlines()) == 2
    assert json.loads((tmp_path / "out.jsonl").open().readline())["program"] == MAX
