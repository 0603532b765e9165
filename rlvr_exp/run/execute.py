"""One run as its parent sees it: claim the directory, write what is known, run the stage, tell how it ended.

The stage runs in a child process, or in this one where `run.inline` asks for it. Never imports torch itself.
"""

import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rlvr_exp.config import Checked, Config, to_yaml
from rlvr_exp.config.stages import reads
from rlvr_exp.core.errors import DONE, FAULT, INTERRUPTED
from rlvr_exp.core.files import write_text
from rlvr_exp.run import manifest
from rlvr_exp.run.children import LOG, Ended, child_environment, run_child
from rlvr_exp.run.directory import claimed
from rlvr_exp.run.job import Job, Result
from rlvr_exp.run.report import write_report
from rlvr_exp.run.summary import STATUS, read_summary, write_summary

LAUNCH = "rlvr_exp.stages.launch"
"""Module that runs a stage in a child; named, not imported: it stands above this room."""
TAIL = 30
"""Lines of the log shown after a fault."""

Inline = Callable[[Config, Job], int]


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    directory: Path
    code: int
    summary: dict[str, Any]


def execute(checked: Checked, command: Sequence[str], directory: Path, inline: Inline | None = None) -> Outcome:
    """Run one checked configuration in its own directory.

    Args:
        command: the command line, for the manifest.
        inline: runs a stage in this process; None: in a child.

    Raises:
        InputError: the directory cannot be claimed; nothing was written.
    """
    config = checked.config
    with claimed(directory):
        write_text(directory / "config.yaml", to_yaml(checked))
        created = datetime.now().astimezone().isoformat(timespec="seconds")
        manifest.begin(directory, config.stage, config.seed, command, created)
        print(f"run directory: {directory}", flush=True)
        start = time.monotonic()
        if inline is None:
            code = _in_child(config, directory, start)
        else:
            code = _inline(config, directory, inline)
        summary = read_summary(directory) or {}
        code = _report(directory, code)
        _tell(code, directory, summary)
        return Outcome(directory, code, summary)


def _report(directory: Path, code: int) -> int:
    """Write the report; where that fails the run is whole all the same, and only a good exit code turns into a fault."""
    try:
        write_report(directory)
    except Exception:
        traceback.print_exc()
        return code or FAULT
    return code


def _progress(config: Config) -> Any:
    from rlvr_exp.run.progress import Progress  # Only once a run starts: the light path stays light.

    steps = config.algorithm.max_steps if reads(config.stage, "algorithm") else 0
    return closing(Progress(steps, config.stage, sys.stdout.isatty()))


def _inline(config: Config, directory: Path, inline: Inline) -> int:
    with _progress(config) as progress:
        return inline(config, Job(directory, progress.event))


def _in_child(config: Config, directory: Path, start: float) -> int:
    with _progress(config) as progress:
        env = child_environment(config.parallel.threads)
        ended = run_child(LAUNCH, [str(directory)], directory, env, progress.event)
    code = exit_code(ended)
    if read_summary(directory) is None:
        code = FAULT if code == DONE else code
        result = Result(reason=_how_it_went(ended))
        write_summary(directory, config.stage, code, time.monotonic() - start, result)
    return code


def exit_code(ended: Ended) -> int:
    """The run's exit code from its child's end."""
    if ended.returncode in STATUS:
        return ended.returncode
    return INTERRUPTED if ended.asked else FAULT


def _how_it_went(ended: Ended) -> str:
    if ended.asked:
        return "the stage's process was stopped before it could finish a step"
    if ended.returncode >= 0:
        return f"the stage's process ended with code {ended.returncode} and no summary"
    name = signal.Signals(-ended.returncode).name
    hint = "; the machine may have run out of memory" if name == "SIGKILL" else ""
    return f"the stage's process was killed by {name}{hint}"


def _tell(code: int, directory: Path, summary: dict[str, Any]) -> None:
    """The last lines that a person sees."""
    if code == FAULT and (directory / LOG).is_file():
        lines = (directory / LOG).read_text(encoding="utf-8", errors="replace").splitlines()
        print(*lines[-TAIL:], sep="\n", file=sys.stderr)
        print(f"the whole log: {directory / LOG}", file=sys.stderr)
    if code != DONE:
        print(f"{summary.get('status')}: {summary.get('reason')}", file=sys.stderr, flush=True)
        return
    for metric, rate in summary["after"].items():
        before = summary["before"].get(metric)
        rose = f"{before['value']:.1%} -> " if before else ""
        print(f"{metric}: {rose}{rate['value']:.1%} [{rate['low']:.1%}, {rate['high']:.1%}], {rate['n']} tasks")
    print(f"completed: {directory / 'report.html'}", flush=True)
