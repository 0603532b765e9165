"""The child's side of its lifeline: the child ends at once when its parent is gone, however the parent ended.

On Linux the kernel kills the child with its parent; a thread that reads the parent's pipe does so everywhere, and where
the parent was gone before the request to the kernel.
"""

import ctypes
import os
import signal
import sys
import threading

PR_SET_PDEATHSIG = 1


def hold(descriptor: int) -> None:
    """Tie this process to the holder of the pipe's write end."""
    os.set_inheritable(descriptor, False)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    threading.Thread(target=_watch, args=(descriptor,), name="lifeline", daemon=True).start()


def _watch(descriptor: int) -> None:
    while os.read(descriptor, 1):  # Nothing is ever written: this returns when the parent is gone.
        continue
    if os.getpgid(0) == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
