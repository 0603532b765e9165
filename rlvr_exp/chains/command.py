"""One link: a command of the program, run to its end in a process of its own, whose lines are the chain's notes."""

import queue
import shlex
import shutil
import signal
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from rlvr_exp.config.stages import measures, trains
from rlvr_exp.core.errors import BAD_INPUT, DONE, GUARD, GuardStop, InputError, InputProblem, Interrupted, RlvrError
from rlvr_exp.launch.children import start_program
from rlvr_exp.records.completion_journal import FOLDER as JOURNALS
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.summary import read_summary

EVERY_S = 0.5
"""Between looks for a request to stop."""


@dataclass(frozen=True)
class Command:
    name: str
    words: tuple[str, ...]
    directory: Path
    """Of its run."""

    @property
    def stage(self) -> str:
        return next(word.partition("=")[2] for word in self.words if word.startswith("+stage="))

    @property
    def text(self) -> str:
        """As a person would write it."""
        return shlex.join(["python", "-m", "rlvr_exp", *self.words])


def run_command(command: Command, context: RunContext) -> None:
    """Run it, or go on where it was stopped. A request to stop is passed on.

    Raises:
        RlvrError: it did not end well; of the kind of its exit code.
    """
    resumes = trains(command.stage) or (measures(command.stage) and (command.directory / JOURNALS).is_dir())
    resume = ["run.resume=auto"] if resumes else []
    if not resume and command.directory.exists():
        shutil.rmtree(command.directory)  # What a stopped link of this chain has left: such a stage begins anew.
    words = [*command.words, f"run.dir={command.directory}", *resume]
    process = start_program(words, subprocess.PIPE)
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_read, args=(process, lines), daemon=True).start()
    asked = False
    while True:
        if context.interrupted and not asked:
            process.send_signal(signal.SIGINT)
            asked = True
        try:
            line = lines.get(timeout=EVERY_S)
        except queue.Empty:
            continue
        if line is None:
            break
        context.progress(kind="note", text=f"{command.name}: {line}")
    _judge(command, process.wait(), asked)


def _judge(command: Command, code: int, asked: bool) -> None:
    if code == DONE:
        return
    reason = (read_summary(command.directory) or {}).get("reason") or f"exit code {code}"
    text = f"{command.name} in {command.directory}: {reason}"
    if asked:
        raise Interrupted(f"stopped during {text}. The same command with run.resume=auto goes on there")
    if code == GUARD:
        raise GuardStop(text)
    if code == BAD_INPUT:
        raise InputError(
            InputProblem(f"chain.links.{command.name}", "was refused", reason, "", "", "see its lines above")
        )
    raise RlvrError(text)


def _read(process: "subprocess.Popen[str]", lines: "queue.Queue[str | None]") -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip():
            lines.put(line.rstrip("\n"))
    lines.put(None)
