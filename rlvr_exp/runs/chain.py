"""Chains: commands in order, each with the files of the earlier ones.

A link starts when the link before it has completed. A link that has completed with the same words is skipped. If the words of a link
have changed, the user removes its results and those that depend on them before the chain continues. `chain.json` lists the links and
their results; `chain.md` and the chain's report show them.
"""

import json
import re
import shlex
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from rlvr_exp.config.compose import compose_lenient
from rlvr_exp.config.needs import loads_weights, missing_artifacts
from rlvr_exp.config.run import planned
from rlvr_exp.config.schema import Config, measures, reads, trains
from rlvr_exp.config.schema_check import Checked
from rlvr_exp.config.study import CHAIN, PATH, PLACE, SERVED, Links
from rlvr_exp.config.words import one_experiment
from rlvr_exp.core.errors import DONE, InputError, InputProblem, Interrupted
from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.core.measures import counted
from rlvr_exp.evaluation.metrics import METRICS
from rlvr_exp.evaluation.paired import in_words
from rlvr_exp.evaluation.saved import changes
from rlvr_exp.launch.preflight import other_conditions
from rlvr_exp.launch.resume import directory_of, steps_of
from rlvr_exp.memory.advice import in_short
from rlvr_exp.memory.hours import duration, planned_hours
from rlvr_exp.records.context import COMPLETED, RunContext, StageResult, read_summary
from rlvr_exp.records.resumable_jsonl import FOLDER as JOURNALS
from rlvr_exp.records.rollout_files import EvalSample, evaluation_path, read_evaluation
from rlvr_exp.report.page import ABSENT, differences
from rlvr_exp.runs.executors import Local
from rlvr_exp.runs.schedule import Runs, stop_of
from rlvr_exp.runs.study import Job, JobRun, PlacedJob, Rounds

STATE, PAGE = "chain.json", "chain.md"
LESSONS = "## Lessons"
EMPTY = "(Write what you learned and what is open. Later runs of the chain keep this text.)"
COUNTED = ("collect", "prepare")
"""Stages whose metrics count data."""
NOT_DATA = ("system/", "time/")
CHAINS_OWN = ("run.resume",)
"""Options that the chain itself gives a link."""
Link = Mapping[str, Any]


def run_links(config: Config, context: RunContext) -> StageResult:
    """Run the links. Raises InputError before the first link if any command has a problem. An error of a link ends the chain."""
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
        stage = _stage(words)
        more = options.endpoint if SERVED in words else options.policy if reads(stage, "model") else []
        given = [*words, *more, *options.stages.get(stage, ()), *options.words]
        filled = [PLACE.sub(lambda match: places[match[1]], word) for word in given]
        found[Job(name, None, one_experiment(filled), (), label=name)] = directory
        places[name] = str(directory)
    return found


def _stage(words: Sequence[str]) -> str:
    return next(word.partition("=")[2] for word in words if word.startswith("+stage="))


def chain_plan(config: Config) -> str:
    """The links of a chain: command, memory and hours of each, what is to be fetched, and the sum of the hours.

    Raises:
        InputError: with the problems of any link.
    """
    root = directory_of(config) or Path("outputs") / "DATE" / "TIME_chain"
    places = _Order(links_of(config.chain, root), root).places.values()
    lines, needs, total = [f"chain (nothing is run): {counted(len(places), 'link')}"], dict[str, None](), 0.0
    for place in places:
        own = place.checked.config
        done = ", completed already" if place.reused else ""
        lines += ["", f"{place.directory.name}{done}: {shlex.join(['python', '-m', 'rlvr_exp', *place.job.words])}"]
        needs |= dict.fromkeys(
            f"to fetch: {one.problem.got}: {one.command}" for one in missing_artifacts(own) if one.command
        )
        if loads_weights(own):
            own = compose_lenient(_from_its_start(place.job.words, places)).config
            lines += [f"  {line}" for line in in_short(own)]
            with suppress(ValueError):  # in_short has told it.
                found = planned_hours(own)
                total += 0.0 if found is None or place.reused else found.total
    hours = [f"about {duration(total)} of training and measurement in all"] if total else []
    return "\n".join([*lines, "", *needs, *hours])


