"""The command line: parse the words, check everything, run the command, return its exit code.

Owns the flags and the texts of help. Imports only what the command needs, so that help, errors and plans come
at once; never imports torch.
"""

import os
import re
import signal
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from rlvr_exp.core.errors import BAD_INPUT, DONE, INTERRUPTED, InputError, InputProblem, RlvrError
from rlvr_exp.core.files import MOST_DIGITS

if TYPE_CHECKING:
    from rlvr_exp.config.schema import Config
    from rlvr_exp.config.schema_check import Checked
    from rlvr_exp.launch.execute import Inline, Outcome

JSON = "--json"
FLAGS = {
    "--help": "this page; with +stage=NAME also its usual options, with --help all every option, with --help WORD those that have the word",
    "--cfg job": "print the composed configuration, each value with where it comes from",
    "--multirun": "run every combination of the values listed: key=a,b",
    JSON: "+stage=doctor prints JSON",
    "--version": "print the version",
}
OTHER_SYSTEM = "rlvr_exp needs Linux, this system is {}: use Linux or the container in .devcontainer/"
SHORT = {"-h": "--help", "-c": "--cfg", "-m": "--multirun"}


@dataclass
class CommandLine:
    """A command line, flags apart from words."""

    words: list[str] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    problems: list[InputProblem] = field(default_factory=list)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; see rlvr_exp.core.errors."""
    if sys.platform != "linux":  # Before modules that other systems lack, such as fcntl, are imported.
        print(OTHER_SYSTEM.format(sys.platform), file=sys.stderr)
        return BAD_INPUT
    line = parse_args(list(sys.argv[1:] if arguments is None else arguments))
    try:
        with _terminable(), _many_digits():
            return dispatch(line)
    except RlvrError as stop:
        print(_shown(stop), file=sys.stderr)
        return stop.exit_code
    except KeyboardInterrupt:  # Before a run has children or after it: between, rlvr_exp.launch.children takes signals.
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


@contextmanager
def _many_digits() -> Iterator[None]:
    """Rows of tasks may hold integers that Python refuses to read and to write."""
    previous = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(MOST_DIGITS)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(previous)


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM interrupts the command as Ctrl-C does."""
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


def parse_args(arguments: list[str]) -> CommandLine:
    """Separate flags from words; an unknown flag is a problem like any other."""
    line = CommandLine()
    unknown: list[tuple[str, str]] = []
    queue = deque(arguments)
    while queue:
        argument = queue.popleft()
        flag = SHORT.get(argument, argument)
        if flag.startswith("--cfg"):
            kind = flag.partition("=")[2] or (queue.popleft() if queue else "")
            line.flags.add("--cfg")
            if kind != "job":
                line.problems.append(InputProblem("--cfg", "unknown kind", kind, "job", "", "--cfg job"))
        elif flag in FLAGS:
            line.flags.add(flag)
        elif flag.startswith("-"):
            name, _, value = argument.partition("=")
            its_value = not value and queue and re.fullmatch(r"[^-+~=][^=]*", queue[0])
            unknown.append((name, queue.popleft() if its_value else value))
        else:
            line.words.append(argument)
    if JSON in line.flags and "+stage=doctor" not in line.words:
        line.problems.append(InputProblem(JSON, "only +stage=doctor prints JSON", remedy="drop it"))
    line.problems += [_unknown_flag(name, value, line.words) for name, value in unknown]
    return line


def _unknown_flag(name: str, value: str, words: Sequence[str]) -> InputProblem:
    """A flag that does not exist, often an option written as other programs take them."""
    from rlvr_exp.config.compose import near_option
    from rlvr_exp.config.names import SURE, suggest

    flag = suggest(name, FLAGS, SURE)
    near = "" if flag else near_option(words, name.lstrip("-").replace("-", "_"))
    plus = {"stage": "+"}  # The one group without a default.
    options = [f"{plus.get(path, '')}{path}={value or 'VALUE'}" for path in near.split(" or ") if path]
    remedy = f"options are words, without dashes: {' or '.join(options) or 'key=value'}"
    return InputProblem(name, "unknown flag", value, ", ".join(FLAGS), flag, remedy)


def dispatch(line: CommandLine) -> int:
    """Run the command. Raises RlvrError."""
    if line.problems and not line.words:
        raise InputError(*line.problems)
    if "--version" in line.flags:
        from rlvr_exp import __version__

        _say(f"rlvr_exp {__version__}")
    elif "--help" in line.flags:
        _help(line)
    elif not line.words and not line.flags:
        from rlvr_exp.config.help import overview

        _say(overview())
    elif "--multirun" in line.flags:
        return _sweep(line)
    else:
        return _single(line)
    return DONE


def _help(line: CommandLine) -> None:
    from rlvr_exp.config.help import usage

    filters = [word for word in line.words if "=" not in word and word[:1] not in "+~"]
    words = [word for word in line.words if word not in filters]
    if not line.words:
        _say(usage(FLAGS))
        return
    from rlvr_exp.config.help import options_page

    page = options_page(words, filters, line.problems)
    _say(page if filters else f"{usage(FLAGS)}\n\n{page}")


