"""A harness for tests of the sandbox itself: runs its payload as Python, which may `send`. Judges nothing."""

import os
import time
from collections.abc import Callable


def run(payload: bytes, send: Callable[[bytes], None], fd: int | None = None) -> None:
    names = {"__name__": "candidate", "send": send, "tell": lambda value: send(repr(value).encode()), "fd": fd}
    exec(payload.decode(), names | {"os": os, "time": time})


def serve(peer: bytes, fd: int) -> None:
    exec(peer.decode(), {"__name__": "peer", "fd": fd, "os": os, "time": time})
