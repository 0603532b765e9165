"""Tasks from standard input: read to the end by the parent, for a stage that runs in another process."""

import shutil
import sys
from pathlib import Path

from rlvr_exp.config.infer import STDIN
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import GuardStop, Interrupted
from rlvr_exp.core.files import replacing

NAME = "input.jsonl"
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
        with replacing(directory / NAME) as temporary, open(temporary, "wb") as out:
            if sys.stdin is not None:
                shutil.copyfileobj(sys.stdin.buffer, out)
    except KeyboardInterrupt as stop:
        raise Interrupted("stopped while standard input was read; nothing was answered") from stop
    except OSError as fault:
        raise GuardStop(f"standard input cannot be kept in {directory / NAME}: {fault.strerror}") from fault
