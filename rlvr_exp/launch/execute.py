"""The parent of a run: claim the directory, write the config and manifest, run the stage, print the outcome.

The stage runs in child processes, one per rank, or in this process with `run.inline`. Weights in installed packages are converted
before in a separate process, so that the manifest records the converted files. Never imports torch.
"""

import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from rlvr_exp.config.load import resolved, to_yaml
from rlvr_exp.config.model import is_converted
from rlvr_exp.config.needs import loads_weights
from rlvr_exp.config.roles import of_role
from rlvr_exp.config.schema import STAGES, Config, reads, repeatable
from rlvr_exp.config.schema_check import Checked
from rlvr_exp.config.suited import advice
from rlvr_exp.config.tree import dotted
from rlvr_exp.core import hashing
from rlvr_exp.core.errors import DONE, FAULT, INTERRUPTED, InputError, InputProblem
from rlvr_exp.core.files import write_text
from rlvr_exp.core.measures import counted, scale_of
from rlvr_exp.launch.children import (
    Ended,
    child_environment,
    environments,
    every_device,
    log_name,
    of_node,
    remove_scratch,
    run_children,
)
from rlvr_exp.launch.console import Progress, Rows, carries_rows, keep_standard_input, message_stream, printable, unread
from rlvr_exp.launch.machines import Machines, met
from rlvr_exp.launch.preflight import left_out_warning
from rlvr_exp.launch.resume import Start, begin, continuing, prepare, steps_of
from rlvr_exp.records import manifest
from rlvr_exp.records.context import STATUS, RunContext, StageResult, read_summary, with_diagnosis, write_summary
from rlvr_exp.records.directory import SCRATCH, claimed, unwritable, writing
from rlvr_exp.records.manifest import initial_weights
from rlvr_exp.records.tracking import read_metrics
from rlvr_exp.report import write_report
from rlvr_exp.report.card import write_cards

LAUNCH = "rlvr_exp.child"
"""Module that runs a stage in a child process; named and not imported, since it is above this room."""
CONVERTER = "rlvr_exp.models.quantization"
"""Module that converts a package's weights; likewise."""
TAIL = 30
"""Lines of the log shown after a fault."""

Inline = Callable[[Config, RunContext], int]


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    directory: Path
    code: int
    summary: dict[str, Any]


def execute(checked: Checked, command: Sequence[str], directory: Path, inline: Inline | None = None) -> Outcome:
    """Run a checked configuration in its own directory.

    Args:
        command: the command line, for the manifest.
        inline: runs a stage in this process; None: in a child.

    Raises:
        InputError: weights in a package cannot be converted, or the directory cannot be claimed. Nothing was written.
    """
    config, root = checked.config, directory
    directory = of_node(config.parallel, root)
    convert_packages(config, message_stream(config))
    say = partial(print, file=message_stream(config), flush=True)
    with (
        met(config.parallel, manifest.flat(resolved(checked)), say) as machines,
        claimed(directory, resuming=bool(config.run.resume)),
    ):
        begins = begin(checked, root)
        if begins.completed:
            return _nothing_left(root, begins)
        with writing(directory):
            _write_what_is_known(checked, command, begins, directory, root)
            hashing.hand_over(directory)
        scratch = directory.name.startswith(SCRATCH)
        if not scratch:
            print(f"run directory: {directory}", file=message_stream(config), flush=True)
        for text in _told(checked):
            print(printable(text), file=message_stream(config), flush=True)
        keep_standard_input(config, directory)
        start = time.monotonic()
        if inline is None:
            code, log, reason = _in_children(config, directory, root, start, machines)
        else:
            with _progress(config) as progress:
                code, log = inline(config, RunContext(directory, progress.event)), directory / log_name(0)
            reason = progress.reason
        hashing.drop(directory)
        summary = read_summary(directory) or {"status": STATUS[code], "reason": reason}
        if config.parallel.node == 0 and STAGES[config.stage].reported and not config.run.trial:
            code, cause = _report(directory, code)
            summary = with_diagnosis(directory, summary, cause) if cause else summary
        out = message_stream(config)
        with unread(out, sys.stderr):
            _print_outcome(code, log, _page(config, directory), summary, out)
            if (code == INTERRUPTED or (config.parallel.nodes > 1 and code == FAULT)) and (
                further := continuing(config, root)
            ):
                print(f"continue with: {further}", file=sys.stderr, flush=True)
        if scratch and code != FAULT:  # The log of a fault is kept.
            shutil.rmtree(directory)
        return Outcome(directory, code, summary)


