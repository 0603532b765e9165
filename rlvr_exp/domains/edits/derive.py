"""`prepare=edit_actions` and `prepare=trajectories`: rows with ast-grep actions, read, derived, proved and written.

`RowReader` reads rows of `data=edits`, in JSON lines and tables. A row keeps its own action, which is proved as well.
`CatalogueReader` reads ast-grep's catalogue: its rules and commands are the actions, and its pages give the instructions
(`extracted.jsonl` has an entry a line, `catalog/LANGUAGE/ID.md` the title and the description). `TrajectoryReader` reads
trajectories of +stage=collect: a step has the text that a teacher saw, its action, and the text that followed.

Lines are read one at a time, and proposals are proved in batches: ast-grep's own result, in the sandbox, decides which actions
stay. Memory does not grow with the rows. The files are complete under their names; the next run removes the rest of a killed one.
"""

import csv
import json
import os
import re
import shutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, ClassVar

from rlvr_exp import __version__
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem, RlvrError
from rlvr_exp.core.files import write_text
from rlvr_exp.core.hashing import checksum, content_hash
from rlvr_exp.core.seeds import uniform
from rlvr_exp.core.statistics import wilson
from rlvr_exp.domains.edits.action import DONE, ended_as, is_done, parse_action
from rlvr_exp.domains.edits.ingest import DROPPED, STATS, check_output, table
from rlvr_exp.domains.edits.normalize import (
    INCOMPLETE,
    NO_INSTRUCTION,
    NO_TEXT,
    UNCHANGED,
    UNKNOWN,
    UNREADABLE,
    Dropped,
    name_below,
    nothing_there,
    read_lines,
    row_files,
)
from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.domains.edits.rows import DatasetMetadata, EditRow, edit_of
from rlvr_exp.domains.edits.rules import Program, Search
from rlvr_exp.domains.edits.schema import ActionFault, language_of
from rlvr_exp.domains.edits.verifier import AstGrep
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.rows import Row, split_named_for, split_of
from rlvr_exp.verifiers.base import Request, Verdict

