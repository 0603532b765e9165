"""Chains: commands one after the other, each with the files that those before it have left.

A chain is a study with an order. A link starts once the link before it has completed; a link that has completed with the
same words is skipped. `chain.json` has the links and how each ended; `chain.md` and the chain's report show their results.
"""

import json
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from rlvr_exp.config.compose import compose_lenient
from rlvr_exp.config.schema import Config, measures, reads, trains
from rlvr_exp.config.study import CHAIN, PATH, PLACE, SERVED, Links
from rlvr_exp.config.words import one_experiment
from rlvr_exp.core.errors import DONE, InputError, Interrupted
from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.core.measures import counted
from rlvr_exp.records.context import COMPLETED, RunContext, StageResult, read_summary
from rlvr_exp.records.resumable_jsonl import FOLDER as JOURNALS
from rlvr_exp.report.page import ABSENT, differences
from rlvr_exp.runs.executors import Local
from rlvr_exp.runs.schedule import Runs, stop_of
from rlvr_exp.runs.study import Job, Place, Rounds, Run

STATE, PAGE = "chain.json", "chain.md"
LESSONS = "## Lessons"
EMPTY = "What was learned, and what is open: (yours to write; what stands here is kept)"
COUNTED = ("collect", "prepare")
"""Stages whose metrics count data."""
NOT_DATA = ("system/", "time/")
CHAINS_OWN = ("run.resume",)
"""Options that the chain itself gives a link."""
Link = Mapping[str, Any]


def run_links(config: Config, context: RunContext) -> StageResult:
    """Raises InputError if a command has a problem, before any is run; else what ends a link ends the chain."""
    links = links_of(config.chain, context.directory)
    order = _Order(links, context.directory)
    feed = _LinkRuns(order, context, follow=True)
    try:
        Local(jobs=1).run(feed, context)
    except Interrupted:
        feed.interrupted()
        raise
    if order.stopped is not None:
        run = order.stopped
        reason = run.summary.get("reason") or f"exit code {run.code}"
        raise stop_of(run.code, f"chain.links.{run.job.name}", f"{run.job.name} in {run.directory}: {reason}")
    last = order.done[-1]["summary"]
    seconds = {f"{one['name']}/seconds": one["summary"]["seconds"] for one in order.done}
    return StageResult(last["before"], last["after"], {"links": float(len(order.done)), **seconds})


def links_of(options: Links, root: Path) -> dict[Job, Path]:
    """The jobs of a chain, each with its directory. A job names the directories of those before it."""
    places = {CHAIN: str(root), PATH: options.path}
    found = {}
    for number, (name, words) in enumerate(options.runs.items(), 1):
        directory = root / f"{number:02d}_{name}"
        filled = [PLACE.sub(lambda match: places[match[1]], word) for word in words]
        more = options.endpoint if SERVED in words else options.policy if reads(_stage(filled), "model") else []
        found[Job(name, None, one_experiment([*filled, *more, *options.words]), (), label=name)] = directory
        places[name] = str(directory)
    return found


def _stage(words: Sequence[str]) -> str:
    return next(word.partition("=")[2] for word in words if word.startswith("+stage="))


class _Order(Rounds):
    """Links one after the other, up to the first that does not complete. Writes the chain's files after each.

    Raises:
        InputError: with the problems of the configurations alone: an earlier link may have yet to write a file.
    """

    def __init__(self, links: Mapping[Job, Path], root: Path):
        found = {job: compose_lenient(job.words) for job in links}
        if problems := [
            replace(problem, where=f"chain.links.{job.name}: {problem.where}")
            for job, checked in found.items()
            for problem in checked.problems
        ]:
            raise InputError(*problems)
        self.places = {job: Place(job, links[job], _completed(job, links[job]), found[job]) for job in links}
        self.done: list[dict[str, Any]] = []
        self.stopped: Run | None = None
        self._left, self._root = [*links], root

    def batch(self) -> Sequence[Job | Run]:
        return () if self.stopped is not None or not self._left else (self._left.pop(0),)

    def left(self) -> int:
        return len(self._left)

    def ended(self, run: Run) -> None:
        if run.code != DONE:
            self.stopped = run
            return
        command = shlex.join(["python", "-m", "rlvr_exp", *run.job.words])
        about = {"name": run.job.name, "command": command, "directory": run.directory.name}
        self.done.append({**about, "summary": read_summary(run.directory)})
        write_json(self._root / STATE, {"links": self.done})
        shown = self._root / PAGE
        written = shown.read_text(encoding="utf-8") if shown.exists() else ""
        write_text(shown, page(self._root, self.done, written))


