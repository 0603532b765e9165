import copy
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from arc_samples import IDS, json_tasks, simple, write_folder, write_rows, write_two_files
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import tries

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.arc.load import load
from rlvr_exp.domains.arc.puzzle import ArcRecord, from_lists

LAYOUTS = [write_folder, write_two_files, write_rows]


def grids_of(record: ArcRecord) -> dict[str, list]:
    return {
        "train": [(pair.input, pair.output) for pair in record.train],
        "test": [(pair.input, pair.output) for pair in record.test],
    }


def wanted(task: dict[str, Any]) -> dict[str, list]:
    return {
        key: [(from_lists(pair["input"], ""), from_lists(pair["output"], "")) for pair in task[key]]
        for key in ("train", "test")
    }


@pytest.mark.property(1)
@pytest.mark.parametrize("write", LAYOUTS)
@settings(deadline=None, max_examples=tries(40))
@given(tasks=st.dictionaries(IDS, json_tasks(), min_size=1, max_size=4))
def test_every_task_is_loaded_whole(write: Callable, tasks: dict[str, Any]) -> None:
    with TemporaryDirectory() as folder:
        write(Path(folder), tasks)
        loaded = {record.id: grids_of(record) for record in load(Path(folder))}
    assert loaded == {name: wanted(task) for name, task in tasks.items()}


FAULTS: dict[str, tuple[str, Callable[[dict], Any]]] = {
    "no train": ("train", lambda task: task.pop("train")),
    "empty test": ("test", lambda task: task["test"].clear()),
    "train is an object": ("train", lambda task: task.update(train={})),
    "no input": ("test[0].input", lambda task: task["test"][0].pop("input")),
    "no train output": ("train[0].output", lambda task: task["train"][0].pop("output")),
    "pair is a list": ("train[0]", lambda task: task["train"].__setitem__(0, [])),
    "null output": ("test[0].output", lambda task: task["test"][0].update(output=None)),
    "empty row": ("train[0].input[0]", lambda task: task["train"][0]["input"].__setitem__(0, [])),
    "colour 10": ("train[0].output[0]", lambda task: task["train"][0]["output"][0].__setitem__(0, 10)),
    "a bool": ("test[0].input[0]", lambda task: task["test"][0]["input"][0].__setitem__(0, True)),
    "a fraction": ("test[0].output[0]", lambda task: task["test"][0]["output"][0].__setitem__(0, 1.0)),
    "ragged": ("train[0].input[1]", lambda task: task["train"][0]["input"].insert(1, [0] * 9)),
}


@pytest.mark.property(5)
@pytest.mark.parametrize("write", [write_folder, write_rows])
@pytest.mark.parametrize("fault", FAULTS)
@settings(deadline=None, max_examples=5)
@given(task=json_tasks())
def test_a_fault_is_always_named_by_file_and_key(write: Callable, fault: str, task: dict[str, Any]) -> None:
    key, damage = FAULTS[fault]
    damaged = copy.deepcopy(task)
    damage(damaged)
    with TemporaryDirectory() as folder:
        write(Path(folder), {"good": task, "bad": damaged})
        with pytest.raises(InputError) as caught:
            load(Path(folder))
        with pytest.raises(InputError) as again:
            load(Path(folder))
    assert str(again.value) == str(caught.value)
    file = "bad.json" if write is write_folder else "train.jsonl.xz, line 2"
    assert [problem.where for problem in caught.value.problems] == [f"{folder}/{file}, {key}"]


@pytest.mark.property(5)
@settings(deadline=None, max_examples=tries(40))
@given(task=json_tasks(), more=st.dictionaries(IDS.map("x".__add__), st.integers() | st.none() | st.text(), max_size=3))
def test_unknown_keys_change_nothing(task: dict[str, Any], more: dict[str, Any]) -> None:
    task["train"][0] = {**more, **task["train"][0]}
    with TemporaryDirectory() as folder:
        write_folder(Path(folder), {"a": {**more, **task}})
        assert grids_of(load(Path(folder))[0]) == wanted(task)


def test_faults_of_all_files_are_shown_at_once(tmp_path: Path) -> None:
    tasks = {"a": {"train": 1, "test": []}, "c": simple(), "d": [1]}
    write_folder(tmp_path, tasks)
    (tmp_path / "b.json").write_text('{"train": [')
    with pytest.raises(InputError) as caught:
        load(tmp_path)
    names = [problem.where.removeprefix(f"{tmp_path}/") for problem in caught.value.problems]
    assert names == ["a.json, train", "a.json, test", "b.json", "d.json"]
    assert "line 1 column" in caught.value.problems[2].got


def test_a_flood_of_faults_is_counted(tmp_path: Path) -> None:
    write_folder(tmp_path, {f"t{number:02}": {} for number in range(40)})
    with pytest.raises(InputError, match="60 further faults"):
        load(tmp_path)


