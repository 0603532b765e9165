"""Rows of a user's own, and sets of one split: read from every kind of file, split by content, judged both ways."""

import json
import tempfile
from itertools import chain
from pathlib import Path

import datasets
import pyarrow
import pytest
from code_samples import write_set
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.code.tasks import Code
from rlvr_exp.evaluation.leakage import apart
from rlvr_exp.tasks.code_sets import load

ROW = {"prompt": "Write double(x).", "tests": ["assert double(2) == 4", "assert double(-1) == -2"]}


def rows(count: int) -> list[dict]:
    """Different problems: add a number."""
    return [
        {
            "prompt": f"Write plus_{n}(x), which adds {n}.",
            "tests": [f"assert plus_{n}(1) == {1 + n}", f"assert plus_{n}(-4) == {n - 4}"],
            "solution": f"def plus_{n}(x):\n    return x + {n}\n",
        }
        for n in range(1, count + 1)
    ]


def written(path: Path, found: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in found))
    return path


def ids(domain: Code) -> dict[str, list[str]]:
    return {name: [task.id for task in tasks] for name, tasks in domain.splits().items()}


def test_cases_and_asserts_have_the_tolerances_of_their_row(tmp_path: Path) -> None:
    case = {"prompt": "Halve.", "entry_point": "half", "cases": [{"args": [1], "expected": 0.5}]}
    given = [case | {"atol": 0.1, "rtol": 0.01}, ROW | {"rtol": 0.02}]
    domain = Code(str(written(tmp_path / "test.jsonl", given)), judge="python_io", draw_splits=False)
    assert [task.problem.comparison for task in domain.splits()["test"]] == [(False, 0.1, 0.01), (False, 0.0, 0.02)]
    with pytest.raises(InputError, match="line 1: rtol: got -1, allowed a number from 0 to 1"):
        Code(str(written(tmp_path / "bad.jsonl", [case | {"rtol": -1}])), judge="python_io").splits()


@pytest.mark.parametrize("judge", ["pytest", "python_io"])
def test_ten_problems_have_three_splits_without_a_word_about_them(judge: str, tmp_path: Path) -> None:
    domain = Code(str(written(tmp_path / "toy.jsonl", rows(10))), judge=judge)
    assert domain.sizes() == {"train": 8, "dev": 1, "test": 1}
    again = Code(str(written(tmp_path / "again.jsonl", rows(10)[::-1])), judge=judge)
    assert {name: sorted(found) for name, found in ids(again).items()} == {
        name: sorted(found) for name, found in ids(domain).items()
    }, "splits depend on what the rows say and not on their order"
    assert {task.gold for tasks in domain.splits().values() for task in tasks} == {row["solution"] for row in rows(10)}


def test_a_row_says_its_own_split_and_a_file_that_of_its_rows(tmp_path: Path) -> None:
    own = [{**row, "split": name} for row, name in zip(rows(3), ("train", "validation", "test"), strict=True)]
    assert Code(str(written(tmp_path / "rows.jsonl", own))).sizes() == {"train": 1, "dev": 1, "test": 1}
    folder = tmp_path / "named"
    folder.mkdir()
    written(folder / "train.jsonl", rows(10)[:8])
    written(folder / "test.jsonl", rows(10)[8:])
    sizes = Code(str(folder)).sizes()
    assert sizes["test"] == 2 and sizes["train"] + sizes["dev"] == 8 and sizes["dev"] >= 1, "only dev is drawn"
    null = tmp_path / "null"
    null.mkdir()
    written(null / "train.jsonl", [{**row, "split": None} for row in rows(10)[:8]])
    written(null / "test.jsonl", [{**row, "split": None} for row in rows(10)[8:]])
    assert Code(str(null)).sizes()["test"] == 2, "null says nothing"
    for name, some in (("train", rows(10)[:8]), ("test", rows(10)[8:])):
        (tmp_path / "folders" / name).mkdir(parents=True)
        written(tmp_path / "folders" / name / "x.jsonl", some)
    assert Code(str(tmp_path / "folders")).sizes()["test"] == 2
    with pytest.raises(InputError, match="split: no such split\n    got: tset"):
        Code(str(written(tmp_path / "odd.jsonl", [{**ROW, "split": "tset"}]))).splits()


