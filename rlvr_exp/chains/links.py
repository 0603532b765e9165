"""Runs a chain: each link is a command of its own, begun where its directory has not ended well, and skipped where it has.

A link runs to its end in a process of its own, and its lines are the chain's notes. `chain.json` has the links and how each
ended; `chain.md` what they measured; the chain's report shows both.
"""

import json
import queue
import shlex
import shutil
import signal
import subprocess
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlvr_exp.chains.page import page
from rlvr_exp.config.chain import CHAIN, PATH, PLACE, SERVED, Links
from rlvr_exp.config.compose import compose_lenient
from rlvr_exp.config.schema import Config
from rlvr_exp.config.stages import measures, reads, trains
from rlvr_exp.config.words import one_experiment
from rlvr_exp.core.errors import BAD_INPUT, DONE, GUARD, GuardStop, InputError, InputProblem, Interrupted, RlvrError
from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.launch.children import start_program
from rlvr_exp.records.context import COMPLETED, RunContext, StageResult, read_summary
from rlvr_exp.records.resumable_jsonl import FOLDER as JOURNALS

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


STATE, PAGE = "chain.json", "chain.md"


def run_links(config: Config, context: RunContext) -> StageResult:
    """Raises InputError where a command has a problem, before any is run; else what ends a link ends the chain."""
    options: Links = config.chain
    commands = commands_of(options, context.directory)
    _check(commands)
    done: list[dict[str, Any]] = []
    for number, command in enumerate(commands, 1):
        context.progress(kind="phase", name="links", done=number - 1, total=len(commands))
        context.progress(kind="note", text=f"link {number} of {len(commands)}, {command.name}: {command.text}")
        if _ended_well(command):
            context.progress(kind="note", text=f"{command.name} has ended well already: {command.directory}")
        else:
            write_json(_words_of(command), list(command.words))
            run_command(command, context)
        done.append(_state(command))
        write_json(context.directory / STATE, {"links": done})
        shown = context.directory / PAGE
        written = shown.read_text(encoding="utf-8") if shown.exists() else ""
        write_text(shown, page(context.directory, done, written))
    last = done[-1]["summary"]
    seconds = {f"{one['name']}/seconds": one["summary"]["seconds"] for one in done}
    return StageResult(last["before"], last["after"], {"links": float(len(done)), **seconds})


def commands_of(options: Links, root: Path) -> list[Command]:
    """The command of each link, with the directories of those before it."""
    places = {CHAIN: str(root), PATH: options.path}
    found = []
    for number, (name, words) in enumerate(options.runs.items(), 1):
        directory = root / f"{number:02d}_{name}"
        filled = [PLACE.sub(lambda match: places[match[1]], word) for word in words]
        command = Command(name, tuple(filled), directory)
        more = options.endpoint if SERVED in words else options.policy if reads(command.stage, "model") else []
        found.append(replace(command, words=one_experiment([*filled, *more, *options.words])))
        places[name] = str(directory)
    return found


def _check(commands: list[Command]) -> None:
    """Problems of the configuration alone: what a link reads may be what an earlier one has yet to write."""
    found = [
        replace(problem, where=f"chain.links.{command.name}: {problem.where}")
        for command in commands
        for problem in compose_lenient(list(command.words)).problems
    ]
    if found:
        raise InputError(*found)


def _words_of(command: Command) -> Path:
    """The file of the words that a link was begun with, beside its directory."""
    return command.directory.with_suffix(".json")


def _ended_well(command: Command) -> bool:
    """Whether the directory has a completed run of the same words."""
    summary, words = read_summary(command.directory), _words_of(command)
    if summary is None or summary["status"] != COMPLETED or not words.is_file():
        return False
    return json.loads(words.read_text(encoding="utf-8")) == list(command.words)


def _state(command: Command) -> dict[str, Any]:
    summary = read_summary(command.directory)
    return {
        "name": command.name,
        "command": command.text,
        "directory": command.directory.name,
        "summary": summary,
    }
