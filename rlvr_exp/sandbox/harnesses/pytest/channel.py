"""Messages between the two processes: frames of JSON on one stream, sorted by conversation.

A conversation is the requests of one thread of either side, with all requests back meanwhile: it is served by one
thread on the other side, so that locks, recursion and thread-locals behave like in one process. A waiting thread reads,
and passes on messages for others. Standard library only.
"""

import json
import os
import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

MAX_BYTES = 64 << 20
"""Largest message."""
MAIN = 0
"""The conversation of the two main threads."""
_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"), check_circular=False).encode
_decode = json.JSONDecoder().decode
_Thread = threading.Thread


class Gone(RuntimeError):
    """The other process ended, or sent invalid data."""


class Channel:
    """One end. `stray` is called with the first message of a conversation that the other end began."""

    def __init__(self, fd: int):
        self._socket = socket.socket(fileno=os.dup(fd))
        self._inboxes: dict[int, deque[list[Any]]] = {MAIN: deque()}
        self._state, self._sending = threading.Condition(), threading.Lock()
        self._reading, self._fault = False, ""
        self.stray: Callable[[int], None] = lambda conversation: None

    def send(self, message: list[Any]) -> None:
        """[conversation, kind, ...]. Raises Gone; ValueError for a message that is too long."""
        data = _encode(message).encode("ascii")
        if len(data) > MAX_BYTES:
            raise ValueError(f"a message of {len(data)} bytes, allowed {MAX_BYTES}")
        try:
            with self._sending:
                self._socket.sendall(len(data).to_bytes(4, "big") + data)
        except OSError as fault:
            raise Gone("the other process ended") from fault

    def receive(self, conversation: int) -> list[Any]:
        """The next message of a conversation. Raises Gone."""
        inbox = self._inboxes[conversation]
        while True:
            with self._state:
                while not inbox and self._reading and not self._fault:
                    self._state.wait()
                if inbox:
                    return inbox.popleft()
                if self._fault:
                    raise Gone(self._fault)
                self._reading = True
            self._read_one()

    def open(self, conversation: int) -> None:
        """Register a conversation: its messages are received here."""
        self._inboxes.setdefault(conversation, deque())

    def watch(self) -> None:
        """Read also while nobody waits: for threads and event loops that are busy elsewhere."""
        _Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self._fault:
            select.select([self._socket], [], [])
            with self._state:
                if self._reading:
                    self._state.wait(0.05)
                    continue
                self._reading = True
            self._read_one()

    def _read_one(self) -> None:
        message, fault = None, ""
        try:
            message = _decode(self._read(int.from_bytes(self._read(4), "big")).decode("ascii"))
            if type(message) is not list or len(message) < 2 or type(message[0]) is not int:
                raise ValueError("no message")
        except (Gone, ValueError, RecursionError, MemoryError, OSError) as broken:
            message, fault = None, f"the other process ended, or broke the bridge ({type(broken).__name__}: {broken})"
        new = False
        with self._state:
            self._reading = False
            if message is None:
                self._fault = fault
            else:
                new = message[0] not in self._inboxes
                self._inboxes.setdefault(message[0], deque()).append(message)
            self._state.notify_all()
        if new:
            self.stray(message[0])

    def _read(self, size: int) -> bytes:
        if size > MAX_BYTES:
            raise ValueError(f"a message of {size} bytes, allowed {MAX_BYTES}")
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(min(size - len(data), 1 << 20))
            if not part:
                raise Gone("end of stream")
            data += part
        return bytes(data)
