"""CloverBench's wrong variants: which file is a variant, of which program, and whether it specifies less."""

from pathlib import Path

import pytest
from surface_programs import MAX

from rlvr_exp.core.errors import InputError
from rlvr_exp.corpora.dafny.clover import variants

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


def test_what_is_missing_is_told(bench: Path) -> None:
    (bench / "CloverBench/adversarial_incorrect/C6/max/max.dfy").unlink()
    with pytest.raises(InputError, match=r"max\.dfy: missing"):
        variants(bench)
    with pytest.raises(InputError, match="adversarial_incorrect"):
        variants(bench / "CloverBench" / "textbook_algo")
