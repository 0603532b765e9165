"""Published sets of Dafny programs as rows of +stage=verify, and translated to Dafny 2.3."""

import json
from pathlib import Path

import pytest
from makers import made
from surface_programs import MAX, PROGRAMS
from thinning import thinned

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny.load import DafnyProgram, load
from rlvr_exp.domains.dafny.prepare import port, ported, rows, variants

WEAK = MAX.replace("m >= a && m >= b", "m >= a")
FILES = {
    "textbook_algo/max/max_strong.dfy": MAX,
    "adversarial_incorrect/C1/max/max_strong.dfy": MAX,
    "adversarial_incorrect/C1/max/max_C2.txt": "The smaller one.",
    "adversarial_incorrect/C2/max/max_C1.dfy": WEAK,
    "adversarial_incorrect/C3/max/max_C1.dfy": "predicate P() { true }\n" + MAX,
    "adversarial_incorrect/C6/max/max.dfy": WEAK.replace("if a > b then a else b", "a"),
    "adversarial_incorrect/C6/max/max_strong.dfy": MAX,
    "adversarial_incorrect/C1/summary.json": "{}",
}


def test_ground_truth_is_paired_with_what_has_no_hints(tmp_path: Path) -> None:
    for folder, name in (("ground_truth", "a.dfy"), ("ground_truth", "b.dfy"), ("hints_removed", "a_no_hints.dfy")):
        path = tmp_path / "DafnyBench" / "dataset" / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"// {folder}\r\n", newline="")
    _, counts = made(tmp_path / "run", "dafny_rows", f"prepare.path={tmp_path}", "prepare.variant=pairs")
    (row,) = map(json.loads, (tmp_path / "run" / "rows.jsonl").read_text().splitlines())
    assert row == {"id": "a", "program": "// hints_removed\r\n", "candidate": "// ground_truth\r\n"}
    assert counts == {"rows": 1} and [row["id"] for row in rows(tmp_path, "ground_truth")] == ["a", "b"]


def test_wrong_variants_become_rows(tmp_path: Path) -> None:
    weak = MAX.replace("m >= a && m >= b", "m >= a")
    for name, text in {"textbook_algo/up/up_strong.dfy": MAX, "adversarial_incorrect/C2/up/up_C1.dfy": weak}.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    (row,) = rows(tmp_path, "wrong")
    assert row == {"id": "C2/up", "program": MAX, "candidate": weak, "weakened": True}


def test_tests_that_assert_become_rows_and_those_to_be_run_do_not(tmp_path: Path) -> None:
    asserts = MAX + "method MaxTest() { var m := Max(3, 1); assert m == 3; } // no expect\n"
    tests = {"1": asserts, "2": asserts.replace("assert", "expect"), "3": asserts.replace("assert m == 3", "print m")}
    for name, test in tests.items():
        for folder, text in {"src": MAX, "test": test}.items():
            (tmp_path / "MBPP-DFY-50" / folder).mkdir(parents=True, exist_ok=True)
            (tmp_path / "MBPP-DFY-50" / folder / f"task_id_{name}.dfy").write_text(text)
    (row,) = rows(tmp_path, "tests")
    assert row == {"id": "MBPP-DFY-50/task_id_1", "program": MAX, "candidate": asserts}


def test_a_folder_without_tests_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="MBPP-DFY"):
        list(rows(tmp_path, "tests"))


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / "CloverBench" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def test_each_class_has_its_file_beside_the_right_program(bench: Path) -> None:
    found = variants(bench)
    assert [(one.kind, one.weakened) for one in found] == [("C1", False), ("C2", True), ("C3", True), ("C6", True)]
    assert all(one.given == MAX for one in found) and found[1].text == WEAK


def test_code_alone_is_no_specification(bench: Path) -> None:
    changed = MAX.replace("if a > b then a else b", "a + b")
    (bench / "CloverBench/adversarial_incorrect/C2/max/max_C1.dfy").write_text(changed)
    assert not variants(bench)[1].weakened


def test_a_missing_file_of_cloverbench_is_told(bench: Path) -> None:
    (bench / "CloverBench/adversarial_incorrect/C6/max/max.dfy").unlink()
    with pytest.raises(InputError, match=r"max\.dfy: missing"):
        variants(bench)
    with pytest.raises(InputError, match="adversarial_incorrect"):
        variants(bench / "CloverBench" / "textbook_algo")


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
    program = DafnyProgram("p", PROGRAMS[name], "f", "p.dfy")
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
