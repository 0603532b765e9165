"""Process trees: signals to everything below this process. Standard library only."""

import os
import signal


def kill_below() -> None:
    """Every descendant: stopped first and killed after, since a fork bomb killed one by one grows faster than it ends."""
    stopped: set[int] = set()
    while fresh := set(descendants_of(os.getpid())) - stopped:
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


def descendants_of(pid: int) -> list[int]:
    """Every process below `pid`, adopted ones included; one that ends meanwhile may be missing."""
    found, ahead = [], [pid]
    while ahead:
        children = [child for parent in ahead for child in _children_of(parent)]
        found += children
        ahead = children
    return found


def _children_of(pid: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        return [int(word) for thread in threads for word in _read(f"/proc/{pid}/task/{thread}/children").split()]
    except OSError:  # it is gone
        return []


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