def _from_its_start(words: Sequence[str], places: Collection[PlacedJob]) -> list[str]:
    """The words of a link with the model of an earlier link in place of its checkpoint, which is not there yet."""
    own = list(words)
    for place in places:
        start = next((word for word in own if word.startswith(f"model.path={place.directory}/")), None)
        if start is not None:
            own.remove(start)
            earlier = _from_its_start(place.job.words, places)
            own = [*(word for word in earlier if word.startswith("model.")), *own]
    return own


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
        if problems := [*_without_best(links, found), *_other_conditions(links, found), *_outdated(links, root)]:
            raise InputError(*problems)
        self.places = {job: PlacedJob(job, links[job], _completed(job, links[job]), found[job]) for job in links}
        self.done: list[dict[str, Any]] = []
        self.stopped: JobRun | None = None
        self._left, self._root = [*links], root

    def batch(self) -> Sequence[Job | JobRun]:
        return () if self.stopped is not None or not self._left else (self._left.pop(0),)

    def left(self) -> int:
        return len(self._left)

    def ended(self, run: JobRun) -> None:
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

    def placed(self, batch: Sequence[Job | JobRun]) -> tuple[Sequence[Job | JobRun], list[PlacedJob]]:
        found = [self._places[job] for job in batch if isinstance(job, Job)]
        for place in found:
            anew = not _resumes(place) or _begun_with(place.directory) not in (None, list(place.job.words))
            if not place.reused and anew and place.directory.exists():
                shutil.rmtree(place.directory)  # A stopped link left it, without results.
            write_json(_words_of(place.directory), list(place.job.words))
        return batch, found

    def own_words(self, place: PlacedJob) -> tuple[str, ...]:
        return ("run.resume=auto",) if _resumes(place) else ()


def _resumes(place: PlacedJob) -> bool:
    """Whether the link resumes in its directory."""
    stage = _stage(place.job.words)
    return trains(stage) or (measures(stage) and (place.directory / JOURNALS).is_dir())


def _words_of(directory: Path) -> Path:
    """The file of the words that a link was begun with, beside its directory."""
    return directory.with_suffix(".json")


def _begun_with(directory: Path) -> list[str] | None:
    """The words that the link in this directory was begun with; None if it was not begun."""
    words = _words_of(directory)
    return json.loads(words.read_text(encoding="utf-8")) if words.is_file() else None


def _completed(job: Job, directory: Path) -> bool:
    """Whether the directory has a completed run of the same words."""
    return _ended(directory) and _begun_with(directory) == list(job.words)


def _ended(directory: Path) -> bool:
    return (read_summary(directory) or {}).get("status") == COMPLETED


def _outdated(links: Mapping[Job, Path], root: Path) -> Iterator[InputProblem]:
    """Links whose command has changed since their results were written, and links whose results depend on them."""
    to_run: dict[Path, str] = {}
    """Output paths of links that run, each with the name of its link."""
    for job, directory in links.items():
        theirs, ours = _begun_with(directory), list(job.words)
        source = next((to_run[path] for path in to_run if any(_reads(word, path, root) for word in ours)), None)
        if source is not None or not _completed(job, directory):
            outputs = [Path(word.partition("=")[2]) for word in ours if ".output=" in word]
            to_run |= dict.fromkeys([directory, *outputs], job.name)
        ended, where, remedy = _ended(directory), f"chain.links.{job.name}", f"rm -r {directory}, or a new run.dir"
        if theirs is None or not (ended or steps_of(directory) or (directory / JOURNALS).is_dir()):
            continue
        if theirs != ours:
            got, allowed = (
                shlex.join(word for word in some if word not in other)
                for some, other in ((theirs, ours), (ours, theirs))
            )
            yield InputProblem(
                where, "the command has changed since its results were written", got, allowed, "", remedy
            )
        elif ended and source is not None:
            what = f"its results depend on {source}, which runs again"
            yield InputProblem(where, what, str(directory), "", "", remedy)


def _reads(word: str, written: Path, root: Path) -> bool:
    """Whether a word names an output path, a folder above it or a file below it."""
    named = [Path(path) for path in re.findall(rf"{re.escape(str(root))}(?:/[^,\]]*)?", word)]
    return any(path.is_relative_to(written) or written.is_relative_to(path) for path in named)


def _other_conditions(links: Mapping[Job, Path], found: Mapping[Job, Checked]) -> Iterator[InputProblem]:
    """Links whose baseline is an earlier link that measures in another way."""
    for job in links:
        for earlier, directory in links.items():
            evaluate = found[job].config.evaluate
            if evaluate is not None and evaluate.baseline and Path(evaluate.baseline) == directory:
                yield from (
                    replace(problem, where=f"chain.links.{job.name}: {problem.where}")
                    for problem in other_conditions(found[earlier].config, found[job].config)
                )


