"""Rows with actions of one to three rules: read, derived, proved and written, a line and a batch at a time.

Memory does not grow with the rows. The files are complete under their names; what a kill leaves is removed by the next run.
"""

import csv
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Protocol

from rlvr_exp import __version__
from rlvr_exp.config.prepare import EditActions, Trajectories
from rlvr_exp.config.schema import Config
from rlvr_exp.core.checksums import checksum
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import write_text
from rlvr_exp.corpora.edit_actions import catalogue, reading
from rlvr_exp.corpora.edit_actions.proof import Proof
from rlvr_exp.corpora.edit_actions.reading import Place, Proposal
from rlvr_exp.corpora.edit_actions.tally import UNPLACED, Tally
from rlvr_exp.corpora.edit_actions.trial import Program
from rlvr_exp.corpora.edit_sets.build import STATS
from rlvr_exp.corpora.edit_sets.draft import Dropped
from rlvr_exp.corpora.edit_sets.writing import DROPPED, check_output
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.edits.rows import DatasetMetadata, EditRow

READERS: dict[str, ModuleType] = {"rows": reading, catalogue.NAME: catalogue}
PARTIAL = ".partial"
"""Folder of the files that are not complete."""
BATCH = 64
"""Proposals that are proved together."""


class RowReader(Protocol):
    """What proposes rows with actions."""

    @property
    def NAME(self) -> str:
        """Of the set."""

    def files(self, root: Path) -> list[Path]: ...

    def read(self, file: Path, program: Program) -> Iterator[tuple[Place, EditRow | None, Proposal | Dropped]]: ...


@dataclass(frozen=True)
class SetReader:
    """A reader of a set with its options."""

    options: EditActions

    @property
    def NAME(self) -> str:
        return self.options.set

    def files(self, root: Path) -> list[Path]:
        return READERS[self.options.set].files(root)

    def read(self, file: Path, program: Program) -> Iterator[tuple[Place, EditRow | None, Proposal | Dropped]]:
        return READERS[self.options.set].read(file, self.options, program)


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write the splits, `metadata.json`, `stats.md` and `dropped.csv`. Raises InputError as `make_rows`."""
    return make_rows(config, context, SetReader(config.prepare))


def make_rows(config: Config, context: RunContext, reader: RowReader) -> tuple[str, dict[str, int]]:
    """Prove and write what a reader proposes.

    Raises:
        InputError: the path has no rows; the output is inside it or holds files; no row is kept; ast-grep is missing.
    """
    options: EditActions | Trajectories = config.prepare
    root, output = Path(options.path), Path(options.output or context.directory / "rows")
    if not root.exists():
        raise InputError(InputProblem("prepare.path", "not there", options.path, "an existing folder or file"))
    check_output(output, [root], (PARTIAL,))
    files, tally = reader.files(root), Tally()
    shutil.rmtree(output / PARTIAL, ignore_errors=True)
    with Proof(config.sandbox, config.cache) as proof, _Writer(output, root, proof, tally) as writer:
        total, done = sum(file.stat().st_size for file in files), 0
        for file in files:
            for place, edit, found in reader.read(file, proof.edited_text):
                tally.read(edit)
                writer.take(place, edit.id if edit else "", found)
                _report(context, done + place.position, total)
            done += file.stat().st_size
        writer.flush()
        versions = {"rlvr_exp": __version__, **proof.versions}
    if not tally.kept:
        raise _nothing_kept(output, tally)
    writer.publish()
    write_text(output / STATS, tally.page() + "\n")
    _metadata(reader.NAME, options.deciding(), root, files, output, tally, versions).write(output)
    counts = tally.counts()
    metrics = {"lines": counts["lines"], "records": counts["records"], "dropped": tally.dropped.total()}
    return f"written: {output}\n\n{tally.page()}", metrics


@dataclass
class _Writer:
    """Proves what it takes, and writes it, or why it is dropped, in the order of the lines."""

    output: Path
    root: Path
    proof: Proof
    tally: Tally
    _waiting: list[tuple[Place, str, Proposal | Dropped]] = field(default_factory=list)
    _files: dict[str, IO[str]] = field(default_factory=dict)
    _open: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> "_Writer":
        self._dropped = csv.writer(self._file(DROPPED), lineterminator="\n")
        self._dropped.writerow(("file", "line", "id", "reason", "detail"))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def take(self, place: Place, name: str, found: Proposal | Dropped) -> None:
        self._waiting.append((place, name, found))
        if len(self._waiting) >= BATCH:
            self.flush()

    def flush(self) -> None:
        proposals = [found for *_, found in self._waiting if isinstance(found, Proposal)]
        proved = iter(self.proof.prove(proposals))
        for place, name, found in self._waiting:
            outcome = next(proved) if isinstance(found, Proposal) else found
            if isinstance(found, Proposal) and not isinstance(outcome, Dropped):
                self._keep(place, found, outcome)
            elif isinstance(outcome, Dropped):
                self._drop(place, name, outcome)
        self._waiting = []

    def publish(self) -> None:
        """Give the files their names."""
        for name in self._files:
            (self.output / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(self.output / PARTIAL / name, self.output / name)
        shutil.rmtree(self.output / PARTIAL)

    def _keep(self, place: Place, proposal: Proposal, row: Mapping[str, Any]) -> None:
        name = place.file.name.split(".")[0]
        self._file(f"{proposal.split or UNPLACED}/{name}.jsonl").write(json.dumps(row, allow_nan=False) + "\n")
        self.tally.keep(proposal.edit, proposal.split, row)

    def _drop(self, place: Place, name: str, fault: Dropped) -> None:
        self.tally.dropped[fault.reason] += 1
        detail = fault.detail.encode("utf-8", "backslashreplace").decode()[:300]
        self._dropped.writerow((_name(place.file, self.root), place.number, name, fault.reason, detail))

    def _file(self, name: str) -> IO[str]:
        if name not in self._files:
            path = self.output / PARTIAL / name
            path.parent.mkdir(parents=True, exist_ok=True)
            self._files[name] = self._open.enter_context(open(path, "w", encoding="utf-8", newline=""))
        return self._files[name]


def _metadata(
    name: str,
    deciding: dict[str, object],
    root: Path,
    files: list[Path],
    output: Path,
    tally: Tally,
    versions: dict[str, str],
) -> DatasetMetadata:
    return DatasetMetadata(
        sources={name: {_name(file, root): checksum(file) for file in files}},
        licences=dict(tally.licences.most_common()),
        languages=tally.languages(),
        counts=tally.counts(),
        options=deciding,
        versions=versions,
        files={file.relative_to(output).as_posix(): checksum(file) for file in sorted(output.rglob("*.jsonl"))},
    )


def _name(file: Path, root: Path) -> str:
    return file.name if file == root else file.relative_to(root).as_posix()


def _nothing_kept(output: Path, tally: Tally) -> InputError:
    shutil.rmtree(output / PARTIAL)
    reasons = ", ".join(f"{reason}: {count}" for reason, count in tally.dropped.items())
    remedy = "look at prepare.set and at the rows"
    return InputError(InputProblem("prepare.path", "no record is kept", reasons or "no lines", remedy=remedy))


def _report(context: RunContext, done: int, total: int) -> None:
    context.progress(kind="phase", name="derive (kB)", done=min(done, total) // 1000, total=max(1, total // 1000))
