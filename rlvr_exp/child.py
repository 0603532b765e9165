"""A child process of a run: `python -m rlvr_exp.child RUN_DIR PROGRESS_FD LIFE_FD`, started by the parent, once
per rank (rlvr_exp.launch.children).

Runs the stage of RUN_DIR/config.yaml, writes summary.json, and maps failures to exit codes. Knows no stage by name.
"""

import importlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from rlvr_exp.config.load import load
from rlvr_exp.config.options import SCHEMAS
from rlvr_exp.config.schema import STAGES, Config
from rlvr_exp.core import hashing
from rlvr_exp.core.errors import DONE, FAULT, InputError, RlvrError
from rlvr_exp.core.files import MOST_DIGITS
from rlvr_exp.core.secrets import Masking, masked
from rlvr_exp.launch.children import hide_unused_packages, hold_lifeline, own_directory, rank
from rlvr_exp.launch.watchdog import watched
from rlvr_exp.records.context import RunContext, StageResult, write_summary
from rlvr_exp.records.directory import unwritable
from rlvr_exp.records.manifest import flat
from rlvr_exp.training.torch_distributed import joined

FILES = "rlvr_exp.records.tracking.Files"


def main(arguments: list[str]) -> int:
    """The exit code of the run."""
    directory, progress, life = Path(arguments[0]), int(arguments[1]), int(arguments[2])
    hold_lifeline(life)
    sys.set_int_max_str_digits(MOST_DIGITS)
    os.set_inheritable(progress, False)
    sys.stdout, sys.stderr = Masking(sys.stdout), Masking(sys.stderr)  # Both are the run's log.
    hashing.take_over(directory)
    try:
        config = load(directory / "config.yaml")
    except InputError as fault:
        print(fault, file=sys.stderr, flush=True)
        return fault.exit_code
    if hasattr(config.tracking, "environment"):
        os.environ.update(config.tracking.environment(directory) | os.environ)
    hide_unused_packages(config, flat(yaml.safe_load((directory / "config.yaml").read_text(encoding="utf-8"))))
    with own_directory(directory, config.parallel) as own:
        if rank():
            config.tracking = None if config.tracking is None else SCHEMAS[FILES]()  # Only rank 0 logs to the viewer.
        return run_stage(config, RunContext(own, _sender(progress)))


def run_stage(config: Config, context: RunContext) -> int:
    """Run a stage to its end and write its summary; a fault of ours is printed with its traceback.

    While it runs, SIGTERM and SIGINT set `context.interrupted`.
    """

    def interrupt(*_: object) -> None:
        context.interrupted = True

    previous = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        return _to_the_end(config, context)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _to_the_end(config: Config, context: RunContext) -> int:
    start = time.monotonic()
    code = DONE
    try:
        name = STAGES[config.stage].module or config.stage
        module = importlib.import_module(name if "." in name else f"rlvr_exp.stages.{name}")
        with watched(config.run.guards, context, config.stage), joined(config.parallel):
            result = module.run(config, context)
    except RlvrError as stop:
        result, code = _unfinished(context, str(stop)), stop.exit_code
        _log(result.reason)
    except Exception as fault:  # A failure of the disk, or a fault of ours, which the run's status records.
        full = unwritable(fault, context.directory)
        code = FAULT if full is None else full.exit_code
        result = _unfinished(context, f"{type(fault).__name__}: {fault}" if full is None else str(full))
        _log(traceback.format_exc() if full is None else str(full))
    context.notify("reason", result.reason)  # Through the pipe too: a full disk takes no summary.
    with suppress(OSError):
        write_summary(context.directory, config.stage, code, time.monotonic() - start, result)
    return code


def _log(text: str) -> None:
    with suppress(OSError):  # The log is on the disk that is full.
        print(text, file=sys.stderr, flush=True)


def _unfinished(context: RunContext, reason: str) -> StageResult:
    return StageResult(before=context.before, metrics=context.metrics, steps=context.steps, reason=masked(reason))


def _sender(descriptor: int) -> Callable[[Mapping[str, Any]], None]:
    out = open(descriptor, "w", encoding="utf-8", buffering=1)  # Line by line; lives as long as the process.

    def send(event: Mapping[str, Any]) -> None:
        out.write(masked(json.dumps(event, default=str)) + "\n")

    return send


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