def _without_best(links: Mapping[Job, Path], found: Mapping[Job, Checked]) -> Iterator[InputProblem]:
    """Links that read the best checkpoint of a link that looks for none."""
    for job in links:
        for earlier, directory in links.items():
            named = next((word for word in job.words if f"{directory}/checkpoints/best" in word), None)
            if named is not None and not planned(found[earlier].config).active:
                key, _, got = named.partition("=")
                what, allowed = f"{earlier.name} keeps no best checkpoint", f"{{{earlier.name}}}/checkpoints/latest"
                remedy = f"run.select.every_steps=N for {earlier.name}, or the latest checkpoint"
                yield InputProblem(f"chain.links.{job.name}: {key}", what, got, allowed, "", remedy)


def page(root: Path, links: Sequence[Link], written: str = "") -> str:
    """The chain's page.

    Args:
        root: the chain's directory.
        links: the links that have ended, in order.
        written: the previous page, whose lessons are kept.
    """
    ends, data, options, rates, changed, checkpoints = (list[Sequence[str]]() for _ in range(6))
    evaluated: dict[str, list[EvalSample]] = {}
    for one in links:
        name, summary, directory = one["name"], one["summary"], root / one["directory"]
        config = yaml.safe_load((directory / "config.yaml").read_text(encoding="utf-8"))
        report = f"{one['directory']}/report.html"
        seconds, steps = f"{summary['seconds']:.0f}", str(summary["steps"])
        ends.append((name, summary["status"], seconds, steps, f"[{report}]({report})"))
        place, counts = _data(config, summary, directory)
        if counts:
            data.append((name, place, ", ".join(f"{count:,} {what}" for what, count in counts.items())))
        for key, values in differences(config).items():
            if key not in CHAINS_OWN and ABSENT not in values:
                shown = (value if isinstance(value, str) and value else json.dumps(value) for value in values)
                options.append((name, key, *shown))
        before, after = summary["before"], summary["after"]
        for rate in dict.fromkeys([*before, *after]):
            rates.append((name, rate, _rate(before.get(rate)), _rate(after.get(rate))))
        if evaluation_path(directory, "after").is_file():
            answers = read_evaluation(directory, "after")
            changed += _changes(name, answers, evaluated)
            evaluated[name] = answers
        if (folder := directory / "checkpoints").is_dir():
            paths = [folder / which for which in ("best", "latest")]
            steps_of = (
                f"{one['directory']}/checkpoints/{path.resolve().name}" if path.exists() else "" for path in paths
            )
            checkpoints.append((name, *steps_of))
    parts = {
        "# Chain": [f"{counted(len(links), 'link')} completed."],
        "## Rates": _table(("link", "rate", "before", "after"), rates),
        "## Paired changes between links": _table(("from the end of", "to the end of", "rate", "change"), changed),
        "## Links": _table(("link", "status", "seconds", "steps", "report"), ends),
        "## Commands": [f"    {one['command']}" for one in links],
        "## Data": _table(("link", "data", "counts"), data),
        "## Options that differ from the defaults of their stage": _table(
            ("link", "option", "here", "default"), options
        ),
        "## Checkpoints": _table(("link", "best", "latest"), checkpoints),
    }
    lines = [line for title, some in parts.items() if some for line in (title, "", *some, "")]
    return "\n".join([*lines, LESSONS, *(written.partition(LESSONS)[2] or f"\n\n{EMPTY}\n").split("\n")[1:]])


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table; none without rows."""
    body = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}", *body] if body else []


def _data(config: Mapping[str, Any], summary: Mapping[str, Any], directory: Path) -> tuple[str, dict[str, float]]:
    """The path of a link's data, and its counts."""
    if summary["stage"] in COUNTED:
        metrics = {name: n for name, n in summary["metrics"].items() if isinstance(n, int | float)}
        counts = {name.rpartition("/")[2]: n for name, n in metrics.items() if not name.startswith(NOT_DATA)}
        return config[summary["stage"]].get("output") or "", counts
    manifest = directory / "manifest.json"
    splits = (json.loads(manifest.read_text(encoding="utf-8")) if manifest.is_file() else {}).get("data") or {}
    return (config.get("data") or {}).get("path") or "embedded", {split: of["tasks"] for split, of in splits.items()}


def _changes(
    name: str, answers: Sequence[EvalSample], earlier: Mapping[str, Sequence[EvalSample]]
) -> list[Sequence[str]]:
    """The paired change of each rate from the last link that was measured on the same tasks."""
    for other, before in reversed([*earlier.items()]):
        if found := changes(before, answers, METRICS):
            return [(other, name, rate, in_words(change, rate)) for rate, change in found.items()]
    return []


def _rate(rate: Any) -> str:
    if not isinstance(rate, Mapping):
        return ""
    return f"{rate['value']:.1%} [{rate['low']:.1%}, {rate['high']:.1%}], {counted(rate['n'])}"
