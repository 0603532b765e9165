"""The command line: read the words, check everything, start what they ask for, return its exit code.

Owns the flags and the texts of help. Imports what is needed for an answer only, so that help, errors and plans come at
once; never imports torch.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rlvr_exp.core.errors import DONE, INTERRUPTED, InputError, InputProblem, RlvrError

if TYPE_CHECKING:
    from rlvr_exp.config import Checked, Config
    from rlvr_exp.run.execute import Inline, Outcome

FLAGS = {
    "--help": "this page; with +stage=NAME also every option of that stage",
    "--cfg job": "print the composed configuration, each value with where it comes from",
    "--multirun": "run every combination of the values listed: key=a,b",
    "--version": "print the version",
}
SHORT = {"-h": "--help", "-c": "--cfg", "-m": "--multirun"}


@dataclass
class Asked:
    """A command line, flags apart from words."""

    words: list[str] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    problems: list[InputProblem] = field(default_factory=list)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code of a command line; see rlvr_exp.core.errors."""
    asked = read(list(sys.argv[1:] if arguments is None else arguments))
    try:
        with _terminable():
            return answer(asked)
    except RlvrError as stop:
        print(_shown(stop), file=sys.stderr)
        return stop.exit_code
    except KeyboardInterrupt:  # Before a run has children or after it: between, rlvr_exp.run.children takes signals.
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends what goes on as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Called as a function, where signals are another's.
        return
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _shown(stop: RlvrError) -> str:
    if not isinstance(stop, InputError):
        return str(stop)
    count = len(stop.problems)
    head = "1 problem" if count == 1 else f"{count} problems"
    return f"{head}; nothing was started\n{stop}"


def read(arguments: list[str]) -> Asked:
    """Tell flags from words; an unknown flag is a problem like any other."""
    asked = Asked()
    queue = iter(arguments)
    for argument in queue:
        flag = SHORT.get(argument, argument)
        if flag.startswith("--cfg"):
            kind = flag.partition("=")[2] or next(queue, "")
            asked.flags.add("--cfg")
            if kind != "job":
                asked.problems.append(InputProblem("--cfg", "unknown kind", kind, "job", "", "--cfg job"))
        elif flag in FLAGS:
            asked.flags.add(flag)
        elif flag.startswith("-"):
            asked.problems.append(_unknown_flag(argument))
        else:
            asked.words.append(argument)
    return asked


def _unknown_flag(argument: str) -> InputProblem:
    from rlvr_exp.config.names import nearest

    return InputProblem(
        argument, "unknown flag", "", ", ".join(FLAGS), nearest(argument, FLAGS), "options are words: key=value"
    )


def answer(asked: Asked) -> int:
    """Do what was asked. Raises RlvrError."""
    if asked.problems and not asked.words:
        raise InputError(*asked.problems)
    if "--version" in asked.flags:
        from rlvr_exp import __version__

        _say(f"rlvr_exp {__version__}")
    elif "--help" in asked.flags:
        _help(asked)
    elif not asked.words and not asked.flags:
        from rlvr_exp.config.usage import overview

        _say(overview())
    elif "--multirun" in asked.flags:
        return _sweep(asked)
    else:
        return _single(asked)
    return DONE


def _help(asked: Asked) -> None:
    from rlvr_exp.config.usage import usage

    text = usage(FLAGS)
    if asked.words:
        from rlvr_exp.config.describe import option_lines

        lines = option_lines(_checked(asked))
        text = "\n".join([text, "", "Options of this command line:", "", *(f"  {line}" for line in lines)])
    _say(text)


def _say(text: str) -> None:
    """Print an answer; a reader that has seen enough (`| head`) is no failure."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _checked(asked: Asked) -> "Checked":
    from rlvr_exp.config.compose import compose_lenient

    checked = compose_lenient(asked.words)
    if asked.problems or checked.problems:
        raise InputError(*asked.problems, *checked.problems)
    return checked


def _single(asked: Asked) -> int:
    checked = _checked(asked)
    if "--cfg" in asked.flags:
        from rlvr_exp.config.describe import annotated

        _say(annotated(checked))
        return DONE
    if checked.config.run.dry:
        return _dry(checked.config)
    _refuse_what_cannot_run([checked.config])
    return _run(checked, asked.words, _directory(checked.config)).code


def _dry(config: "Config") -> int:
    from rlvr_exp.config.needs import missing
    from rlvr_exp.run.plan import plan

    _refuse_what_cannot_run([config], fetchable=True)
    _say(plan(config, missing(config)))
    return DONE


def _refuse_what_cannot_run(configs: Sequence["Config"], fetchable: bool = False) -> None:
    """What only this machine can tell: missing weights, data and packages, a run directory that is taken.

    Raises:
        InputError: with all of it. `fetchable`: a plan may lack what can be brought here.
    """
    from rlvr_exp.run.ready import unready

    problems = [problem for config in configs for problem in unready(config, fetchable)]
    if problems:
        raise InputError(*dict.fromkeys(problems))


def _directory(config: "Config") -> Path:
    from rlvr_exp.run.directory import default_directory
    from rlvr_exp.run.resume import directory_of

    return directory_of(config) or default_directory(config.stage, datetime.now())


def _run(checked: "Checked", words: Sequence[str], directory: Path) -> "Outcome":
    from rlvr_exp.run.execute import execute

    command = ["python", "-m", "rlvr_exp", *words]
    return execute(checked, command, directory, _inline() if checked.config.run.inline else None)


def _inline() -> "Inline":
    from rlvr_exp.stages.launch import run_stage

    return run_stage


def _sweep(asked: Asked) -> int:
    from rlvr_exp.config.jobs import expand
    from rlvr_exp.run.sweep import job_directories, run_all

    if asked.problems:
        raise InputError(*asked.problems)
    jobs = expand(asked.words)
    if "--cfg" in asked.flags:
        raise InputError(InputProblem("--cfg", "shows one job", "with --multirun", "", "", "drop one of the two"))
    configs = [job.checked.config for job in jobs]
    if any(config.run.dry for config in configs):
        return max(_dry(config) for config in configs)
    _refuse_what_cannot_run(configs)
    swept = [job.swept for job in jobs]
    resuming = any(config.run.resume for config in configs)
    directories = job_directories([config.run.dir for config in configs], swept, datetime.now(), resuming)

    def start(index: int) -> "Outcome":
        return _run(jobs[index].checked, jobs[index].words, directories[index])

    return run_all([" ".join(words) or "(no sweep)" for words in swept], directories, start)
