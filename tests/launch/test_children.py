"""The processes of a run: their environment, their events, and their common end with each other and with the parent."""

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from rlvr_exp.config import parallel as devices
from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import to_yaml
from rlvr_exp.config.parallel import Parallel, first_alone
from rlvr_exp.launch import children
from rlvr_exp.launch.children import (
    NAMES,
    Ended,
    automatic_threads,
    child_environment,
    environments,
    every_device,
    hide_unused_packages,
    inline_environment,
    log_name,
    own_directory,
    physical_cores,
    remove_scratch,
    run_children,
    unused_packages,
)
from rlvr_exp.records.manifest import flat

ROOT = Path(__file__).parents[2]
HEAD = """
import json, os, signal, subprocess, sys, time
from rlvr_exp.launch.children import hold_lifeline
directory, progress, life = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
hold_lifeline(life)
def say(**event):
    os.write(progress, (json.dumps(event) + "\\n").encode())
"""
PATIENT = """
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
say(kind="ready")
while not stopped: time.sleep(0.02)
sys.exit(130)
"""
DEAF = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
say(kind="ready")
time.sleep(60)
"""
PARENT = """
import os, sys
from pathlib import Path
from rlvr_exp.launch.children import run_children
def listen(event):
    Path("heard").write_text(str(event["pid"]))
run_children("child_program", ["."], Path("."), [os.environ], listen)
"""


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Signals are heard here, also where the tests run under nohup."""
    before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGINT)}
    for number, handler in before.items():
        if handler is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    monkeypatch.chdir(tmp_path)
    return lambda body: (tmp_path / "child_program.py").write_text(HEAD + body)


def run(tmp_path: Path, listen: Callable[..., None] = lambda event: None) -> Ended:
    return run_children("child_program", [str(tmp_path)], tmp_path, [os.environ], listen)


def signals(*numbers: int) -> Callable[..., None]:
    """A listener that sends this process signals, a moment apart, once the child is ready."""

    def send() -> None:
        for number in numbers:
            os.kill(os.getpid(), number)
            time.sleep(0.3)

    return lambda event: threading.Thread(target=send).start()


@pytest.mark.heavy
def test_events_exit_code_and_log(tmp_path: Path, program: Callable[[str], None]) -> None:
    program(
        'say(kind="step", step=1); say(kind="note", text="ü"); print("out"); print("err", file=sys.stderr); sys.exit(3)'
    )
    heard: list[object] = []
    assert run(tmp_path, heard.append) == Ended(3, stop_requested=False)
    assert heard == [{"kind": "step", "step": 1}, {"kind": "note", "text": "ü"}]
    assert set((tmp_path / "log.txt").read_text().split()) == {"out", "err"}


@pytest.mark.heavy
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_passed_on_and_waited_for(tmp_path: Path, program: Callable[[str], None], number: int) -> None:
    program(PATIENT)
    before = signal.getsignal(number)
    assert run(tmp_path, signals(number)) == Ended(130, stop_requested=True)
    assert signal.getsignal(number) is before


@pytest.mark.heavy
def test_a_second_signal_kills(tmp_path: Path, program: Callable[[str], None]) -> None:
    program(DEAF)
    start = time.monotonic()
    assert run(tmp_path, signals(signal.SIGINT, signal.SIGINT)) == Ended(-9, stop_requested=True)
    assert time.monotonic() - start < 20


@pytest.mark.heavy
def test_a_last_line_cut_short_is_dropped(tmp_path: Path, program: Callable[[str], None]) -> None:
    program('say(kind="step", step=1); os.write(progress, b\'{"kind": "st\'); os.kill(os.getpid(), 9)')
    heard: list[object] = []
    assert run(tmp_path, heard.append).returncode == -9 and len(heard) == 1


@pytest.mark.heavy
def test_a_failing_listener_leaves_no_child(tmp_path: Path, program: Callable[[str], None]) -> None:
    program('say(kind="ready", pid=os.getpid()); time.sleep(60)')
    pids: list[int] = []

    def fail(event: dict[str, int]) -> None:
        pids.append(event["pid"])
        raise ValueError("drawing failed")

    with pytest.raises(ValueError, match="drawing failed"):
        run(tmp_path, fail)
    assert not alive(pids[0])


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def killed_parent(tmp_path: Path, program: Callable[[str], None]) -> Iterator[Callable[[str], int]]:
    """Start a parent with a child that runs the given body, kill -9 the parent, return the child's pid."""
    parents: list[subprocess.Popen[bytes]] = []

    def start(body: str) -> int:
        program(body)
        parents.append(subprocess.Popen([sys.executable, "-c", PARENT], cwd=tmp_path))
        for _ in range(400):
            if (tmp_path / "heard").exists() and (tmp_path / "heard").read_text():
                break
            time.sleep(0.05)
        child = int((tmp_path / "heard").read_text())
        assert alive(child)
        parents[-1].kill()
        return child

    yield start
    for parent in parents:
        parent.kill()
        parent.wait()


