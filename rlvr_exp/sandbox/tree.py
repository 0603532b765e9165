"""Process trees, read from /proc: what lives below this process, what it uses, and its end. Standard library only."""

import os
import resource
import signal
from dataclasses import dataclass

_PAGE_KB = resource.getpagesize() >> 10
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """Of a whole tree. Memory is what its processes do not share with files."""

    tasks: int
    """Threads and processes."""
    cpu_s: float
    memory_kb: int


class Processes:
    """The machine's process table as seen when this was made: it stays readable when /proc leaves the file view.

    Ids are those of that /proc, which may not be those of this process's own namespace.
    """

    def __init__(self) -> None:
        self._proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def own_id(self) -> int:
        return int(os.readlink("self", dir_fd=self._proc))

    def below(self, pid: int) -> list[int]:
        """Every descendant, adopted ones included; one that ends meanwhile may be missing."""
        found, ahead = [], [pid]
        while ahead:
            children = [child for parent in ahead for child in self._children_of(parent)]
            found += children
            ahead = children
        return found

    def usage(self, pids: list[int]) -> Usage:
        """CPU time includes that of children already waited for."""
        cpu, memory, tasks = 0, 0, 0
        for pid in pids:
            try:
                fields = self._read(f"{pid}/stat").rpartition(")")[2].split()
                pages = self._read(f"{pid}/statm").split()
            except OSError:  # it is gone
                continue
            cpu += sum(int(field) for field in fields[11:15])
            tasks += int(fields[17])
            memory += int(pages[1]) - int(pages[2])
        return Usage(tasks, cpu / _TICKS, memory * _PAGE_KB)

    def everybody(self) -> int:
        """How many tasks the machine runs."""
        return int(self._read("loadavg").split()[3].partition("/")[2])

    def _children_of(self, pid: int) -> list[int]:
        try:
            task = os.open(f"{pid}/task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._proc)
            try:
                threads = os.listdir(task)
            finally:
                os.close(task)
            lists = [self._read(f"{pid}/task/{thread}/children") for thread in threads]
        except OSError:  # it is gone
            return []
        return [int(word) for text in lists for word in text.split()]

    def _read(self, path: str) -> str:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc)
        with os.fdopen(file, encoding="utf-8", errors="replace") as text:
            return text.read()


def kill_below(table: Processes) -> None:
    """Every descendant: stopped first and killed after, since a fork bomb killed one by one grows faster than it ends."""
    stopped: set[int] = set()
    while fresh := set(table.below(os.getpid())) - stopped:
        for pid in fresh:
            send(pid, signal.SIGSTOP)
        stopped |= fresh
    for pid in stopped:
        send(pid, signal.SIGKILL)


def send(pid: int, number: int) -> None:
    """A signal, to a process that may be gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
