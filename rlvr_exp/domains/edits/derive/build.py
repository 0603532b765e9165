"""Rows with actions of one to three rules: read, derived, proved and written, a line and a batch at a time.

Memory does not grow with the rows. The files are complete under their names; what a kill leaves is removed by the next run.
The verifier proves proposals in batches: ast-grep's own result, in the sandbox, decides which actions stay.
"""

import csv
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self

from rlvr_exp import __version__
from rlvr_exp.config.schema import Config
from rlvr_exp.config.verifier import Cache, Sandbox
from rlvr_exp.core.errors import InputError, InputProblem, RlvrError
from rlvr_exp.core.files import write_text
from rlvr_exp.core.hashing import checksum
from rlvr_exp.core.statistics import wilson
from rlvr_exp.domains.edits.action import DONE, Action, parse_action
from rlvr_exp.domains.edits.derive.readers import CatalogueReader, Place, Proposal, Reader, RowReader, TrajectoryReader
from rlvr_exp.domains.edits.ingest.build import STATS
from rlvr_exp.domains.edits.ingest.index import DROPPED, check_output, table
from rlvr_exp.domains.edits.ingest.lines import name_below
from rlvr_exp.domains.edits.ingest.normalize import INCOMPLETE, Dropped
from rlvr_exp.domains.edits.options import EditActions, Trajectories
from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.domains.edits.rows import DatasetMetadata, EditRow
from rlvr_exp.domains.edits.verifier import AstGrep
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request, Verdict

READERS = {one.name: one for one in (RowReader, CatalogueReader)}
PARTIAL = ".partial"
"""Folder of the files that are not complete."""
BATCH = 64
"""Proposals that are proved together."""


OTHER_TEXT = "ast-grep makes another text"
REFUSED = "ast-grep refuses the action"


