"""Rollout files: rows are restored when read, each prompt is written once, a file is complete or absent."""

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvr_exp.core.errors import InputError
from rlvr_exp.records.rollout_files import RolloutRow, from_row, read_rollouts, rollout_steps, write_rollouts

PLAIN = dict(
    step=10, task="rotate-1", family="rotate", group=0, sample=0, prompt="1 2\n3 4", completion="return g", tokens=7,
    truncated=False, outcome="failed", bucket="wrong_answer", rule=None, passed=1, total=3, reward=0.4,
    terms={"cases": 0.33}, advantage=-0.5, log="case 2: expected [[1]]",
)  # fmt: skip


def row(**changes):
    return from_row(RolloutRow, {**PLAIN, **changes})


COMPLETIONS = st.lists(st.tuples(st.integers(0, 3), st.text()), max_size=12)


@settings(deadline=None)
@given(COMPLETIONS)
def test_rows_round_trip_with_any_text(tmp_path_factory, drawn):
    rows = [
        row(group=group, sample=index, prompt=f"prompt of {group}\u00e9", completion=text, log=text)
        for index, (group, text) in enumerate(drawn)
    ]
    path = write_rollouts(tmp_path_factory.mktemp("run"), 10, rows)
    assert path.name == "step_000010.jsonl.gz"
    assert read_rollouts(path) == rows


def test_a_prompt_stands_once_a_group_in_the_file(tmp_path):
    path = write_rollouts(tmp_path, 10, [row(group=group, sample=i) for group in (0, 1) for i in range(4)])
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert [i for i, row in enumerate(rows) if "prompt" in row] == [0, 4]
    assert list(rows[0]) == [
        "step", "task", "family", "group", "sample", "prompt", "completion", "tokens", "truncated", "outcome",
        "bucket", "rule", "passed", "total", "reward", "terms", "advantage", "log", "fate", "waited",
    ]  # fmt: skip


def test_equal_rows_are_equal_bytes(tmp_path):
    first, second = (write_rollouts(tmp_path / name, 10, [row()]).read_bytes() for name in "ab")
    assert first == second
    assert first[4:8] == bytes(4)  # gzip's time of writing


def test_steps_are_listed_in_order_whatever_the_folder_holds(tmp_path):
    for step in (20, 3, 1000000):
        write_rollouts(tmp_path, step, [row(step=step)])
    (tmp_path / "rollouts" / ".step_000004.jsonl.gz.x.tmp").write_bytes(b"")
    assert list(rollout_steps(tmp_path)) == [3, 20, 1000000]


@pytest.mark.parametrize(
    "rows, message",
    [
        ([row(step=11)], r"steps \[11\] in the file of step 10"),
        ([row(), row(sample=1, prompt="another")], "two different prompts"),
        ([row(reward=float("nan"))], "JSON compliant"),
    ],
)
def test_a_faulty_step_leaves_no_file(tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        write_rollouts(tmp_path, 10, rows)
    assert list((tmp_path / "rollouts").glob("*") if (tmp_path / "rollouts").exists() else []) == []


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[: len(data) // 2], lambda data: b"{}\n", lambda data: b"", lambda data: gzip.compress(b"5\n")],
)
def test_a_damaged_file_is_refused_by_name(tmp_path, damage):
    path = write_rollouts(tmp_path, 10, [row()])
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match="step_000010"):
        read_rollouts(path)


def test_rows_of_another_version_are_refused_with_the_keys(tmp_path):
    path = write_rollouts(tmp_path, 10, [row()])
    path.write_bytes(gzip.compress(b'{"step": 10, "task": "a", "group": 0, "prompt": "p"}\n'))
    with pytest.raises(InputError, match="advantage, bucket, completion"):
        read_rollouts(path)
