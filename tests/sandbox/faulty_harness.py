"""The test harness on a machine with a fault: `FAULT` in the worker's environment is its kind and a file, which the
single worker with the fault removes."""

import errno
import os

from exec_harness import run, serve  # noqa: F401

from rlvr_exp.sandbox import worker
from rlvr_exp.sandbox.isolation import files, jail, process_tree
from rlvr_exp.sandbox.isolation.kernel import Refused


def _watch() -> None:
    real, calls = worker.Watch, []

    def starved(*given):
        calls.append(1)
        if len(calls) % 2 == 0:
            raise OSError(errno.EMFILE, "too many open files")
        return real(*given)

    worker.Watch = starved


def _clean() -> None:
    def refused(self):
        raise Refused("the folder stays")

    files.Mounted.clean = files.Folder.clean = refused


def _children() -> None:
    real = process_tree.Processes._read

    def without(self, path):
        if path.endswith("/children"):
            raise FileNotFoundError(path)
        return real(self, path)

    process_tree.Processes._read = without


def _filter() -> None:
    def none(*given, **named):
        raise OSError(errno.ENOSYS, "no seccomp")

    jail.Filter = none


kind, _, flag = os.environ.get("FAULT", "").partition(":")
if os.path.exists(flag):
    os.unlink(flag)
    globals()[f"_{kind}"]()
