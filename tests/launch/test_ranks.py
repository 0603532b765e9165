"""Several processes of one run: who each is, and that they end together."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rlvr_exp.config import parallel as devices
from rlvr_exp.config.compose import compose
from rlvr_exp.config.parallel import Parallel
from rlvr_exp.launch import children
from rlvr_exp.launch.children import (
    NAMES,
    Ended,
    environments,
    every_device,
    log_name,
    own_directory,
    remove_scratch,
    run_children,
)

ROOT = Path(__file__).parents[2]
HEAD = """
import json, os, signal, sys, time
from rlvr_exp.launch.children import hold_lifeline
directory, progress, life = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
hold_lifeline(life)
rank = int(os.environ["RANK"])
os.write(progress, (json.dumps({"rank": rank}) + "\\n").encode())
open(directory + f"/pid{rank}", "w").write(str(os.getpid()))
"""
WAIT = "time.sleep(60)"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(children, "GRACE_FAULT_S", 0.5)
    monkeypatch.setattr(children, "GRACE_S", 1.0)

    def start(body: str) -> tuple[Ended, list[Mapping[str, Any]]]:
        (tmp_path / "rank_of_test.py").write_text(HEAD + body)
        shared = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
        heard: list[Mapping[str, Any]] = []
        envs = environments(Parallel(strategy="ddp", processes=2), shared)
        ended = run_children("rank_of_test", [str(tmp_path)], tmp_path, envs, heard.append)
        for rank in range(2):
            assert not Path("/proc", (tmp_path / f"pid{rank}").read_text()).exists(), "no rank outlives the run"
        return ended, heard

    return start


@pytest.mark.heavy
def test_all_end_well_and_the_first_alone_is_heard(run, tmp_path: Path) -> None:
    ended, heard = run("print('rank', rank)")
    assert ended == Ended(0, stop_requested=False, rank=0)
    assert heard == [{"rank": 0}]
    assert [(tmp_path / log_name(rank)).read_text() for rank in range(2)] == ["rank 0\n", "rank 1\n"]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("rank", "end", "code"), [(0, "os.kill(os.getpid(), 9)", -9), (1, "sys.exit(1)", 1), (0, "sys.exit(3)", 3)]
)
def test_one_that_fails_ends_the_other_which_would_wait_for_it(run, rank: int, end: str, code: int) -> None:
    began = time.monotonic()
    ended, _ = run(f"time.sleep(0.2)\nif rank == {rank}: {end}\n{WAIT}")
    assert ended == Ended(code, stop_requested=False, rank=rank)
    assert time.monotonic() - began < 20


@pytest.mark.heavy
def test_what_a_rank_says_when_it_misses_another_does_not_count(run) -> None:
    ended, _ = run("if rank == 1: sys.exit(3)\ntime.sleep(2)\nsys.exit(1)")
    assert ended == Ended(3, stop_requested=False, rank=1)


@pytest.mark.heavy
def test_a_rank_that_hangs_at_the_end_of_a_good_run_is_killed_and_the_run_is_good(run) -> None:
    assert run(f"if rank: {WAIT}")[0] == Ended(0, stop_requested=False, rank=0)


def test_one_process_does_not_wait_for_ranks_that_something_else_had_in_mind() -> None:
    left = dict.fromkeys(NAMES, "7") | {"HOME": "/root"}
    assert environments(Parallel(), left) == [{"HOME": "/root"}]


@pytest.mark.parametrize(
    ("given", "several", "seen"),
    [
        ({}, True, "0"),
        ({"CUDA_VISIBLE_DEVICES": "2,3"}, True, "2"),
        ({"CUDA_VISIBLE_DEVICES": ""}, True, ""),
        ({}, False, None),
    ],
)
def test_one_process_has_one_device(given, several: bool, seen: str | None, tmp_path: Path, monkeypatch) -> None:
    for device in range(1 + several):
        (tmp_path / f"0000:{device}").mkdir()
    monkeypatch.setattr(devices, "DRIVER", tmp_path)
    (alone,), (spread,) = environments(Parallel(), given), environments(Parallel(), given, every_device=True)
    assert alone.get("CUDA_VISIBLE_DEVICES") == seen and spread == given


@pytest.mark.parametrize(
    ("words", "every"),
    [
        (["+stage=grpo"], False),
        (["+stage=grpo", "model.device_map=auto"], True),
        (["+stage=study", "study=ablation"], True),
    ],
)
def test_a_study_leaves_every_device_to_its_runs(words: list[str], every: bool) -> None:
    assert every_device(compose(words).config) == every


def test_every_process_of_all_machines_is_another_rank() -> None:
    def of(node: int) -> list[dict[str, str]]:
        plan = Parallel(strategy="ddp", processes=2, nodes=2, node=node, address="first", port=29500)
        return environments(plan, {"RANK": "99"})

    envs = of(0) + of(1)
    assert [env["RANK"] for env in envs] == ["0", "1", "2", "3"]
    assert [env["LOCAL_RANK"] for env in envs] == ["0", "1", "0", "1"]
    assert {(env["WORLD_SIZE"], env["LOCAL_WORLD_SIZE"], env["MASTER_ADDR"], env["MASTER_PORT"]) for env in envs} == {
        ("4", "2", "first", "29500")
    }


def test_only_rank_0_writes_the_run_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("config.yaml", "manifest.json"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "checkpoints").mkdir()
    with own_directory(tmp_path, Parallel()) as own:
        assert own == tmp_path
    monkeypatch.setenv("RANK", "1")
    with own_directory(tmp_path, Parallel()) as own:
        assert own != tmp_path and (own / "manifest.json").read_text() == "{}"
        assert (own / "checkpoints").resolve() == (tmp_path / "checkpoints").resolve()
    remove_scratch(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoints", "config.yaml", "manifest.json"]
