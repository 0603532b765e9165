"""Events on pretended devices, by line of the project, in one file per process."""

import atexit
import collections
import ctypes
import json
import os
import sys
import time
from pathlib import Path

import pretended_library as pretended

HERE = Path(__file__).resolve().parent
WATCHED = HERE.parents[1] / "rlvr_exp"
"""Its lines are named in reports."""
FIELDS = ("kind", "what", "place", "leaf", "count", "bytes")
"""Of an event in a report."""
_events: dict = {}
_updates: list = []


def _place() -> tuple[str, str]:
    """The innermost line of the project, and the innermost of any library."""
    frame, leaf = sys._getframe(2), ""
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(f"{HERE}/pretend"):
            leaf = leaf or f"{name}:{frame.f_lineno}"
            if name.startswith(f"{WATCHED}/"):
                return f"{name.removeprefix(f'{WATCHED}/')}:{frame.f_lineno}", leaf
        frame = frame.f_back
    return "-", leaf or "autograd thread"


def note(kind: str, what: str, size: int) -> None:
    one = _events.setdefault((kind, what, *_place()), [0, 0])
    one[0] += 1
    one[1] += size


def record() -> None:
    """Write a report when this process ends, if one is wanted."""
    folder = os.environ.get("PRETEND_CUDA_REPORT")
    if not folder:
        return
    kind = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int64)
    record.call = kind(lambda kind_, what, size: note(kind_.decode(), what.decode(), size))  # Kept alive.
    pretended.library.pretend_on_event(record.call)
    started, pid = time.time(), os.getpid()

    def write():
        if os.getpid() != pid or not (_events or pretended.library.pretend_launches()):
            return
        rows = [dict(zip(FIELDS, (*key, *counted), strict=True)) for key, counted in _events.items()]
        found = {
            "argv": sys.argv,
            "rank": os.environ.get("RANK"),
            "seconds": round(time.time() - started, 1),
            "launches": pretended.library.pretend_launches(),
            "peak_bytes": [pretended.library.pretend_peak(index) for index in range(pretended.count())],
            "updates": _updates,
            "events": sorted(rows, key=lambda row: -row["count"]),
        }
        Path(folder).mkdir(parents=True, exist_ok=True)
        Path(folder, f"{pid}.json").write_text(json.dumps(found, indent=1))

    atexit.register(write)


def watch_optimizers() -> None:
    """Note the synchronisations so far at each optimizer step, by line of the project."""

    def step(*_):
        so_far = collections.Counter()
        for (kind, _what, place, _leaf), (times, _bytes) in _events.items():
            if kind == "sync":
                so_far[place] += times
        _updates.append(so_far)

    sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(step)


def summary(folder: str) -> None:
    for file in sorted(Path(folder).glob("*.json")):
        found = json.loads(file.read_text())
        print(f"== {file.name} rank {found['rank']} {' '.join(found['argv'])[-150:]}")
        peak = [round(size / 2**20, 1) for size in found["peak_bytes"]]
        print(f"   {found['seconds']} s, {found['launches']} kernels, peak {peak} MiB")
        for row in found["events"]:
            leaf = "/".join(row["leaf"].split("/")[-3:])
            what = f"{row['count']:7d}  {row['kind']:10s} {row['what']:45s} {row['bytes']:10d}"
            print(f"   {what}  {row['place']}   [{leaf}]")
