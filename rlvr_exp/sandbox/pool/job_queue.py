"""The parent's end of a job queue: a socket that several workers read, where the kernel gives each packet to one."""

import array
import fcntl
import os
import socket
import termios

from rlvr_exp.sandbox.pool.jobs import Job
from rlvr_exp.sandbox.worker.protocol import INLINE, REQUEST


def message(number: int, job: Job) -> bytes:
    """The head of a job's packet. Raises ValueError where a limit is out of all range."""
    limits = job.limits
    try:
        return REQUEST.pack(
            number,
            limits.cpu_s,
            limits.wall_s,
            limits.memory_mb,
            limits.output_kb,
            limits.result_kb,
            len(job.payload),
            len(job.peer),
        )
    except Exception as fault:
        raise ValueError(f"a job that no worker can take: {limits}: {fault}") from fault


class JobQueue:
    """The queue. `theirs` is the workers' end, handed to each as its standard input."""

    def __init__(self) -> None:
        self._ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.setblocking(False)

    def fileno(self) -> int:
        return self._ours.fileno()

    def post(self, number: int, job: Job) -> bool:
        """Queue a job; whether there was room. Raises OSError where the machine has no descriptors or memory left."""
        head = message(number, job)
        try:
            if len(job.payload) + len(job.peer) <= INLINE:
                self._ours.send(head + job.payload + job.peer)
            else:
                self._send_long(head, job)
        except BlockingIOError:
            return False
        return True

    def unread(self) -> int:
        """Bytes that no worker has taken yet."""
        count = array.array("i", [0])
        fcntl.ioctl(self._ours, termios.TIOCOUTQ, count)
        return count[0]

    def drain(self) -> None:
        """Remove jobs that no worker has taken. Needs no descriptor: there may be none left."""
        try:
            while self.theirs.recv(1, socket.MSG_DONTWAIT):
                pass
        except BlockingIOError:
            pass

    def close(self) -> None:
        self._ours.close()
        self.theirs.close()

    def _send_long(self, head: bytes, job: Job) -> None:
        file = os.memfd_create("job", os.MFD_CLOEXEC)
        try:
            for part in (job.payload, job.peer):
                data = memoryview(part)
                while data:
                    data = data[os.write(file, data) :]
            socket.send_fds(self._ours, [head], [file])
        finally:
            os.close(file)
