"""Published sets of Dafny programs as rows of +stage=verify."""

import json
from pathlib import Path

import pytest
from makers import made
from surface_programs import MAX

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny.prepare import rows, variants

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