@pytest.mark.heavy
@pytest.mark.parametrize("way", ["kernel", "pipe"])
def test_a_child_dies_with_its_parent(killed_parent: Callable[[str], int], way: str) -> None:
    """Both ways on their own: without the kernel's signal, and with the reading thread unable to act."""
    without = {
        "kernel": "os.killpg = os.kill = lambda *_: None",
        "pipe": "import ctypes; ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)",
    }
    child = killed_parent(without[way] + '\nsay(kind="ready", pid=os.getpid()); time.sleep(60)')
    deadline = time.monotonic() + 5
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(child)


@pytest.mark.heavy
def test_a_stop_reaches_the_child_where_the_terminal_is_gone(
    tmp_path: Path, program: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, write = os.pipe()
    os.close(read)
    program(PATIENT)
    with open(write, "w") as gone:
        monkeypatch.setattr(sys, "stderr", gone)
        assert run(tmp_path, signals(signal.SIGTERM)) == Ended(130, True)


@pytest.mark.heavy
def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path, program: Callable[[str], None]) -> None:
    """As under nohup."""
    program("say(kind='ready')\ntime.sleep(0.6)\nsys.exit(0)")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run(tmp_path, signals(signal.SIGHUP)) == Ended(0, False)
    finally:
        signal.signal(signal.SIGHUP, before)


