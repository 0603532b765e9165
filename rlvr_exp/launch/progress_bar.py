"""The progress bar on a terminal, drawn by rich: a line for each kind of work, the latest figures below, notes
above."""

from collections.abc import Iterable
from typing import TextIO

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress
from rich.text import Text


class _WithFigures(RichProgress):
    """Figures get their own line: next to the bar they would push it off an 80-column terminal."""

    figures = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        if self.figures:
            yield Text(self.figures, style="cyan", no_wrap=True, overflow="ellipsis")


class _Done(MofNCompleteColumn):
    """The number done, without the shares of those in progress, which the bar and the time left include."""

    def render(self, task: Task) -> Text:
        total = "?" if task.total is None else f"{task.total:.0f}"
        return Text(f"{task.fields.get('done', task.completed):.0f}/{total}", style="progress.download")


class Bar:
    """See `View`. A rich task for each name of work."""

    def __init__(self, out: TextIO):
        self._console = Console(file=out, force_terminal=True, highlight=False)
        self._progress = _WithFigures(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            _Done(),
            TimeElapsedColumn(),
            TimeRemainingColumn(compact=True),
            console=self._console,
            refresh_per_second=4,
        )
        self._tasks: dict[str, TaskID] = {}
        self._waiting: TaskID | None = None
        self._progress.start()

    def wait(self, name: str) -> None:
        self.end_wait()
        self._waiting = self._progress.add_task(name, total=None)

    def tick(self) -> None:
        """The bar moves by itself."""

    def work(self, name: str, done: int, total: int, text: str, unit: str = "", worked: float | None = None) -> None:
        self.end_wait()
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(f"{name}, {unit}" if unit else name, total=total or None)
        self._progress.figures = text
        self._progress.update(
            self._tasks[name], completed=done if worked is None else worked, total=total or None, done=done
        )

    def end_wait(self) -> None:
        if self._waiting is not None:
            self._progress.remove_task(self._waiting)
            self._waiting = None

    def note(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)

    def close(self) -> None:
        self._progress.stop()
