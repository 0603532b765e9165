"""The standard streams of a run: messages, rows of a stage that answers in rows, tasks from standard input, and progress.

On a terminal, messages and rows are both standard output, and the answers are readable text. If standard output is a pipe or a
file, it contains JSON lines only, and messages go to standard error. Progress is a bar on a terminal and plain lines elsewhere,
without control characters: the beginning and the end of each kind of work, and one line a minute with the time left.
"""

import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TextIO

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
    """Writes to a person who may go away (`| head`, a closed terminal). The output is lost, and the run continues."""
    try:
        yield
    except OSError:
        for stream in streams:
            _silence(stream)


def _silence(stream: TextIO) -> None:
    """Make later writes to the stream succeed."""
    with suppress(OSError, ValueError):  # No file, or a closed one.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class Rows:
    """Rows as JSON lines. Each row has left this process when `write` returns.

    A reader that closes the pipe (`| head`) ends the run like SIGTERM. Earlier answers are kept.
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
    """Copy standard input into the run directory if the configuration reads tasks from it.

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


EVERY_SECONDS = 60.0
"""Seconds between two plain lines."""
SHOWN_AFTER, TICK = 1.0, 0.5
"""Seconds after which work of unknown length is shown, and seconds between two ticks."""
KINDS = ("step", "phase", "wait", "note", "alarm", "row", "reason")
FIGURES = (
    *(("loss", "{:.4f}"), ("held-out loss", "{:.4f}"), ("reward", "{:.3f}"), ("success", "{:.1%}")),
    *(("held-out success", "{:.1%}"), ("entropy", "{:.3f}"), ("KL(ref)", "{:.1e}"), ("KL(old)", "{:.1e}")),
)
"""Figures of a step or a phase, in order. KL(ref) is to the reference, KL(old) to the weights that sampled."""


class View(Protocol):
    """Draws. `text` is one line without control characters."""

    def work(self, name: str, done: int, total: int, text: str, unit: str = "", worked: float | None = None) -> None:
        """Show the progress of the named work.

        Args:
            unit: the name of the counted items.
            worked: the number done plus the shares of those in progress; None: the same as `done`.
        """

    def wait(self, name: str) -> None:
        """Work of unknown length has begun. It ends with the next call."""

    def end_wait(self) -> None:
        """The wait has ended."""

    def tick(self) -> None:
        """Time has passed."""

    def note(self, text: str) -> None: ...

    def close(self) -> None: ...


class Progress:
    """Progress of a run.

    Args:
        total: update steps that the run plans; 0 for a stage without any.
        stage: its name.
        tty: draw a bar; else plain lines.
        out: where to draw, standard output by default.
        rows: writes answers as JSON; None: they are printed as text.
    """

    def __init__(self, total: int, stage: str, tty: bool, out: TextIO | None = None, rows: Rows | None = None):
        self._out = out = out or sys.stdout
        self._total, self._stage, self._rows = total, stage, rows
        self._view: View = _bar(out) if tty else Plain(out, time.monotonic)
        self._lock, self._ended = threading.RLock(), threading.Event()
        self._clock: threading.Thread | None = None
        self.reason = ""
        """Why the run ended early, as reported by its process."""

    def event(self, event: Mapping[str, Any]) -> None:
        """Draw an event: a step, progress within a phase, or a note.

        {"kind": "step", "step": 3, "total": 150, "reward": 0.31, "success": 0.25,
         "phases": {"generate": 0.8, "verify": 0.1, "update": 1.2}}, all but the step optional (see `FIGURES`), those of a
         role in "roles": {"writer": {"reward": 0.2}};
        {"kind": "phase", "name": "evaluate before", "done": 128, "total": 400}, with the same figures, and optionally the
        "unit" of both numbers, "completions" that have ended where something else is counted, "tokens_per_second", and "worked",
        the number done plus the shares of those in progress, which gives a better estimate of the time left;
        {"kind": "wait", "name": "load the policy"}, work of unknown length; {"kind": "note", "text": "..."};
        {"kind": "alarm", "text": "..."}, which goes to standard error; {"kind": "row", "row": {...}, "text": "..."}, an
        answer and its text for a person. {"kind": "reason", "text": "..."} is stored and not drawn.

        Raises:
            ValueError: another kind.
        """
        with self._lock, unread(self._out):
            self._draw(event)
        if event["kind"] == "wait" and self._clock is None:
            self._clock = threading.Thread(target=self._ticking, daemon=True)
            self._clock.start()

    def _ticking(self) -> None:
        while not self._ended.wait(TICK):
            with self._lock, unread(self._out):
                self._view.tick()

    def _draw(self, event: Mapping[str, Any]) -> None:
        kind = event.get("kind")
        if kind == "step":
            total = int(event.get("total", self._total))
            self._view.work(f"{self._stage} step", int(event["step"]), total, figures(event))
        elif kind == "phase":
            done, total, unit = int(event["done"]), int(event["total"]), printable(event.get("unit", ""))
            worked = float(event.get("worked", done))
            self._view.work(printable(event["name"]), done, total, figures(event), unit, worked)
        elif kind == "wait":
            self._view.wait(printable(event["name"]))
        elif kind == "note":
            for line in str(event["text"]).splitlines():
                self._view.note(printable(line))
        elif kind == "row" and self._rows is not None:
            self._rows.write(event["row"])
        elif kind == "row":
            for line in str(event["text"]).splitlines():
                self._view.note(printable(line))
        elif kind == "reason":
            self.reason = str(event["text"])  # The last event of a run: what follows is its end.
            self._view.end_wait()
        elif kind == "alarm":
            with unread(sys.stderr):
                for line in str(event["text"]).splitlines():
                    print(printable(line), file=sys.stderr, flush=True)
        else:
            raise ValueError(f"Progress.event: got kind {kind!r}, allowed {', '.join(KINDS)}")

    def close(self) -> None:
        """Stop drawing; the terminal is left as it was."""
        self._ended.set()
        with self._lock, unread(self._out):
            self._view.close()