RANK_HEAD = """
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
def run_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(children, "GRACE_FAULT_S", 0.5)
    monkeypatch.setattr(children, "GRACE_S", 1.0)

    def start(body: str) -> tuple[Ended, list[Mapping[str, Any]]]:
        (tmp_path / "rank_of_test.py").write_text(RANK_HEAD + body)
        shared = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
        heard: list[Mapping[str, Any]] = []
        envs = environments(Parallel(strategy="ddp", processes=2), shared)
        ended = run_children("rank_of_test", [str(tmp_path)], tmp_path, envs, heard.append)
        for rank in range(2):
            assert not Path("/proc", (tmp_path / f"pid{rank}").read_text()).exists(), "no rank outlives the run"
        return ended, heard

    return start


@pytest.mark.heavy
def test_all_end_well_and_the_first_alone_is_heard(run_ranks, tmp_path: Path) -> None:
    ended, heard = run_ranks("print('rank', rank)")
    assert ended == Ended(0, stop_requested=False, rank=0)
    assert heard == [{"rank": 0}]
    assert [(tmp_path / log_name(rank)).read_text() for rank in range(2)] == ["rank 0\n", "rank 1\n"]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("rank", "end", "code"), [(0, "os.kill(os.getpid(), 9)", -9), (1, "sys.exit(1)", 1), (0, "sys.exit(3)", 3)]
)
def test_one_that_fails_ends_the_other_which_would_wait_for_it(run_ranks, rank: int, end: str, code: int) -> None:
    began = time.monotonic()
    ended, _ = run_ranks(f"time.sleep(0.2)\nif rank == {rank}: {end}\n{WAIT}")
    assert ended == Ended(code, stop_requested=False, rank=rank)
    assert time.monotonic() - began < 20


@pytest.mark.heavy
def test_what_a_rank_says_when_it_misses_another_does_not_count(run_ranks) -> None:
    ended, _ = run_ranks("if rank == 1: sys.exit(3)\ntime.sleep(2)\nsys.exit(1)")
    assert ended == Ended(3, stop_requested=False, rank=1)


@pytest.mark.heavy
def test_a_rank_that_hangs_at_the_end_of_a_good_run_is_killed_and_the_run_is_good(run_ranks) -> None:
    assert run_ranks(f"if rank: {WAIT}")[0] == Ended(0, stop_requested=False, rank=0)


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
    monkeypatch.setattr(devices, "which", lambda name: None)
    devices._devices.cache_clear()
    (alone,), (spread,) = environments(Parallel(), given), environments(Parallel(), given, every_device=True)
    assert alone.get("CUDA_VISIBLE_DEVICES") == seen and spread == given
    devices._devices.cache_clear()


@pytest.mark.heavy
def test_devices_are_found_without_the_folder_of_the_driver(tmp_path: Path, monkeypatch) -> None:
    """As under WSL2, which has nvidia-smi alone. The words are those that nvidia-smi documents for this query."""
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nprintf '32607, 12.0\\n32607, 12.0\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(devices, "DRIVER", tmp_path / "missing")
    monkeypatch.setattr(devices, "_torch_has_cuda", lambda: True)
    for found in (devices.device, devices._devices):
        found.cache_clear()
    (alone,) = environments(Parallel(), {})
    assert devices.device() == devices.Device(True, 32607 / 1024, True) and alone == {"CUDA_VISIBLE_DEVICES": "0"}
    for found in (devices.device, devices._devices):
        found.cache_clear()


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


def test_threads_do_not_fight_with_the_verifiers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert child_environment(3)["OMP_NUM_THREADS"] == child_environment(3)["MKL_NUM_THREADS"] == "3"
    assert child_environment(0)["OMP_NUM_THREADS"] == str(automatic_threads())
    assert child_environment(0, processes=64)["OMP_NUM_THREADS"] == "1", "shared by the ranks"
    assert child_environment(0)["OMP_WAIT_POLICY"] == "PASSIVE"
    assert 0 < int(child_environment(0)["GOMP_SPINCOUNT"]) < 10_000, (
        "longer than a gap between operations, shorter than a task"
    )
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert child_environment(0)["OMP_NUM_THREADS"] == "5", "what the caller says"
    assert 1 <= physical_cores() <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 2), (4, 3), (16, 15)])
def test_automatic_threads(monkeypatch: pytest.MonkeyPatch, cores: int, threads: int) -> None:
    monkeypatch.setattr("rlvr_exp.launch.children.physical_cores", lambda: cores)
    assert automatic_threads() == threads


def test_an_inline_run_has_the_environment_of_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delitem(sys.modules, "deepspeed", raising=False)
    before, made = dict(os.environ), child_environment(3)
    assert made["OMP_NUM_THREADS"] == "3" and made["OMP_WAIT_POLICY"] == "PASSIVE"
    with inline_environment(compose(["+stage=grpo", "parallel.threads=3"])):
        assert dict(os.environ) == made | first_alone(made)
        assert sys.modules["deepspeed"] is None
    assert dict(os.environ) == before and "deepspeed" not in sys.modules


ALL = {"deepspeed", "wandb", "bitsandbytes"}


def unused(*words: str) -> set[str]:
    checked = compose(list(words))
    return set(unused_packages(checked.config, flat(yaml.safe_load(to_yaml(checked)))))


@pytest.mark.parametrize("stage", ["sft", "grpo", "ppo", "cascade"])
def test_the_defaults_use_none_of_them(stage):
    assert unused(f"+stage={stage}") == ALL


@pytest.mark.parametrize(
    ("word", "used"),
    [
        ("tracking=wandb", {"wandb"}),
        ("parallel=zero2", {"deepspeed"}),
        ("parallel=zero3", {"deepspeed"}),
        ("optimizer=adamw_8bit", {"bitsandbytes"}),
        ("model.quantization=8bit", {"bitsandbytes"}),
        ("model.path=somewhere", {"bitsandbytes"}),
        ("model.adapter.path=somewhere", {"bitsandbytes"}),
        ("data.path=somewhere", set()),
    ],
)
def test_what_an_option_may_need_is_kept(word, used):
    assert unused("+stage=grpo", *(["model=tiny_lora"] if "quantization" in word else []), word) == ALL - used


def test_a_class_of_the_users_own_may_need_all():
    checked = compose(["+stage=grpo"])
    options = flat(yaml.safe_load(to_yaml(checked))) | {"verifier._target_": "mine.Verifier"}
    assert list(unused_packages(checked.config, options)) == []


def test_a_stage_that_does_not_train_hides_nothing():
    assert unused("+stage=evaluate") == set()


def test_a_hidden_package_is_absent_for_whoever_looks(monkeypatch):
    for package in ALL:
        monkeypatch.delitem(sys.modules, package, raising=False)
    checked = compose(["+stage=grpo", "tracking=wandb"])
    hide_unused_packages(checked.config, flat(yaml.safe_load(to_yaml(checked))))
    hidden = {package for package in ALL if package in sys.modules and sys.modules[package] is None}
    for package in hidden:
        del sys.modules[package]  # for the tests that follow: monkeypatch would put it back
    assert hidden == {"deepspeed", "bitsandbytes"}
    monkeypatch.setitem(sys.modules, "deepspeed", None)
    assert importlib.util.find_spec("deepspeed") is None