@pytest.mark.parametrize("layout", ["jsonl", "jsonl.zst", "parquet", "saved", "saved splits"])
def test_every_layout_of_the_same_rows_has_the_same_tasks(layout: str, tmp_path: Path) -> None:
    table, path = datasets.Dataset.from_list(rows(10)), tmp_path / layout
    if layout == "jsonl":
        path = written(tmp_path / "x.jsonl", rows(10))
    elif layout == "jsonl.zst":
        plain, path = written(tmp_path / "y", rows(10)), tmp_path / "x.jsonl.zst"
        with pyarrow.output_stream(str(path), compression="zstd") as packed:
            packed.write(plain.read_bytes())
    elif layout == "parquet":
        path = tmp_path / "x.parquet"
        table.to_parquet(str(path))
    elif layout == "saved":
        table.save_to_disk(str(path))
    else:
        datasets.DatasetDict({"train": table.select(range(9)), "test": table.select([9])}).save_to_disk(str(path))
    found = Code(str(path))
    plain = Code(str(written(tmp_path / "plain.jsonl", rows(10))))
    assert sorted(chain(*ids(found).values())) == sorted(chain(*ids(plain).values()))
    if layout == "saved splits":
        last = Code(str(written(tmp_path / "last.jsonl", rows(10)[9:])), draw_splits=False)
        assert ids(found)["test"] == ids(last)["test"]
    else:
        assert ids(found) == ids(plain)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"prompt": "Write f.", "tests": "def f(:"}, "tests: cannot be read as Python"),
        ({"prompt": "Write f.", "tests": []}, "tests"),
        ({**ROW, "id": 1.5}, "id"),
        ({**ROW, "prompt": 3}, "prompt"),
    ],
)
def test_a_faulty_row_is_named_by_its_line_and_key(row: dict, said: str, tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl", [*rows(2), row])
    with pytest.raises(InputError) as refused:
        Code(str(path)).splits()
    (problem,) = refused.value.problems
    assert problem.where == f"{path}, line 3" and said in problem.what


def test_a_set_of_one_split_is_drawn_from_and_published_on_request(tmp_path: Path) -> None:
    path = written(tmp_path / "one.jsonl", [{**row, "split": "test"} for row in rows(12)])
    drawn = Code(str(path))
    assert set(drawn.sizes()) == {"train", "dev", "test"} and "draw_splits=false" in drawn.splits_note()
    published = Code(str(path), draw_splits=False)
    assert published.sizes() == {"test": 12} and published.splits_note() == ""


def test_a_set_whose_licence_forbids_training_stays_whole(tmp_path: Path) -> None:
    domain = Code(str(write_set(tmp_path, "canitedit")))
    assert "licence" in domain.no_training() and set(domain.sizes()) == {"test"}


@settings(deadline=None, max_examples=tries(40))
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.booleans()), min_size=2, max_size=14), st.integers(0, 3))
@pytest.mark.property(36)
def test_no_held_out_task_is_trained_on_whatever_its_id(drawn, seed) -> None:
    """The same problem may stand there again, under another id, with other names and other blanks."""
    found = []
    for number, (n, renamed, blank) in enumerate(drawn):
        row = dict(rows(6)[n], id=f"row{number}")
        if renamed:
            row["solution"] = row["solution"].replace("x", "value")
        if blank:
            row["prompt"] = row["prompt"].replace(" ", "  ").upper()
        found.append(row)
    with tempfile.TemporaryDirectory() as folder:
        domain = Code(str(written(Path(folder) / "rows.jsonl", found)), seed=seed)
        splits = domain.splits()
        held = [task for name in ("dev", "test") for task in splits.get(name, ())]
        assert apart(domain, splits.get("train", ()), held).left_out == {}, "drawn by content"


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"task_id": 3, "text": "x", "code": "pass"}, "nearly a row of mbpp: it lacks test_list"),
        ({"prompt": "x", "test": ["assert f() == 1"]}, "nearly a row of your own: it lacks tests or cases"),
        ({"a": 1}, ""),
    ],
)
def test_a_row_that_is_nearly_one_of_a_set_is_told_with_its_line_and_what_it_lacks(
    row: dict[str, object], told: str, tmp_path: Path
) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text("\n" + json.dumps(row) + "\n")
    with pytest.raises(InputError) as refused:
        load(path)
    first, *nearly = refused.value.problems
    assert first.what == "no code set is here"
    assert [(one.where, one.what) for one in nearly] == ([(f"{path}, line 2", told)] if told else [])


def test_a_file_that_is_broken_is_told_beside_one_that_is_not(tmp_path: Path) -> None:
    written(tmp_path / "train.jsonl", rows(10))
    (tmp_path / "dev.jsonl").write_text("{broken\n")
    with pytest.raises(InputError, match=r"dev\.jsonl, line 1"):
        Code(str(tmp_path)).splits()
