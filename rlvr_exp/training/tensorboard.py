"""The option tracking=tensorboard: events written by torch.utils.tensorboard. It is not part of `records`, since that
folder imports no torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlvr_exp.config import run as options
from rlvr_exp.records.tracking import COLUMNS, configuration, paths, require_package


@dataclass
class TensorBoard(options.TensorBoard):
    """Scalars and texts in `tensorboard/`; a resumed run hides the rows past the step it resumes from.

    Raises:
        InputError: the package is not installed.
    """

    def __post_init__(self) -> None:
        require_package("tensorboard")

    def start(self, directory: Path, resume_step: int | None) -> None:
        from torch.utils.tensorboard import SummaryWriter

        step = max(0, resume_step or 0)
        hidden = None if resume_step is None else resume_step + 1
        self._writer = SummaryWriter(str(directory / "tensorboard"), purge_step=hidden)
        self._text(step, "config", f"```yaml\n{configuration(directory)}```")
        self._text(step, "paths", _markdown(("what", "path"), [*paths(directory).items()]))

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)

    def table(self, step: int, rows: Sequence[Sequence[object]]) -> None:
        self._text(step, "samples", _markdown(COLUMNS, rows))

    def _text(self, step: int, tag: str, text: str) -> None:
        # The writer encodes strictly, and a completion may hold half of a surrogate pair.
        self._writer.add_text(tag, text.encode("utf-8", "replace").decode(), step)

    def close(self) -> None:
        self._writer.close()


def _markdown(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table whose cells may hold any text."""
    lines = [[_cell(value) for value in row] for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: object) -> str:
    text = str(value).replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;")
    return text.replace("\r", "").replace("\n", "<br>")