class _LinkRuns(Runs):
    exact = True

    def __init__(self, order: _Order, context: RunContext, follow: bool):
        super().__init__(order, context, follow=follow)
        self._places = order.places

    def placed(self, batch: Sequence[Job | Run]) -> tuple[Sequence[Job | Run], list[Place]]:
        found = [self._places[job] for job in batch if isinstance(job, Job)]
        for place in found:
            if not place.reused and not _resumes(place) and place.directory.exists():
                shutil.rmtree(place.directory)  # What a stopped link of this chain has left: such a stage begins anew.
            write_json(_words_of(place.directory), list(place.job.words))
        return batch, found

    def own_words(self, place: Place) -> tuple[str, ...]:
        return ("run.resume=auto",) if _resumes(place) else ()


def _resumes(place: Place) -> bool:
    """Whether the link goes on in its directory."""
    stage = _stage(place.job.words)
    return trains(stage) or (measures(stage) and (place.directory / JOURNALS).is_dir())


def _words_of(directory: Path) -> Path:
    """The file of the words that a link was begun with, beside its directory."""
    return directory.with_suffix(".json")


def _completed(job: Job, directory: Path) -> bool:
    """Whether the directory has a completed run of the same words."""
    summary, words = read_summary(directory), _words_of(directory)
    if summary is None or summary["status"] != COMPLETED or not words.is_file():
        return False
    return json.loads(words.read_text(encoding="utf-8")) == list(job.words)


def page(root: Path, links: Sequence[Link], written: str = "") -> str:
    """
    Args:
        root: the chain's directory.
        links: those that have ended, in order.
        written: the page as it stands, whose lessons are kept.
    """
    parts = {
        "# Chain": _table(("link", "status", "seconds", "steps", "report"), map(_link, links)),
        "## Commands": [f"    {one['command']}" for one in links],
        "## Data": _table(("link", "data", "counts"), (row for one in links for row in _data(root, one))),
        "## Options that differ from the defaults of their stage": _table(
            ("link", "option", "here", "default"), (row for one in links for row in _options(root, one))
        ),
        "## Rates": _table(("link", "rate", "before", "after"), (row for one in links for row in _rates(one))),
        "## Checkpoints": _table(("link", "best", "latest"), (row for one in links for row in _checkpoints(root, one))),
    }
    shown = [line for title, lines in parts.items() if lines for line in (title, "", *lines, "")]
    return "\n".join([*shown, LESSONS, *(written.partition(LESSONS)[2] or f"\n\n{EMPTY}\n").split("\n")[1:]])


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """No lines without rows."""
    body = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}", *body] if body else []


def _link(one: Link) -> tuple[str, ...]:
    summary, report = one["summary"], f"{one['directory']}/report.html"
    return one["name"], summary["status"], f"{summary['seconds']:.0f}", str(summary["steps"]), f"[{report}]({report})"


def _data(root: Path, one: Link) -> Iterator[tuple[str, ...]]:
    config, summary = _config(root, one), one["summary"]
    if summary["stage"] in COUNTED:
        place = config[summary["stage"]].get("output") or ""
        metrics = {name: n for name, n in summary["metrics"].items() if isinstance(n, int | float)}
        counts = {name.rpartition("/")[2]: n for name, n in metrics.items() if not name.startswith(NOT_DATA)}
    else:
        place = (config.get("data") or {}).get("path") or "embedded"
        splits = _json(root / one["directory"] / "manifest.json").get("data") or {}
        counts = {split: found["tasks"] for split, found in splits.items()}
    if counts:
        yield one["name"], place, ", ".join(f"{n:,} {name}" for name, n in counts.items())


def _options(root: Path, one: Link) -> Iterator[tuple[str, ...]]:
    for key, values in differences(_config(root, one)).items():
        if key not in CHAINS_OWN and ABSENT not in values:
            yield (
                one["name"],
                key,
                *(value if isinstance(value, str) and value else json.dumps(value) for value in values),
            )


def _rates(one: Link) -> Iterator[tuple[str, ...]]:
    before, after = one["summary"]["before"], one["summary"]["after"]
    for name in dict.fromkeys([*before, *after]):
        yield one["name"], name, _rate(before.get(name)), _rate(after.get(name))


def _rate(rate: Any) -> str:
    if not isinstance(rate, Mapping):
        return ""
    return f"{rate['value']:.1%} [{rate['low']:.1%}, {rate['high']:.1%}], {counted(rate['n'])}"


def _checkpoints(root: Path, one: Link) -> Iterator[tuple[str, ...]]:
    folder = root / one["directory"] / "checkpoints"
    found = [folder / name for name in ("best", "latest")]
    if folder.is_dir():
        yield (
            one["name"],
            *(f"{one['directory']}/checkpoints/{path.resolve().name}" if path.exists() else "" for path in found),
        )


def _config(root: Path, one: Link) -> dict[str, Any]:
    return yaml.safe_load((root / one["directory"] / "config.yaml").read_text(encoding="utf-8"))


def _json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