def _say(text: str) -> None:
    """Print a text; a reader that closes early (`| head`) is no failure."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _checked(line: CommandLine, to_run: bool = False) -> "Checked":
    """The checked configuration. `to_run`: with problems, whatever this machine lacks is shown too, to be mended at once.

    Raises:
        InputError: with every problem.
    """
    from rlvr_exp.config.compose import compose_lenient

    checked = compose_lenient(line.words)
    if line.problems or checked.problems:
        raise InputError(*line.problems, *checked.problems, *(_machine_problems(checked) if to_run else ()))
    return checked


def _machine_problems(checked: "Checked") -> Iterator[InputProblem]:
    """Further problems of a faulty configuration on this machine. Nodes with a fault are left out, since a default replaces
    the refused value."""
    from rlvr_exp.config.schema import STAGES
    from rlvr_exp.stages.shared.start import start_problems

    config = checked.config
    faulty = {_node(problem.where) for problem in checked.problems}
    unusable = any(getattr(config, name, "") is None for name in faulty)
    if config.stage in STAGES and not unusable and not {"stage", "roles"} & faulty:
        found = start_problems(config, config.run.dry)
        yield from (problem for problem in found if _node(problem.where) not in faulty)


def _node(where: str) -> str:
    """The node that a problem is about: the first name of its path or word."""
    return next(iter(re.findall(r"\w+", where)), "")


def _single(line: CommandLine) -> int:
    from rlvr_exp.config.schema import STAGES

    checked = _checked(line, to_run="--cfg" not in line.flags)
    if "--cfg" in line.flags:
        from rlvr_exp.config.help import annotated

        _say(annotated(checked))
        return DONE
    if checked.config.run.dry:
        return _dry(checked, line.words)
    _refuse_what_cannot_run([checked.config])
    if STAGES[str(checked.config.stage)].direct:
        return int(import_module(f"rlvr_exp.stages.{checked.config.stage}").main(checked.config, JSON in line.flags))
    return _run(checked, line.words, _directory(checked.config)).code


def _dry(checked: "Checked", words: Sequence[str]) -> int:
    from rlvr_exp.config.help import differing
    from rlvr_exp.config.needs import missing_artifacts
    from rlvr_exp.launch.resume import begin, directory_of
    from rlvr_exp.memory.plan import plan
    from rlvr_exp.stages.shared.start import sample_size

    config = checked.config
    _refuse_what_cannot_run([config], fetchable=True)
    if (root := directory_of(config)) and config.run.resume:
        begin(checked, root)
    if config.stage == "study":
        from rlvr_exp.runs.schedule import study_plan

        _say(study_plan(config))
        return DONE
    if config.stage == "chain":
        from rlvr_exp.runs.chain import chain_plan

        _say(chain_plan(config))
        return DONE
    notes = sample_size(config, words)
    needs, differs = missing_artifacts(config), differing(checked)
    _say(plan(config, needs, checked.settings, differs, checked.left_out, notes))
    return DONE


def _refuse_what_cannot_run(configs: Sequence["Config"], fetchable: bool = False) -> None:
    """Check the machine: missing weights, data and packages, a run directory that is taken.

    Raises:
        InputError: with every problem. `fetchable`: a plan may lack what can be fetched.
    """
    from rlvr_exp.stages.shared.start import start_problems

    problems = [problem for config in configs for problem in start_problems(config, fetchable)]
    if problems:
        raise InputError(*dict.fromkeys(problems))


def _directory(config: "Config") -> Path:
    from rlvr_exp.config.schema import STAGES
    from rlvr_exp.launch.resume import directory_of
    from rlvr_exp.records.directory import default_directory, scratch_directory

    if config.run.trial:
        return scratch_directory(Path(tempfile.gettempdir()))
    if not STAGES[str(config.stage)].reported and not config.run.dir:
        return scratch_directory(Path(getattr(config, str(config.stage)).run))
    return directory_of(config) or default_directory(config.stage, datetime.now())


def _run(checked: "Checked", words: Sequence[str], directory: Path) -> "Outcome":
    from rlvr_exp.launch.children import inline_environment
    from rlvr_exp.launch.console import message_stream
    from rlvr_exp.launch.execute import execute
    from rlvr_exp.stages.shared.start import sample_size

    for name, text in sample_size(checked.config, words):
        print(f"{name}: {text}", file=message_stream(checked.config), flush=True)
    command = ["python", "-m", "rlvr_exp", *words]
    if not checked.config.run.inline:
        return execute(checked, command, directory, None)
    with inline_environment(checked):
        return execute(checked, command, directory, _inline())


def _inline() -> "Inline":
    from rlvr_exp.child import run_stage

    return run_stage


def _sweep(line: CommandLine) -> int:
    from rlvr_exp.config.schema import STAGES
    from rlvr_exp.runs.sweep import executor_apart, expand, run_sweep, sweep_directories

    if line.problems:
        raise InputError(*line.problems)
    words, executor = executor_apart(line.words)
    jobs = expand(words)
    if "--cfg" in line.flags:
        raise InputError(InputProblem("--cfg", "shows one job", "with --multirun", "", "", "drop one of the two"))
    configs = [job.checked.config for job in jobs]
    if alone := {config.stage for config in configs if STAGES[config.stage].direct}:
        what = "has no run directory, and runs once"
        raise InputError(InputProblem("+stage", what, f"{', '.join(alone)} with --multirun", remedy="drop --multirun"))
    if any(config.run.dry for config in configs):
        _refuse_what_cannot_run(configs, fetchable=True)
        return max(_dry(job.checked, job.words) for job in jobs)
    if any(config.run.trial for config in configs):
        raise InputError(
            InputProblem("run.trial", "measures one run", "with --multirun", "", "", "drop one of the two")
        )
    _refuse_what_cannot_run(configs)
    root, directories = sweep_directories(jobs, datetime.now())
    command = ["python", "-m", "rlvr_exp", *line.words, "--multirun"]
    return run_sweep(jobs, directories, root, executor, command)
