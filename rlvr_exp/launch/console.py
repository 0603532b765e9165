"""Which stream a run writes its messages to and which its rows, for a stage that answers in rows.

On a terminal both are standard output, and the answers are readable text. Where standard output is a pipe or a file, it
carries JSON lines only, and messages for a person go to standard error. Never writes a file.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from rlvr_exp.config.schema import Config


def carries_rows(config: Config) -> bool:
    """Whether standard output is reserved for rows."""
    return config.infer is not None and not sys.stdout.isatty()


def message_stream(config: Config) -> TextIO:
    """The stream for messages to a person."""
    return sys.stderr if carries_rows(config) else sys.stdout


@contextmanager
def unread(*streams: TextIO) -> Iterator[None]:
    """What is shown to a person who may go away (`| head`, a closed terminal): it is lost, and the run goes on."""
    try:
        yield
    except OSError:
        for stream in streams:
            _silence(stream)


def _silence(stream: TextIO) -> None:
    """From now on nothing that is written there can fail."""
    with suppress(OSError, ValueError):  # No file, or one that was closed.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class Rows:
    """Rows as JSON lines; each has left this process when `write` returns.

    A reader that closes the pipe (`| head`) ends the run as SIGTERM does: answers written so far are kept.
    """

    def __init__(self, out: TextIO):
        self._out = out

    def write(self, row: Mapping[str, Any]) -> None:
        try:
            print(json.dumps(row, allow_nan=False), file=self._out, flush=True)
        except BrokenPipeError:
            _silence(self._out)
            signal.raise_signal(signal.SIGTERM)