@pytest.mark.parametrize("content", [b"\xff\xfe{}", b"", b"[" * 100000, b"nan?"])
def test_files_that_are_no_json(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.json: not JSON"):
        load(tmp_path)


def test_a_byte_order_mark_is_legal(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(simple()).encode())
    assert load(tmp_path)[0].id == "a"


@pytest.mark.parametrize("path", ["empty", "missing"])
def test_nothing_there(tmp_path: Path, path: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=f"{path}: no ARC tasks here\n    remedy"):
        load(tmp_path / path)


def test_upstream_folders_name_the_split_and_the_family(tmp_path: Path) -> None:
    write_folder(tmp_path / "data" / "training", {"a": simple(1)})
    write_folder(tmp_path / "data" / "evaluation" / "deep", {"b": simple(2)})
    write_folder(tmp_path, {"c": simple(3)})
    found = {record.id: (record.split, record.family) for record in load(tmp_path)}
    assert found == {"a": ("training", "training"), "b": ("evaluation", "deep"), "c": ("", tmp_path.name)}
    assert {record.split for record in load(tmp_path / "data" / "evaluation")} == {"evaluation"}


def test_one_file_alone_and_hidden_folders(tmp_path: Path) -> None:
    same = {"input": [[1]], "output": [[1]]}
    write_folder(tmp_path, {"c": {"train": [same], "test": [same]}, "a": simple(1), ".cache/b": simple(2)})
    (tmp_path / "notes.txt").write_text("not a task")
    assert [record.id for record in load(tmp_path)] == ["a", "c"], "in the order of the names"
    assert len(load(tmp_path)[1].problem().cases) == 2, "an input may equal its output"
    assert [record.id for record in load(tmp_path / "a.json")] == ["a"]


def test_clashing_ids_carry_their_folder(tmp_path: Path) -> None:
    write_folder(tmp_path, {"x/a": simple(1), "y/a": simple(2), "y/b": simple(3)})
    assert [record.id for record in load(tmp_path)] == ["x/a", "y/a", "b"]


def test_one_name_twice_in_a_file_is_refused(tmp_path: Path) -> None:
    rows = [json.dumps({"id": "a", **simple(n)}) for n in (1, 2)]
    (tmp_path / "train.jsonl").write_text("\n".join(rows))
    with pytest.raises(InputError, match="train/a: two tasks of this name"):
        load(tmp_path)


def test_challenges_take_their_split_from_the_name(tmp_path: Path) -> None:
    write_two_files(tmp_path, {"a": simple(1)}, "arc-agi_training")
    write_two_files(tmp_path, {"b": simple(2)}, "arc-agi_evaluation")
    write_two_files(tmp_path, {"c": simple(3)}, "arc-agi_test")
    (tmp_path / "arc-agi_test_solutions.json").unlink()
    found = {record.id: (record.split, record.hidden) for record in load(tmp_path)}
    assert found == {"a": ("training", False), "b": ("evaluation", False), "c": ("", True)}
    assert [record.id for record in load(tmp_path / "arc-agi_evaluation_challenges.json")] == ["b"]


def test_solutions_must_fit(tmp_path: Path) -> None:
    write_two_files(tmp_path, {"a": simple(1), "b": simple(2)}, "x")
    (tmp_path / "x_solutions.json").write_text(json.dumps({"a": [[[1]], [[2]]]}))
    with pytest.raises(InputError, match=r"x_solutions\.json, a: outputs do not fit the tests\n    got: 2 grids"):
        load(tmp_path)
    (tmp_path / "x_challenges.json").unlink()
    with pytest.raises(InputError, match=r"solutions without challenges\n    remedy: put x_challenges\.json"):
        load(tmp_path)


def test_rows_carry_family_program_and_split(tmp_path: Path) -> None:
    program = "def solve(g):\n    return g"
    for split in ("train", "test_unseen"):
        write_rows(tmp_path, {split: simple()}, split, family="mirror", program=program, steps=1, style="short")
    found = [(record.id, record.split, record.family, record.gold) for record in load(tmp_path)]
    assert found == [(name, name, "mirror", program) for name in ("test_unseen", "train")]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("[]", "line 1, id: missing"),
        ("{}", "line 1, id: missing"),
        ('{"id": 3}', "line 1, id: missing or not text\n    got: 3"),
        ('{"id": "a", "family": 3}', "line 1, family: missing or not text"),
        (json.dumps({"id": "a", "program": 3, **simple()}), "line 1, program: not text"),
    ],
)
def test_rows_at_fault(tmp_path: Path, row: str, fault: str) -> None:
    (tmp_path / "train.jsonl").write_text(row)
    with pytest.raises(InputError, match=fault):
        load(tmp_path)


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl.xz").write_bytes(lzma.compress(json.dumps({"id": "a", **simple()}).encode())[:-20])
    with pytest.raises(InputError, match=r"train\.jsonl\.xz: damaged archive"):
        load(tmp_path)
