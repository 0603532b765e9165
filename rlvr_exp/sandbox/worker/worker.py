"""A worker: one supervisor, which watches the trainer, and one zygote, which forks a process per candidate.

Started by the pool as a fresh interpreter; never a fork of the trainer. Standard library only.
"""

import fcntl
import importlib
import os
import signal
import sys
import types
from collections.abc import Sequence

from rlvr_exp.sandbox.isolation import isolate, root, scratch
from rlvr_exp.sandbox.isolation.jail import Jail
from rlvr_exp.sandbox.isolation.process_tree import Processes, kill_below
from rlvr_exp.sandbox.worker.protocol import REFUSED_EXIT
from rlvr_exp.sandbox.worker.zygote import Zygote

_KEPT = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main(
    harness: str, level: str, packages: Sequence[str], processes: int, roots: Sequence[str], temporary: str
) -> None:
    """Never returns normally: the supervisor leaves when the zygote or the trainer is gone."""
    trainer = os.getppid()
    jobs, replies = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in (0, 1))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    program = _load(harness, packages, roots)
    sys.executable = root.interpreter()  # the name that candidates see
    sys.orig_argv[:] = [sys.executable]  # not how this worker was started, and from where
    if processes and packages:
        os.environ["PYTHONPATH"] = os.pathsep.join(packages)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD, signal.SIGTERM])
    try:
        jail = isolate.enter(level, processes, temporary)
    except (isolate.Refused, OSError) as fault:
        os.write(2, str(fault).encode())
        sys.exit(REFUSED_EXIT)
    zygote = os.fork()
    if zygote == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD, signal.SIGTERM])
        Zygote(program, jail, jobs, replies).serve(packages)
    os.close(jobs)
    os.close(replies)
    _supervise(zygote, trainer, jail)


def _load(harness: str, packages: Sequence[str], roots: Sequence[str]) -> types.ModuleType:
    """The harness, with the path that candidates will have: the standard library, and the packages where allowed."""
    sys.path += packages
    program = importlib.import_module(harness)
    sys.path[:] = [entry for entry in sys.path if entry not in roots]
    kept = {name: os.environ[name] for name in _KEPT if packages and name in os.environ}
    os.environ.clear()
    os.environ.update(kept)
    if len(os.listdir("/proc/self/task")) > 1:
        sys.exit(f"the harness {harness} starts threads when it is imported: a fork would lose them")
    return program


def _supervise(zygote: int, trainer: int, jail: Jail) -> None:
    """Exit with the zygote; end it on request or when the trainer is gone. Polling, since a death signal would follow
    the trainer's thread, not its process."""
    while True:
        received = signal.sigtimedwait([signal.SIGCHLD, signal.SIGTERM], 1.0)
        ended, status = os.waitpid(zygote, os.WNOHANG)
        if ended:
            break
        if jail.parent and received is None:
            scratch.tidy(jail.parent)
        if os.getppid() != trainer or (received is not None and received.si_signo == signal.SIGTERM):
            os.kill(zygote, signal.SIGKILL)
            _, status = os.waitpid(zygote, 0)
            break
    if not jail.owns_pids:
        kill_below(Processes())  # processes of a killed zygote are adopted by this supervisor
    if jail.parent:
        scratch.remove_parent(jail.parent)
    os._exit(max(0, os.waitstatus_to_exitcode(status)))