class Plain:
    """Lines for logs and pipes."""

    def __init__(self, out: TextIO, clock: Callable[[], float]):
        self._out, self._clock, self._start = out, clock, clock()
        self._time = self._start
        """Time of the last line, or of the beginning of a wait."""
        self._waiting, self._shown = "", False
        self._begun: dict[str, tuple[float, float]] = {}
        """Start time of each kind of work, and the work done at that time."""
        self._worked: dict[str, float] = {}
        """The work done of each kind at its last event."""
        self._lines: dict[str, float] = {}
        """Time of the last line of each kind of work. Nested work must not take the lines of the outer work."""
        self._ended: dict[str, float] = {}
        """Time at which the end of each kind of work was last shown."""

    def wait(self, name: str) -> None:
        self._waiting, self._shown, self._time = name, False, self._clock()

    def end_wait(self) -> None:
        self._waiting = ""

    def tick(self) -> None:
        now = self._clock()
        if self._waiting and now - self._time >= (EVERY_SECONDS if self._shown else SHOWN_AFTER):
            self._shown, self._time = True, now
            self.note(f"{self._waiting} ...  [{_clock_text(now - self._start)}]")

    def work(self, name: str, done: int, total: int, text: str, unit: str = "", worked: float | None = None) -> None:
        now, head = self._clock(), f"{name} {done}/{total} {unit}".rstrip()
        worked = done if worked is None else worked
        self._waiting, self._shown = "" if done else head, True
        first = name not in self._begun
        if first or worked < self._worked[name]:  # It may begin anew, such as a measurement every few steps.
            self._begun[name], self._lines[name] = (now, worked), now
        self._worked[name] = worked
        ended = 0 < total <= done and now - self._ended.get(name, -EVERY_SECONDS) >= EVERY_SECONDS
        if first or ended or now - self._lines[name] >= EVERY_SECONDS:
            self._time = self._lines[name] = now
            if ended:
                self._ended[name] = now
            self.note("  ".join(filter(None, (head, text, self._times(name, worked, total)))))

    def _times(self, name: str, worked: float, total: int) -> str:
        """The time since the start, and an estimate of the time that the work still takes."""
        now = self._clock()
        began, before = self._begun[name]
        left = ""
        if before < worked < total:
            left = f", {_clock_text((now - began) / (worked - before) * (total - worked))} left"
        return f"[{_clock_text(now - self._start)}{left}]"

    def note(self, text: str) -> None:
        if self._waiting:
            self._time = self._clock()  # A note is a sign of life too.
        print(text, file=self._out, flush=True)

    def close(self) -> None:
        pass


def _bar(out: TextIO) -> View:
    from rlvr_exp.launch.progress_bar import Bar  # rich only where it draws: the light path stays light

    return Bar(out)


def figures(event: Mapping[str, Any]) -> str:
    """The numbers of an event in words: `reward 0.310  success 25.0%  generate 0.8s  verify 0.1s`."""
    words = [f"{event['completions']:,} completions"] if event.get("completions") else []
    words += [f"{event['tokens_per_second']:,.0f} tokens/s"] if event.get("tokens_per_second") else []
    words += [f"{name} {style.format(event[name])}" for name, style in FIGURES if event.get(name) is not None]
    words += [f"{role}: {text}" for role, own in event.get("roles", {}).items() if (text := figures(own))]
    words += [f"{printable(name)} {seconds:.1f}s" for name, seconds in event.get("phases", {}).items()]
    return "  ".join(words)


def printable(text: str) -> str:
    """The text without control characters: a note may quote the output of a candidate."""
    return "".join(character if character.isprintable() else " " for character in str(text))


def _clock_text(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"
