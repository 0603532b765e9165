"""The standard streams of a run: messages, rows of a stage that answers in rows, and tasks from standard input.

On a terminal messages and rows are both standard output, and the answers are readable text. Where standard output is a
pipe or a file, it carries JSON lines only, and messages for a person go to standard error. The parent reads standard input
to the end, for a stage that runs in another process.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from rlvr_exp.config.schema import Config
from rlvr_exp.config.stage_options import STDIN
from rlvr_exp.core.errors import GuardStop, Interrupted
from rlvr_exp.core.files import replacing


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


KEPT_INPUT = "input.jsonl"
"""File name in the run directory."""


def keep_standard_input(config: Config, directory: Path) -> None:
    """Copy standard input into the run directory, where the configuration reads tasks from it.

    Raises:
        Interrupted: by Ctrl-C, before its end.
        GuardStop: the run directory cannot be written.
    """
    if config.infer is None or config.infer.input != STDIN:
        return
    if sys.stdin is not None and sys.stdin.isatty():
        print("tasks from the terminal, one JSON object a line; end with Ctrl-D", file=sys.stderr, flush=True)
    try:
        with replacing(directory / KEPT_INPUT) as temporary, open(temporary, "wb") as out:
            if sys.stdin is not None:
                shutil.copyfileobj(sys.stdin.buffer, out)
    except KeyboardInterrupt as stop:
        raise Interrupted("stopped while standard input was read; nothing was answered") from stop
    except OSError as fault:
        raise GuardStop(f"standard input cannot be kept in {directory / KEPT_INPUT}: {fault.strerror}") from fault