NO_AFTER, NO_ACTION = "no text after", "its rules are no action"
OTHER_TEXT, REFUSED = "ast-grep makes another text", "ast-grep refuses the action"
CATALOGUE, ENTRIES = "ast_grep_catalog", "extracted.jsonl"
NO_TEXTS, NO_RULE = "it documents no text before and after", "it has neither a rule nor a command"
TRAJECTORIES = "trajectories"
SCHEMA = 2
"""Version of the rows of trajectories."""
NOT_RIGHT, NOTHING_FOLLOWS = "its trajectory does not end right", "no text came of it"
TWICE, DONE_STEP = "the same step as another", "it says `done`"
_TITLE = re.compile(r"^## (.*?)(?:<Badge.*)?$", re.MULTILINE)
_DESCRIPTION = re.compile(r"^### Description\n(.*?)(?=^<!--|^### )", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
PARTIAL = ".partial"
"""Folder of the files that are not complete."""
BATCH = 64
"""Proposals that are proved together."""
UNPLACED = "unplaced"
"""Rows whose split nothing names: data=edits draws it."""


@dataclass(frozen=True)
class SourceLine:
    """A line of a file."""

    file: Path
    number: int
    position: int
    """The start of the next line."""


@dataclass(frozen=True)
class Proposal:
    """A row with the action that is to be proved."""

    values: Mapping[str, Any]
    """The row as it is read, with its action."""
    edit: EditRow
    split: str
    by_tree: bool = False
    """Equal syntax trees count as equal texts; the text after becomes the one that ast-grep makes."""


class Reader(ABC):
    """Proposes rows with actions, or drops them with the reason.

    Args:
        options: of `prepare`.
        program: applies an action to a text.
    """

    name: ClassVar[str]

    def __init__(self, options: Any, program: Program):
        self.options, self.program = options, program

    def files(self, root: Path) -> list[Path]:
        """The files to read. Raises InputError if there are none."""
        return row_files(root)

    def rows(self, line: Row, file: Path) -> list[Row]:
        """The rows of a line. Raises Dropped, or InputError for a missing key."""
        return [line]

    def edit(self, row: Row) -> EditRow:
        """The edit of a row as data=edits reads it: the text after ends as the text before. Raises Dropped."""
        try:
            edit = edit_of(row)
            language_of(edit.language)
            "".join((edit.instruction, edit.before, edit.after or "")).encode()
        except InputError as fault:
            raise Dropped(INCOMPLETE, str(fault)) from fault
        except ActionFault as fault:
            raise Dropped(UNKNOWN, str(fault)) from fault
        except UnicodeEncodeError as fault:
            raise Dropped(NO_TEXT) from fault
        return edit if edit.after is None else replace(edit, after=ended_as(edit.after, edit.before))

    @abstractmethod
    def propose(self, line: Row, row: Row, edit: EditRow) -> Proposal:
        """Raises Dropped."""

    def read(self, file: Path) -> Iterator[tuple[SourceLine, EditRow | None, Proposal | Dropped]]:
        """Every row of every line, its edit if it has one, and the proposal or the reason why there is none."""
        for line in read_lines(file):
            place = SourceLine(file, line.number, line.position)
            given = Row(line.values, f"{file.name}, line {line.number}", split_named_for(file))
            try:
                if line.fault:
                    raise Dropped(UNREADABLE, line.fault)
                rows = self.rows(given, file)
            except (InputError, Dropped) as fault:
                yield place, None, fault if isinstance(fault, Dropped) else Dropped(INCOMPLETE, str(fault))
                continue
            for row in rows:
                edit = None
                try:
                    edit = self.edit(row)
                    found: Proposal | Dropped = self.propose(given, row, edit)
                except Dropped as fault:
                    found = fault
                yield place, edit, found


class RowReader(Reader):
    name = "rows"

    def propose(self, line: Row, row: Row, edit: EditRow) -> Proposal:
        try:
            split = split_of(row)
        except InputError as fault:  # The split has an unknown name.
            raise Dropped(UNREADABLE, fault.problems[0].what) from fault
        if edit.after is None:
            raise Dropped(NO_AFTER)
        if edit.before == edit.after:
            raise Dropped(UNCHANGED)
        action = edit.action or self._derived(edit.before, edit.after, language_of(edit.language))
        return Proposal({**row.values, "after": edit.after, "action": action}, edit, split)

    def _derived(self, before: str, after: str, language: str) -> str:
        """The only rule, or the list of them, as JSON. Raises Dropped."""
        search = Search(self.options.max_characters, self.options.max_share, self.program)
        rules = search.rules(before, after, language)
        action = json.dumps(rules[0] if len(rules) == 1 else rules, ensure_ascii=False)
        try:
            parse_action(action, language)
        except ActionFault as fault:
            raise Dropped(NO_ACTION, str(fault)) from fault
        return action


class CatalogueReader(Reader):
    name = CATALOGUE

    def files(self, root: Path) -> list[Path]:
        if not (root / ENTRIES).is_file():
            raise nothing_there(root, ENTRIES)
        return [root / ENTRIES]

    def rows(self, line: Row, file: Path) -> list[Row]:
        """A row of data=edits, without its action."""
        before, after = (line.texts(key) if line.values.get(key) else () for key in ("diff_before", "diff_after"))
        if not before or not after:
            raise Dropped(NO_TEXTS)
        name = f"{line.text('language')}/{line.text('id')}"
        title, description = _prose(file.parent / "catalog" / f"{name}.md")
        try:  # The rule's own language, else the folder's.
            language = parse_action(line.text("rule", ""), line.text("language")).steps[0][0].language
        except (ActionFault, InputError):
            language = line.text("language")
        values = {
            "id": f"{CATALOGUE}/{name}",
            "source": CATALOGUE,
            "language": language,
            "instruction": f"{title}\n\n{description}".strip(),
            "lazy_instruction": title,
            "before": "\n".join(before),
            "after": "\n".join(after),
            "licence": "MIT",
            "metadata": {"check": line.text("check")},
        }
        return [Row(values, line.where)]

    def propose(self, line: Row, row: Row, edit: EditRow) -> Proposal:
        """With the rule, or the commands, one after the other."""
        try:
            rule = line.text("rule") if line.values.get("rule") else ""
            commands = () if rule else line.texts("commands")
        except InputError as fault:
            raise Dropped(INCOMPLETE, str(fault)) from fault
        if not rule and not commands:
            raise Dropped(NO_RULE)
        action = {"rule_yaml": rule} if rule else {"cli": commands[0] if len(commands) == 1 else commands}
        values = {**row.values, "action": json.dumps(action, ensure_ascii=False)}
        return Proposal(values, edit, "train", line.values["check"] == "fix-same-but-blanks")


def _prose(page: Path) -> tuple[str, str]:
    """Title and description. Raises Dropped if there is no title."""
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise Dropped(NO_INSTRUCTION, str(fault)) from fault
    title, description = _TITLE.search(text), _DESCRIPTION.search(text)
    if title is None:
        raise Dropped(NO_INSTRUCTION, f"no title in {page.name}")
    return title[1].strip(), _LINK.sub(r"\1", description[1]).strip() if description else ""


class TrajectoryReader(Reader):
    """Reads trajectories; each step is a row or is dropped. A step's split is the one of its task."""

    name = TRAJECTORIES

    def __init__(self, options: Any, program: Program):
        super().__init__(options, program)
        self._seen: set[str] = set()

    def rows(self, line: Row, file: Path) -> list[Row]:
        task, steps = line.text("task"), line.values.get("steps")
        if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
            raise Dropped(INCOMPLETE, "steps: no list of objects")
        if self.options.right_only and line.text("outcome") != "passed":
            raise Dropped(NOT_RIGHT, line.text("outcome"))
        split = "dev" if uniform(0, TRAJECTORIES, task) < self.options.dev_fraction else "train"
        kept = ("instruction", "language", "source", "family", "difficulty")
        shared = {name: line.values[name] for name in kept if name in line.values}
        found = []
        for number, step in enumerate(steps):
            texts = {name: step.get(name) for name in ("before", "after", "action")}
            texts |= {name: step[name] for name in ("state", "think", "state_update") if name in step}
            about = {"task": task, "step": number, "teacher": line.text("teacher"), "schema": SCHEMA}
            values = {"id": f"{line.text('id')}@{number}", **shared, **texts, "metadata": about}
            found.append(Row(values, line.where, split))
        return found

    def edit(self, row: Row) -> EditRow:
        given = row.values["action"]
        try:
            parse_action(given if isinstance(given, str) else "", row.text("language", "python"))
        except ActionFault as fault:
            raise Dropped(NO_ACTION, str(fault)) from fault
        return super().edit(row)

    def propose(self, line: Row, row: Row, edit: EditRow) -> Proposal:
        if edit.after is None:
            raise Dropped(NOTHING_FOLLOWS)
        if is_done(edit.action) and not self.options.keep_done:
            raise Dropped(DONE_STEP)
        if edit.before == edit.after and not is_done(edit.action):
            raise Dropped(UNCHANGED)
        key = content_hash([edit.instruction, edit.before, edit.action])
        if key in self._seen:
            raise Dropped(TWICE)
        self._seen.add(key)
        return Proposal(row.values, edit, row.split)


READERS: dict[str, type[Reader]] = {one.name: one for one in (RowReader, CatalogueReader)}


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
        lines = [
            "# Edits with ast-grep actions",
            "",
            f"{self.lines} lines read, {kept} records kept. ast-grep makes the text after of every record by its action.",
            f"An action has {self.characters / max(kept, 1):.0f} characters on average. Shares are with 95% intervals.",
        ]
        for place, name in enumerate(("source", "language")):
            lines += ["", *_rates(name, _by(self.edits, place), _by(self.kept, place))]
        splits = ((*key, rows) for key, rows in sorted(self.splits.items()))
        lines += ["", *table(("rules of an action", "records", "share"), rules)]
        lines += ["", *table(("split", "source", "records"), splits)]
        lines += ["", *table(("dropped because of", "lines"), self.dropped.most_common())]
        return "\n".join(lines)


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


class Writer:
    """Proves proposals and writes the rows, or the reasons why lines are dropped, in the order of the lines.

    Raises:
        InputError: ast_grep_py or the ast-grep program is missing.
    """

    def __init__(self, config: Config, output: Path, root: Path, tally: Tally):
        self.output, self.root, self.tally, self.open = output, root, tally, ExitStack()
        self.by_text = self.open.enter_context(AstGrep(config.sandbox, config.cache))
        self.by_tree = self.open.enter_context(AstGrep(config.sandbox, config.cache, compare="syntax"))
        self._waiting: list[tuple[SourceLine, str, Proposal | Dropped]] = []
        self._files: dict[str, IO[str]] = {}
        self._dropped = csv.writer(self._file(DROPPED), lineterminator="\n")
        self._dropped.writerow(("file", "line", "id", "reason", "detail"))

    def take(self, place: SourceLine, name: str, found: Proposal | Dropped) -> None:
        self._waiting.append((place, name, found))
        if len(self._waiting) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Prove and write all that waits. Raises RlvrError if a proposal has no verdict."""
        proposals = [found for *_, found in self._waiting if isinstance(found, Proposal)]
        verdicts = iter([(self.by_tree if one.by_tree else self.by_text).submit(_request(one)) for one in proposals])
        for place, name, found in self._waiting:
            try:
                if isinstance(found, Dropped):
                    raise found
                row = self._proved(found, next(verdicts).result())
            except Dropped as fault:
                self.tally.dropped[fault.reason] += 1
                detail = fault.detail.encode("utf-8", "backslashreplace").decode()[:300]
                self._dropped.writerow((name_below(place.file, self.root), place.number, name, fault.reason, detail))
                continue
            file = f"{found.split or UNPLACED}/{place.file.name.split('.')[0]}.jsonl"
            self._file(file).write(json.dumps(row, allow_nan=False) + "\n")
            self.tally.keep(found.edit, found.split, row)
        self._waiting = []

    def publish(self) -> None:
        """Give the files their names."""
        for name in self._files:
            (self.output / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(self.output / PARTIAL / name, self.output / name)
        shutil.rmtree(self.output / PARTIAL)

    def _proved(self, proposal: Proposal, verdict: Verdict) -> dict[str, Any]:
        """The row of a proposal. Raises Dropped."""
        if verdict.outcome == "no_verdict":
            raise RlvrError(f"{proposal.edit.id}: no verdict: {verdict.log}; run the command again")
        if verdict.outcome != "passed":
            reason = OTHER_TEXT if verdict.bucket == "wrong_answer" else REFUSED
            raise Dropped(reason, f"{verdict.bucket or verdict.outcome}: {verdict.log}")
        row = dict(proposal.values)
        if proposal.by_tree:
            action = parse_action(row["action"], proposal.edit.language)
            row["after"] = self.by_text.edited_text(proposal.edit.before, action)
        try:
            json.dumps(row, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as fault:
            raise Dropped(INCOMPLETE, f"no JSON: {fault}") from fault
        return row

    def _file(self, name: str) -> IO[str]:
        if name not in self._files:
            path = self.output / PARTIAL / name
            path.parent.mkdir(parents=True, exist_ok=True)
            self._files[name] = self.open.enter_context(open(path, "w", encoding="utf-8", newline=""))
        return self._files[name]


def _request(proposal: Proposal) -> Request:
    edit = proposal.edit
    return Request(AstGrepProblem(edit.language, edit.before, edit.after or ""), Candidate(proposal.values["action"]))


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write the splits of prepare=edit_actions, `metadata.json`, `stats.md` and `dropped.csv`. Raises InputError as `make_rows`."""
    return make_rows(config, context, READERS[config.prepare.set])


def make_trajectories(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write the same files of prepare=trajectories. Raises InputError as `make_rows`."""
    return make_rows(config, context, TrajectoryReader)


def make_rows(config: Config, context: RunContext, kind: type[Reader]) -> tuple[str, dict[str, int]]:
    """Prove and write the proposals of a reader.

    Raises:
        InputError: the path has no rows; the output is inside it or holds files; no row is kept; ast-grep is missing.
    """
    options, tally = config.prepare, Tally()
    root, output = Path(options.path), Path(options.output or context.directory / "rows")
    if not root.exists():
        raise InputError(InputProblem("prepare.path", "not there", options.path, "an existing folder or file"))
    check_output(output, [root], (PARTIAL,))
    reader = kind(options, lambda before, action: writer.by_text.edited_text(before, action))
    files = reader.files(root)
    shutil.rmtree(output / PARTIAL, ignore_errors=True)
    writer = Writer(config, output, root, tally)
    with writer.open:
        total, done = sum(file.stat().st_size for file in files), 0
        for file in files:
            for place, edit, found in reader.read(file):
                tally.read(edit)
                writer.take(place, edit.id if edit else "", found)
                kilobytes = min(done + place.position, total) // 1000
                context.progress(kind="phase", name="derive (kB)", done=kilobytes, total=max(1, total // 1000))
            done += file.stat().st_size
        writer.flush()
    if not tally.kept:
        shutil.rmtree(output / PARTIAL)
        reasons = ", ".join(f"{reason}: {count}" for reason, count in tally.dropped.items())
        remedy = "look at prepare.set and at the rows"
        raise InputError(InputProblem("prepare.path", "no record is kept", reasons or "no lines", remedy=remedy))
    writer.publish()
    counts, page = tally.counts(), tally.page()
    write_text(output / STATS, page + "\n")
    DatasetMetadata(
        sources={kind.name: {name_below(file, root): checksum(file) for file in files}},
        licences=dict(tally.licences.most_common()),
        languages=tally.languages(),
        counts=counts,
        options=options.deciding(),
        versions={"rlvr_exp": __version__, **writer.by_text.tool()},
        files={file.relative_to(output).as_posix(): checksum(file) for file in sorted(output.rglob("*.jsonl"))},
    ).write(output)
    metrics = {"lines": counts["lines"], "records": counts["records"], "dropped": tally.dropped.total()}
    return f"written: {output}\n\n{page}", metrics
