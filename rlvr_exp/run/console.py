"""Where a run talks to a person and where its answers go, for a stage whose answers are rows.

On a terminal both are standard output, the answers as readable text. Where standard output is a pipe or a file it carries
JSON lines and nothing else: what is meant for a person goes to standard error. Never writes a file.
"""

import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from rlvr_exp.config import Config


def carries_rows(config: Config) -> bool:
    """Standard output is for rows alone."""
    return config.infer is not None and not sys.stdout.isatty()


def message_stream(config: Config) -> TextIO:
    """What a person reads."""
    return sys.stderr if carries_rows(config) else sys.stdout


class Rows:
    """Rows as JSON lines, each out of this process when `write` returns.

    A reader that has seen enough (`| head`) ends the run as SIGTERM does: what is answered is kept.
    """

    def __init__(self, out: TextIO):
        self._out = out

    def write(self, row: Mapping[str, Any]) -> None:
        try:
            print(json.dumps(row, allow_nan=False), file=self._out, flush=True)
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._out.fileno())
            os.close(nowhere)
            signal.raise_signal(signal.SIGTERM)