def convert_packages(config: Config, out: TextIO) -> None:
    """Convert the weights of every `model.package` that are not in the user's cache yet.

    Raises:
        InputError: the conversion failed.
    """
    if not loads_weights(config):
        return
    models = [config.model, *(of_role(config, role).model for role in config.roles)]
    environment = {**child_environment(0), "TQDM_DISABLE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    for package in dict.fromkeys(model.package for model in models if model.package and not model.path):
        if is_converted(package):
            continue
        words, pipe = [sys.executable, "-m", CONVERTER, package], subprocess.PIPE
        with subprocess.Popen(words, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", file=out, flush=True)
            _, errors = process.communicate()
        if process.returncode:
            last = errors.strip().rpartition("\n")[2]
            raise InputError(InputProblem("model.package", "the weights cannot be converted", f"{package}: {last}"))


def _write_what_is_known(checked: Checked, command: Sequence[str], begins: Start, directory: Path, root: Path) -> None:
    """Prepare the directory for the run: new, or as it was when the checkpoint was written."""
    config, created = checked.config, datetime.now().astimezone().isoformat(timespec="seconds")
    if config.run.resume:
        prepare(begins, directory, root)
    write_text(directory / "config.yaml", to_yaml(checked))
    if begins.checkpoint is None or not (directory / manifest.NAME).is_file():
        manifest.begin(directory, config.stage, config.seed, command, created)
        settings = [{"option": dotted(one.path), "value": one.value, "why": one.why} for one in checked.settings]
        manifest.update(directory, settings=settings, advice=advice(config))
        if repeatable(config.stage) and reads(config, "model"):
            manifest.update(directory, start=initial_weights(config))
    if begins.checkpoint is not None:
        manifest.mark_resumed(directory, begins.checkpoint, command, created)
    manifest.record_override(directory, getattr(config.curriculum, "override", -1), begins.step, created)
    for note in begins.notes:
        print(note, flush=True)
    if begins.checkpoint is not None:
        print(f"resuming after step {begins.step}: {begins.checkpoint}", flush=True)


def _told(checked: Checked) -> list[str]:
    """Skipped tasks, settings chosen for a checkpoint, values that were left out, and advice."""
    warnings = [f"warning: {text}" for text in (left_out_warning(checked.config),) if text]
    chosen = [f"chosen: {one}" for one in checked.settings] + [f"left out: {text}" for text in checked.left_out]
    return warnings + chosen + [f"advice: {text}" for text in advice(checked.config)]


def _nothing_left(root: Path, begins: Start) -> Outcome:
    steps = f", after {begins.step} steps" if begins.step else ""
    more = ". A larger algorithm.max_steps continues from there" if begins.step else ""
    print(f"completed already{steps}: {root}{more}", flush=True)
    return Outcome(root, DONE, read_summary(root) or {})


def _report(directory: Path, code: int) -> tuple[int, str]:
    """Write the report and the model cards. If that fails, the run is still complete, so only a good exit code becomes a
    fault.

    Returns:
        The exit code, and the first cause of a run that did not learn.
    """
    try:
        write_cards(directory)
        return code, write_report(directory).root_cause
    except Exception as fault:
        stop = unwritable(fault, directory)
        if stop is None:
            traceback.print_exc()
            return code or FAULT, ""
        if code == DONE:
            print(f"no report: {stop}", file=sys.stderr, flush=True)
        return code or stop.exit_code, ""


def _progress(config: Config) -> Any:
    steps = config.algorithm.max_steps if reads(config, "optimizer") else 0
    out, rows = message_stream(config), Rows(sys.stdout) if carries_rows(config) else None
    return closing(Progress(steps, config.stage, out.isatty(), out, rows))


def _in_children(
    config: Config, directory: Path, root: Path, start: float, machines: Machines
) -> tuple[int, Path | None, str]:
    """The exit code of the run, the log of the process that decided it, and the reason for its end. No log is known of a machine
    that is gone."""
    with _progress(config) as progress:
        progress.event({"kind": "wait", "name": "starting: imports"})
        online = getattr(config.prepare, "fetches", False)
        shared = child_environment(config.parallel.threads, config.parallel.processes, online)
        envs = environments(config.parallel, shared, every_device(config), machines.interface)
        ended = run_children(LAUNCH, [str(directory)], directory, envs, progress.event, machines)
    remove_scratch(directory)
    code, summary, elsewhere = exit_code(ended), read_summary(directory), ended.elsewhere
    machines.tell(code if ended.returncode in STATUS else FAULT)
    log: Path | None = directory / log_name(ended.rank)
    if code != FAULT and code == ended.returncode:
        elsewhere = None  # All ranks agreed on the end, and rank 0 has written the reason.
    if elsewhere is not None:
        log = None if elsewhere.lost else of_node(replace(config.parallel, node=elsewhere.node), root) / log_name(0)
    # Only the first process of the first machine writes a summary.
    silent_for_good = config.parallel.node > 0 and code == DONE
    if summary is None or ended.rank or elsewhere is not None:
        code = FAULT if code == DONE and not silent_for_good else code
        reason = "" if ended.rank or elsewhere is not None else progress.reason
        why = "" if silent_for_good else reason or _how_it_went(ended, directory, root)
        # Rank 0 may only have seen another rank leave; a run without a summary has logged its steps.
        known = summary or {"steps": max((int(row["step"] or 0) for row in read_metrics(directory)), default=0)}
        result = StageResult(known.get("before", {}), {}, known.get("metrics", {}), known.get("steps", 0), why)
        with suppress(OSError):  # A full disk takes no summary. The reason is printed anyway.
            write_summary(directory, config.stage, code, time.monotonic() - start, result)
        return code, log, why
    return code, log, progress.reason


def exit_code(ended: Ended) -> int:
    """The run's exit code from how its children ended."""
    if ended.elsewhere is not None:
        return ended.elsewhere.code if ended.elsewhere.code in STATUS else FAULT
    if ended.returncode in STATUS:
        return ended.returncode
    return INTERRUPTED if ended.stop_requested else FAULT


def _how_it_went(ended: Ended, directory: Path, root: Path) -> str:
    if ended.elsewhere is not None:
        newest = next(iter(steps_of(root)), None)
        return f"{ended.elsewhere}; " + (f"the newest checkpoint: {newest}" if newest else "there is no checkpoint yet")
    whose = f"rank {ended.rank}" if ended.rank else "the stage's process"
    if ended.stop_requested:
        return f"{whose} was stopped before it could finish a step"
    if ended.returncode < 0:
        name = signal.Signals(-ended.returncode).name
        hint = "; the machine may have run out of memory" if name == "SIGKILL" else ""
        return f"{whose} was killed by {name}{hint}"
    if ended.rank:
        last = [line for line in _lines(directory / log_name(ended.rank)) if line.strip()][-1:]
        return f"{whose}: {last[0].strip() if last else f'ended with code {ended.returncode}'}"
    return f"{whose} ended with code {ended.returncode} and no summary"


def _lines(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []


def _page(config: Config, directory: Path) -> Path | None:
    """The page that the run wrote: its own, or the page of the run that it belongs to. Without a page the directory; None if
    nothing is kept."""
    if config.run.trial:
        return None
    own = STAGES[str(config.stage)].reported
    page = (directory if own else Path(getattr(config, str(config.stage)).run)) / "report.html"
    return page if page.exists() else directory


def _print_outcome(code: int, log: Path | None, page: Path | None, summary: dict[str, Any], out: TextIO) -> None:
    """Print the last lines for a person. `log`: the log of the process that ended the run, if it is known."""
    if code == FAULT and log is not None and log.is_file():
        print(*_lines(log)[-TAIL:], sep="\n", file=sys.stderr)
        print(f"the complete log: {log}", file=sys.stderr)
    if "diagnosis" in summary:
        print(f"diagnosis: {printable(summary['diagnosis'])}", file=sys.stderr, flush=True)
    if code != DONE:
        print(f"{summary.get('status')}: {summary.get('reason')}", file=sys.stderr, flush=True)
        return
    for metric, rate in summary["after"].items():
        before = summary["before"].get(metric)
        value, low, high = (scale_of(metric).shown(rate[key]) for key in ("value", "low", "high"))
        rose = f"{scale_of(metric).shown(before['value'])} -> " if before else ""
        print(f"{metric}: {rose}{value} [{low}, {high}], {counted(rate['n'])}", file=out)
    if page is not None:
        print(f"completed: {page}", file=out, flush=True)
