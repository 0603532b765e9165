"""A harness that searches a candidate's own memory: all mappings at the time of its fork that can be read.

The mappings are listed at the fork, before the candidate is confined and has no /proc any more.
"""

import ctypes
import os
from collections.abc import Callable

_PROC = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
_HIDE, _STEP = 0x55, 1 << 20
_KERNELS = ("[vvar", "[vsyscall]")
_ranges: list[tuple[int, int]] = []


def hidden(text: str) -> bytes:
    """The text to search for, written so that the search does not find itself."""
    return bytes(byte ^ _HIDE for byte in text.encode())


def _look_up() -> None:
    with os.fdopen(os.open("self/maps", os.O_RDONLY, dir_fd=_PROC)) as lines:
        mapped = [line.split() for line in lines]
    readable = [words for words in mapped if words[1][0] == "r" and not words[-1].startswith(_KERNELS)]
    _ranges[:] = [(int(start, 16), int(end, 16)) for start, end in (words[0].split("-") for words in readable)]


os.register_at_fork(after_in_child=_look_up)


def run(payload: bytes, send: Callable[[bytes], None]) -> None:
    """`leave:TEXT` sends and prints it; `seek:HIDDEN:NOISE` reports the MB searched and the number of matches."""
    kind, _, rest = payload.partition(b":")
    if kind == b"leave":
        send(rest * 50)
        print(rest.decode() * 50)
    else:
        wanted = rest.partition(b":")[0]
        middle = len(wanted) // 2
        # Never in one piece: the searcher's own halves are apart.
        head, tail = (bytes(byte ^ _HIDE for byte in half) for half in (wanted[:middle], wanted[middle:]))
        searched = sum(end - start for start, end in _ranges)
        send(f"{searched >> 20} {sum(_count(start, end, head, tail) for start, end in _ranges)}".encode())


def _count(start: int, end: int, head: bytes, tail: bytes) -> int:
    found = 0
    for at in range(start, end, _STEP):
        piece = ctypes.string_at(at, min(_STEP, end - at))
        found += sum(part.startswith(tail) for part in piece.split(head)[1:])
    return found
