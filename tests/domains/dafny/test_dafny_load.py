"""Every layout in which Dafny programs are published, in small sample files."""

import gzip
import json
import lzma
from dataclasses import replace
from pathlib import Path

import pytest
from surface_programs import GHOSTS, MAX, SUM, TOTAL_BODY

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny.load import load, row_of, survey

NO_HINTS = """function Sum(s: seq<int>): int { if |s| == 0 then 0 else s[0] + Sum(s[1..]) }
lemma Splits(s: seq<int>, i: nat)
  requires i < |s|
  ensures Sum(s[..i + 1]) == Sum(s[..i]) + s[i]
{ if i > 0 { } }
method Total(s: seq<int>) returns (t: int)
  ensures t == Sum(s)
{ t := 0; var i := 0; while i < |s| { Splits(s, i); t := t + s[i]; i := i + 1; } }
"""
MARKED = """method Up(n: nat) returns (m: nat)
  // post-conditions-start
  ensures m == n
  // post-conditions-end
{
  // impl-start
  m := 0;
  while m < n
    // invariants-start
    invariant m <= n
    // invariants-end
  {
    m := m + 1;
    assert m > 0; // assert-line
  }
  // impl-end
}
"""


def put(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def bench(root: Path) -> Path:
    folder = "DafnyBench/dataset"
    files = {f"{folder}/ground_truth/a b.dfy": SUM, f"{folder}/hints_removed/a b_no_hints.dfy": NO_HINTS}
    return put(root, {**files, f"{folder}/ground_truth/alone.dfy": MAX, "DafnyBench/metadata/m.csv": "x"})


def test_dafny_bench_takes_bodies_from_the_programs_without_hints(tmp_path: Path) -> None:
    splits, total, largest = load(bench(tmp_path))
    assert total.body.startswith("{ t := 0;") and "Splits(s, i);" in total.body
    assert splits.body == "{ if i > 0 { } }"
    assert (total.id, largest.id, total.family) == ("a b/Total", "alone/Max", "dafnybench")
    assert total.gold == SUM and total.source == "DafnyBench/dataset/ground_truth/a b.dfy"


@pytest.mark.parametrize(
    "change",
    [("t := 0;", "t := 1;"), ("ensures t == Sum(s)", ""), ("while i < |s| {", "while i < |s| {{"), ("Total", "Totals")],
)
def test_another_program_without_hints_is_not_believed(tmp_path: Path, change: tuple[str, str]) -> None:
    other = NO_HINTS.replace(*change)
    assert other != NO_HINTS
    put(bench(tmp_path), {"DafnyBench/dataset/hints_removed/a b_no_hints.dfy": other})
    assert load(tmp_path)[1].body == TOTAL_BODY


def test_dafny_bench_by_its_list_gives_what_its_folders_give(tmp_path: Path) -> None:
    row = {"test_ID": "0", "test_file": "a b.dfy", "ground_truth": SUM, "hints_removed": NO_HINTS}
    put(tmp_path / "list", {"DafnyBench/test.json": json.dumps([row])})
    texts = [(one.id, one.body, one.gold) for one in load(tmp_path / "list")]
    assert texts == [(one.id, one.body, one.gold) for one in load(bench(tmp_path / "folders"))[:2]]


def test_humaneval_markers_of_annotations_go_and_others_stay(tmp_path: Path) -> None:
    files = {"007-up.dfy": MARKED, "tests/007-up.dfy": "method Main() { }", "text-descriptions/007-up.txt": "up"}
    (found,) = load(put(tmp_path, files))
    assert (found.id, found.family) == ("007-up/Up", "humaneval_dafny") and found.gold == MARKED
    lines = "{\n  // impl-start\n  m := 0;\n  while m < n\n  {\n    m := m + 1;\n  }\n  // impl-end\n}"
    assert found.body == lines
    assert found.spec.startswith("  // post-conditions-start\n")


def test_mbpp_gives_sources_and_listed_code_but_no_tests(tmp_path: Path) -> None:
    listed = {"7": {"task_id": "7", "task_description": "d", "code": MAX}, "8": {"task_id": "8", "test_cases": {}}}
    files = {
        "MBPP-DFY-153/src/task_id_3.dfy": MAX,
        "MBPP-DFY-153/test/task_id_3.dfy": MAX + "method Main() { assert true; }",
        "MBPP-DFY-50/mbpp-dfy-50-examples-db.json": json.dumps(listed),
    }
    names = [one.id for one in load(put(tmp_path, files))]
    assert names == ["MBPP-DFY-153/task_id_3/Max", "mbpp-dfy-50-examples-db/7/Max"]
    assert len(load(tmp_path / "MBPP-DFY-153")) == 1


def test_clover_gives_the_right_programs_alone(tmp_path: Path) -> None:
    files = {
        "CloverBench/textbook_algo/max/max_strong.dfy": MAX,
        "CloverBench/textbook_algo_unit_tests/max/max_tests.dfy": MAX,
        "CloverBench/adversarial_incorrect/C1/max/max_strong.dfy": MAX,
    }
    put(tmp_path, files)
    assert [one.id for one in load(tmp_path)] == ["max/Max"]


def test_plain_programs_are_named_by_their_path(tmp_path: Path) -> None:
    put(tmp_path, {"one.dfy": MAX, "sub/one.dfy": GHOSTS, ".hidden/x.dfy": MAX, "notes.txt": "x"})
    assert [one.id for one in load(tmp_path)] == ["one/Max", "sub/one/M.C.Note", "sub/one/M.C.Add"]
    assert [one.id for one in load(tmp_path / "one.dfy")] == ["one/Max"]


@pytest.mark.parametrize("pack", [lambda text: text, gzip.compress, lzma.compress])
def test_rows_hold_examples_or_programs(tmp_path: Path, pack: object) -> None:
    texts = {"header": "method M()\n", "spec": "", "body": "{ }", "annotated_body": "{ assert true; }", "after": "\n"}
    rows = [{"id": "e", **texts, "family": "f", "mutants": ["{ assert false; }"], "more": 1}, {"id": 5, "program": MAX}]
    rows.append({"test_file": "x.dfy", "ground_truth": SUM, "hints_removed": NO_HINTS})
    content = pack("".join(json.dumps(row) + "\n\n" for row in rows).encode())
    name = {b"\x1f\x8b": "r.jsonl.gz", b"\xfd7": "r.jsonl.xz"}.get(content[:2], "r.jsonl")
    one, two, _, last = load(put(tmp_path, {name: content}))
    assert one.mutants == ("{ assert false; }",) and one.gold == "method M()\n{ assert true; }\n"
    assert [(one.id, one.family), (two.id, two.family), last.id] == [("e", "f"), ("5/Max", "rows"), "x/Total"]
    assert one.source == name


def test_an_example_written_as_a_row_is_read_as_it_was(tmp_path: Path) -> None:
    put(tmp_path, {"sum.dfy": "\ufeff" + SUM.replace("\n", "\r\n")})
    given = [replace(one, mutants=("{ }",)) for one in load(tmp_path)]
    content = "".join(json.dumps(row_of(one)) + "\n" for one in given)
    found = load(put(tmp_path / "rows", {"train.jsonl": content}))
    assert found == [replace(one, source="train.jsonl") for one in given]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ('{"id": "a", "header": "method M()"}', "line 1, spec"),
        ('{"id": "a", "program": 3}', "line 1, program"),
        ('{"id": [], "program": ""}', "line 1, id"),
        ('{"id": "a"}', "neither an example nor a program"),
        ('{"id": "a", "program": "method M() { }", "hints_removed": 3}', "hints_removed"),
        ("[]", "not a row"),
        ("{", "not JSON"),
        ("\x00", "not JSON"),
    ],
)
def test_faults_of_rows_name_line_and_key(tmp_path: Path, row: str, told: str) -> None:
    put(tmp_path, {"rows.jsonl": row + "\n"})
    with pytest.raises(InputError, match=told):
        load(tmp_path)


