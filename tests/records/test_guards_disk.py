"""A full disk is one clear error with exit 3, and existing files stay complete; simulated by a limit on file sizes."""

import errno
import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from completions import completion
from small_disk import saved_policy

from rlvr_exp.config.compose import compose
from rlvr_exp.launch import execute as module
from rlvr_exp.launch.execute import execute
from rlvr_exp.records.directory import Unwritable, unwritable, writing
from rlvr_exp.records.rollout_files import RolloutRow, read_rollouts, write_rollouts
from rlvr_exp.records.tracking import Files, Tracker, read_metrics

ROOT = Path(__file__).parents[2]
ROW = RolloutRow(completion(), 1, 0, "p", 1.0, {}, 0.5)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file of this process grows further: writes fail as on a full disk (EFBIG, as ENOSPC would)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_rows_of_metrics_stay_whole(tmp_path: Path) -> None:
    tracker = Tracker(tmp_path, Files())
    tracker.log(1, {"loss": 1.0})
    with files_of_at_most(100), pytest.raises(Unwritable, match=r"metrics\.jsonl cannot be written: File too large"):
        tracker.log(2, {f"metric/{number}": 1.0 for number in range(50)})
    assert read_metrics(tmp_path) == [{"step": 1, "loss": 1.0}]
    assert (tmp_path / "metrics.jsonl").read_text() == '{"step": 1, "loss": 1.0}\n'


def test_rollouts_of_earlier_steps_stay_whole(tmp_path: Path) -> None:
    path = write_rollouts(tmp_path, 1, [ROW])
    with files_of_at_most(10), pytest.raises(Unwritable, match="resume from the last checkpoint"):
        write_rollouts(tmp_path, 1, [ROW])
    assert read_rollouts(path) == [ROW] and os.listdir(path.parent) == [path.name]


def test_the_checkpoint_before_stays_whole_and_nothing_of_the_new_one_is_left(tmp_path: Path) -> None:
    checkpoints, contents = saved_policy(tmp_path)
    first = checkpoints.save(1, contents)
    kept = {path: path.read_bytes() for path in first.rglob("*") if path.is_file()}
    with files_of_at_most(20_000), pytest.raises(Unwritable, match="checkpoints.* cannot be written: File too large"):
        checkpoints.save(2, contents)
    assert {path: path.read_bytes() for path in first.rglob("*") if path.is_file()} == kept
    assert (tmp_path / "checkpoints" / "latest").resolve() == first.resolve()
    assert [path.name for path in (tmp_path / "checkpoints").glob("*step_000002*")] == []
    assert checkpoints.save(2, contents).name == "step_000002", "once there is room"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG])
def test_failures_of_a_disk_are_told_from_others(tmp_path: Path, code: int) -> None:
    stop = unwritable(OSError(code, os.strerror(code)), tmp_path)
    assert stop is not None and os.strerror(code) in str(stop) and str(tmp_path) in str(stop)
    denied = PermissionError(errno.EACCES, "denied", str(tmp_path / "rollouts" / "x"))
    assert "Permission denied" in str(unwritable(denied, tmp_path))
    elsewhere = PermissionError(errno.EACCES, "denied", "/data/set")
    for other in (elsewhere, OSError(errno.ENOENT, "gone"), ValueError("no")):
        assert unwritable(other, tmp_path) is None
    with pytest.raises(FileNotFoundError), writing(tmp_path):
        raise FileNotFoundError(errno.ENOENT, "gone")


STAGE = """
import errno, os, sys, types
from rlvr_exp import child

def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

def run(config, context):
    context.progress(kind="step", step=7, total=9)
    full()

stage = types.ModuleType("rlvr_exp.stages.evaluate")
stage.run = run
sys.modules["rlvr_exp.stages.evaluate"] = stage
if os.environ.get("NOTHING") == "fits":
    child.write_summary = full
sys.exit(child.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("fits", [True, False])
def test_a_run_ends_with_3_and_one_reason_even_where_no_summary_fits(tmp_path, monkeypatch, capfd, fits: bool) -> None:
    (tmp_path / "full_launch.py").write_text(STAGE)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    monkeypatch.setattr(module, "LAUNCH", "full_launch")
    if not fits:
        monkeypatch.setenv("NOTHING", "fits")

        def refused(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(module, "write_summary", refused)
        monkeypatch.setattr(module, "write_report", refused)
    outcome = execute(compose(["+stage=evaluate"]), ["words"], tmp_path / "run")
    said = capfd.readouterr().err
    assert outcome.code == 3 and said.count("No space left on device") == 1 and "Traceback" not in said
    assert outcome.summary["status"] == "stopped" and "df -h" in outcome.summary["reason"]
    if fits:
        assert json.loads((tmp_path / "run" / "summary.json").read_text())["steps"] == 7