class Proof:
    """Both comparisons of the verifier.

    Raises:
        InputError: ast_grep_py or the ast-grep program is missing.
    """

    def __init__(self, sandbox: Sandbox, cache: Cache | None):
        self._open = ExitStack()
        self._by_text = self._open.enter_context(AstGrep(sandbox, cache))
        self._by_tree = self._open.enter_context(AstGrep(sandbox, cache, compare="syntax"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def versions(self) -> Mapping[str, str]:
        """Those of the package and of the program."""
        return self._by_text.tool()

    def edited_text(self, before: str, action: Action) -> str:
        """What ast-grep makes of a text, in the sandbox. Raises ActionFault."""
        return self._by_text.edited_text(before, action)

    def prove(self, proposals: Sequence[Proposal]) -> list[dict[str, Any] | Dropped]:
        """The row of each proposal, or why it is none. Raises RlvrError where one has no verdict."""
        verifiers = [self._by_tree if proposal.by_tree else self._by_text for proposal in proposals]
        verdicts = [one.submit(_request(proposal)) for one, proposal in zip(verifiers, proposals, strict=True)]
        return [self._row(proposal, verdict.result()) for proposal, verdict in zip(proposals, verdicts, strict=True)]

    def _row(self, proposal: Proposal, verdict: Verdict) -> dict[str, Any] | Dropped:
        if verdict.outcome == "no_verdict":
            raise RlvrError(f"{proposal.edit.id}: no verdict: {verdict.log}; run the command again")
        if verdict.outcome != "passed":
            reason = OTHER_TEXT if verdict.bucket == "wrong_answer" else REFUSED
            return Dropped(reason, f"{verdict.bucket or verdict.outcome}: {verdict.log}")
        row = dict(proposal.values)
        if proposal.by_tree:
            action = parse_action(row["action"], proposal.edit.language)
            row["after"] = self.edited_text(proposal.edit.before, action)
        try:
            json.dumps(row, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as fault:
            return Dropped(INCOMPLETE, f"no JSON: {fault}")
        return row


def _request(proposal: Proposal) -> Request:
    edit = proposal.edit
    problem = AstGrepProblem(edit.language, edit.before, edit.after or "")
    return Request(problem, Candidate(proposal.values["action"]))


UNPLACED = "unplaced"
"""Rows whose split nothing names: data=edits draws it."""


@dataclass
class Tally:
    lines: int = 0
    edits: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Edits with a text after, by source and language."""
    kept: Counter[tuple[str, str]] = field(default_factory=Counter)
    splits: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Rows by split and source."""
    licences: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    rules: Counter[int] = field(default_factory=Counter)
    """Actions by their number of rules."""
    characters: int = 0
    """Of all actions."""

    def read(self, edit: EditRow | None) -> None:
        self.lines += 1
        if edit is not None and edit.after is not None:
            self.edits[edit.source, edit.language] += 1

    def keep(self, edit: EditRow, split: str, row: Mapping[str, Any]) -> None:
        self.kept[edit.source, edit.language] += 1
        self.splits[split or UNPLACED, edit.source] += 1
        self.licences[edit.licence] += 1
        self.rules[len(parse_action(row["action"], edit.language).rules)] += 1
        self.characters += len(row["action"])

    def counts(self) -> dict[str, Any]:
        """All counts, in values of JSON."""
        return {
            "lines": self.lines,
            "records": self.kept.total(),
            "splits": [
                {"split": split, "source": source, "records": count}
                for (split, source), count in sorted(self.splits.items())
            ],
            "edits": {"/".join(key): count for key, count in sorted(self.edits.items())},
            "dropped": dict(self.dropped.most_common()),
            "rules": {str(count): rows for count, rows in sorted(self.rules.items())},
        }

    def languages(self) -> dict[str, int]:
        return dict(_by(self.kept, 1).most_common())

    def page(self) -> str:
        """The page, in Markdown."""
        kept = self.kept.total()
        rules = ((count or f"0, `{DONE}`", rows, _share(rows, kept)) for count, rows in sorted(self.rules.items()))
        head = f"{self.lines} lines read, {kept} records kept. ast-grep makes the text after of every record by its action."
        return "\n".join(
            [
                "# Edits with ast-grep actions",
                "",
                head,
                f"An action has {self.characters / max(kept, 1):.0f} characters on average. Shares are with 95% intervals.",
                "",
                *_rates("source", _by(self.edits, 0), _by(self.kept, 0)),
                "",
                *_rates("language", _by(self.edits, 1), _by(self.kept, 1)),
                "",
                *table(("rules of an action", "records", "share"), rules),
                "",
                *table(("split", "source", "records"), ((*key, rows) for key, rows in sorted(self.splits.items()))),
                "",
                *table(("dropped because of", "lines"), self.dropped.most_common()),
            ]
        )


def _by(counts: Mapping[tuple[str, str], int], place: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for key, count in counts.items():
        found[key[place]] += count
    return found


def _rates(name: str, edits: Counter[str], kept: Counter[str]) -> Iterable[str]:
    rows = [(value, count, kept[value], _share(kept[value], count)) for value, count in edits.most_common()]
    rows.append(("all", edits.total(), kept.total(), _share(kept.total(), edits.total())))
    return table((name, "edits with a text after", "records", "share"), rows)


def _share(count: int, of: int) -> str:
    if not of:
        return ""
    found = wilson(count, of)
    return f"{count / of:.1%} [{found.low:.1%}, {found.high:.1%}]"


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write the splits of prepare=edit_actions, `metadata.json`, `stats.md` and `dropped.csv`. Raises InputError as `make_rows`."""
    return make_rows(config, context, READERS[config.prepare.set](config.prepare))


def make_trajectories(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write the same files of prepare=trajectories. Raises InputError as `make_rows`."""
    return make_rows(config, context, TrajectoryReader(config.prepare))


def make_rows(config: Config, context: RunContext, reader: Reader) -> tuple[str, dict[str, int]]:
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
    _metadata(reader.name, options.deciding(), root, files, output, tally, versions).write(output)
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
        self._dropped.writerow((name_below(place.file, self.root), place.number, name, fault.reason, detail))

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
        sources={name: {name_below(file, root): checksum(file) for file in files}},
        licences=dict(tally.licences.most_common()),
        languages=tally.languages(),
        counts=tally.counts(),
        options=deciding,
        versions=versions,
        files={file.relative_to(output).as_posix(): checksum(file) for file in sorted(output.rglob("*.jsonl"))},
    )


def _nothing_kept(output: Path, tally: Tally) -> InputError:
    shutil.rmtree(output / PARTIAL)
    reasons = ", ".join(f"{reason}: {count}" for reason, count in tally.dropped.items())
    remedy = "look at prepare.set and at the rows"
    return InputError(InputProblem("prepare.path", "no record is kept", reasons or "no lines", remedy=remedy))


def _report(context: RunContext, done: int, total: int) -> None:
    context.progress(kind="phase", name="derive (kB)", done=min(done, total) // 1000, total=max(1, total // 1000))