def test_all_faulty_rows_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as told:
        load(put(tmp_path, {"rows.jsonl": "{}\n" * 3}))
    assert len(told.value.problems) == 3


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"x.txt": "a"}, "no Dafny programs here"),
        ({"x.dfy": b"method M() { } // \xff"}, "not UTF-8"),
        ({"DafnyBench/test.json": "{"}, "not JSON"),
        ({"rows.jsonl": '{"id": 1, "program": "method M() { }"}\n' * 2}, "stand twice"),
        ({"r.jsonl.xz": b"\xfd7zXZ\x00broken"}, "damaged archive"),
    ],
)
def test_faults_of_files_are_told(tmp_path: Path, files: dict[str, str | bytes], told: str) -> None:
    with pytest.raises(InputError, match=told):
        load(put(tmp_path, files))


def test_what_gives_no_example_is_counted_with_its_reason(tmp_path: Path) -> None:
    put(tmp_path, {"a.dfy": "// nothing\n", "b.dfy": "method M() {", "c.dfy": MAX})
    found = survey(tmp_path)
    assert found.left_out == {"a": "no method or lemma with a body", "b": "cannot be read: a { that is never closed"}
    assert len(found.programs) == 3 and len(found.examples) == 1


def test_methods_of_one_name_have_ids_of_their_own(tmp_path: Path) -> None:
    put(tmp_path, {"a.dfy": MAX + MAX})
    assert [one.id for one in load(tmp_path)] == ["a/Max", "a/Max~2"]
