"""A candidate's output besides its answers: kept up to a cap, dropped beyond it.

Debug prints are no offence, so a candidate's streams drop the excess, up to `FLOOD` times the cap; beyond that, and for
writes to the descriptors below them, the sandbox's own hard cap applies, which ends the candidate. Standard library
only.
"""

import io
import os
import sys

FLOOD = 500


class _Capped(io.RawIOBase):
    """Passes output on until all streams of a cap together reach its limit, and once more when it is a flood."""

    def __init__(self, name: str, fd: int, cap: "OutputCap"):
        self.name, self._fd, self._cap = name, fd, cap

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._fd

    def write(self, data: memoryview) -> int:
        cap = self._cap
        room = max(0, cap.limit - cap.seen)
        cap.seen += len(data)
        shown = bytes(data if cap.seen > FLOOD * cap.limit else data[:room])
        while shown:
            shown = shown[os.write(self._fd, shown) :]
        return len(data)


class OutputCap:
    """`limit`: bytes that standard output and standard error together may pass on."""

    def __init__(self, limit: int):
        self.limit, self.seen = limit, 0

    def open(self) -> None:
        """Fresh streams in sys; the previous streams are flushed when they end."""
        for name, fd in (("stdout", 1), ("stderr", 2)):
            buffer = io.BufferedWriter(_Capped(f"<{name}>", fd, self))
            stream = io.TextIOWrapper(
                buffer, encoding="utf-8", errors="backslashreplace", newline="\n", line_buffering=fd == 2
            )
            stream.mode = "w"
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
