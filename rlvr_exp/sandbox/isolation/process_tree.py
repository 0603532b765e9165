"""Process trees, read from /proc: the processes below this process, their usage, and their end. Standard library
only."""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass

_TICKS = os.sysconf("SC_CLK_TCK")
_ASLEEP = "STt"
_UNTOLD_S = 1e-5
"""Most CPU time that all threads together may lack of their process's: no thread that ended took less."""


@dataclass(frozen=True)
class Usage:
    """The usage of a tree. Memory is the memory that its processes hold besides pages of files."""

    tasks: int
    """Threads and processes."""
    processes: int
    cpu_s: float
    memory_kb: int


class Processes:
    """The machine's process table, opened at construction: it stays readable when /proc leaves the file view.

    Ids are those of that /proc, which may not be those of this process's own namespace.
    """

    def __init__(self) -> None:
        self._proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def own_id(self) -> int:
        return int(os.readlink("self", dir_fd=self._proc))

    def below(self, pid: int, visit: Callable[[int], None] | None = None) -> list[int]:
        """Every descendant, adopted ones included; one that ends meanwhile may be missing. Each is given to `visit`
        before its own children are looked for."""
        found, ahead = [], [pid]
        while ahead:
            children = []
            for parent in ahead:
                own = self._children_of(parent)
                for child in own if visit else ():
                    visit(child)
                children += own
            found += children
            ahead = children
        return found

    def usage(self, pids: list[int]) -> Usage:
        """CPU time includes that of children already waited for."""
        cpu, memory_kb, tasks = 0, 0, 0
        for pid in pids:
            try:
                fields = self.stat(pid)
                memory_kb += self._held_kb(pid)
            except OSError:  # it is gone
                continue
            cpu += sum(int(field) for field in fields[11:15])
            tasks += int(fields[17])
        return Usage(tasks, len(pids), cpu / _TICKS, memory_kb)

    def stat(self, pid: int) -> list[str]:
        """The fields of a process's `stat` from its state on. Raises OSError if it is gone."""
        return self._read(f"{pid}/stat").rpartition(")")[2].split()

    def waited_s(self, pidfd: int, cpu_s: float) -> float | None:
        """How long the threads of a process have waited for a core. None if that is unknown: one of them runs,
        is about to or waits for a disk, the kernel keeps no such account, or a thread that has ended took its share
        of `cpu_s`, all that the process used, with it."""
        ran = waited = 0
        try:
            pid = self._read(f"self/fdinfo/{pidfd}").partition("\nPid:")[2].split()[0]
            for thread in self._list(f"{pid}/task"):
                if self._read(f"{pid}/task/{thread}/stat").rpartition(")")[2].split()[0] not in _ASLEEP:
                    return None
                fields = self._read(f"{pid}/task/{thread}/schedstat").split()
                ran, waited = ran + int(fields[0]), waited + int(fields[1])
        except (OSError, IndexError):  # it is gone, or there is no such file
            return None
        return waited / 1e9 if ran and cpu_s - ran / 1e9 < _UNTOLD_S else None

    def everybody(self) -> int:
        """How many tasks the machine runs."""
        return int(self._read("loadavg").split()[3].partition("/")[2])

    def lists_children(self) -> bool:
        """Whether this kernel lists a process's children; without that no tree can be read."""
        try:
            for thread in self._list("self/task"):
                self._read(f"self/task/{thread}/children")
        except OSError:
            return False
        return True

    def _held_kb(self, pid: int) -> int:
        """Private and shared memory. A first thread that has ended does not report the remaining threads."""
        held = _held_kb(self._read(f"{pid}/status"))
        if held is None:
            sizes = (_held_kb(self._read(f"{pid}/task/{thread}/status")) for thread in self._list(f"{pid}/task"))
            held = max((kb for kb in sizes if kb is not None), default=0)
        return held

    def _children_of(self, pid: int) -> list[int]:
        try:
            lists = [self._read(f"{pid}/task/{thread}/children") for thread in self._list(f"{pid}/task")]
        except OSError:  # it is gone
            return []
        return [int(word) for text in lists for word in text.split()]

    def _list(self, path: str) -> list[str]:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._proc)
        try:
            return os.listdir(folder)
        finally:
            os.close(folder)

    def _read(self, path: str) -> str:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc)
        with os.fdopen(file, encoding="utf-8", errors="replace") as text:
            return text.read()


def _held_kb(status: str) -> int | None:
    """None for a process without memory."""
    sizes = dict(line.split(":", 1) for line in status.splitlines() if line.startswith(("RssAnon:", "RssShmem:")))
    return sum(int(size.split()[0]) for size in sizes.values()) if sizes else None


def kill_below(table: Processes) -> None:
    """Every descendant: stopped first, killed after, since a fork bomb killed one by one grows faster than it ends."""
    stopped: set[int] = set()
    while fresh := set(table.below(os.getpid(), visit=stop)) - stopped:
        stopped |= fresh
    for pid in stopped:
        send(pid, signal.SIGKILL)


def stop(pid: int) -> None:
    send(pid, signal.SIGSTOP)


def kill_group(pid: int) -> None:
    """Kill a child that is not waited for yet, and in one step, during which nobody forks, its process group if it
    leads one."""
    send(pid, signal.SIGKILL)
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:  # it had no group of its own yet
        pass


def send(pid: int, number: int) -> None:
    """A signal, to a process that may be gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
