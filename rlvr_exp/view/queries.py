"""Questions to the index: runs, curves, filtered samples, a sample with its episode, tasks before and after.

Every function takes a connection of `Index.reading` and returns plain values for JSON.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvr_exp.tasks.completion import unified, without_thoughts
from rlvr_exp.view.facts import Facts, inside
from rlvr_exp.view.index import AFTER, ANSWERS, BEFORE, KINDS, LISTED, NUMBERS, ROWS, DamagedFile, read_rows

MOST_POINTS = 2000
"""Rows of metrics of a run that are sent. Of more, equally spaced ones with the first and the last."""
MOST_ROWS = 200
"""Samples of a page."""
MOST_TASKS = 5000
SECONDS = "time/step"
"""The metric whose sum is the time of a step."""
SORTED = ("place", *KINDS, *NUMBERS)
Rows = list[dict[str, Any]]


def all_runs(db: sqlite3.Connection) -> list[Facts]:
    """Facts of every run, with its number, its samples and the problems of its files."""
    files = (
        "SELECT run, sum(rows), group_concat(path || ': ' || problem, char(10)) FILTER (WHERE problem != '') FROM files"
    )
    counted = {run: (rows, problems) for run, rows, problems in db.execute(f"{files} GROUP BY run")}
    found = []
    for number, facts in db.execute("SELECT id, facts FROM runs WHERE facts IS NOT NULL ORDER BY path"):
        rows, problems = counted.get(number, (0, None))
        run = json.loads(facts)
        run["problems"] += problems.split("\n") if problems else []
        found.append({"id": number, "samples": rows or 0, **run})
    return found


def metric_names(db: sqlite3.Connection, run: int) -> list[str]:
    """Names of the metrics in the first and the last rows of a run."""
    ends = [
        db.execute(f"SELECT row FROM metrics WHERE run = ? ORDER BY step {way} LIMIT 3", [run]) for way in ("", "DESC")
    ]
    return list(dict.fromkeys(name for rows in ends for (row,) in rows for name in json.loads(row) if name != "step"))


def curves(
    db: sqlite3.Connection, run: int, names: Sequence[str], low: int = 0, high: int = AFTER
) -> dict[str, list[float | None]]:
    """Columns of metrics within a range of steps: `step`, `seconds` since the start, and those of the names."""
    paths = [f'$."{name}"' for name in (SECONDS, *names)]
    values = ", ".join(["json_extract(row, ?)"] * len(paths))
    found = {name: list[float | None]() for name in ("step", "seconds", *names)}
    steps = [step for (step,) in db.execute("SELECT step FROM metrics WHERE run = ? ORDER BY step", [run])]
    within = [step for step in steps if low <= step <= high]
    every = max(1, -(-len(within) // MOST_POINTS))
    kept = {*within[::-1][::every], *within[:1]}
    seconds = 0.0
    for step, took, *row in db.execute(
        f"SELECT step, {values} FROM metrics WHERE run = ? AND step <= ? ORDER BY step", [*paths, run, high]
    ):
        seconds += took if isinstance(took, int | float) else 0.0
        if step in kept:
            for name, value in zip(found, (step, seconds, *row), strict=True):
                found[name].append(value if isinstance(value, int | float) else None)
    return found


@dataclass(frozen=True)
class Filter:
    """The samples that are shown: those that have all given properties."""

    runs: tuple[int, ...]
    low_step: int = ANSWERS
    high_step: int = AFTER
    task: str = ""
    """A part of the task's id."""
    family: str = ""
    role: str = ""
    outcome: str = ""
    bucket: str = ""
    mode: str = ""
    low: float | None = None
    """Bounds of the reward."""
    high: float | None = None
    text: str = ""
    """Beginnings of words, each of which is in the completion, the prompt or the log."""

    def clause(self) -> tuple[str, list[Any]]:
        """The tables and conditions of a query, and its values."""
        places = ", ".join("?" * len(self.runs))
        parts = [f"f.run IN ({places}) AND f.place BETWEEN ? AND ?"]
        values: list[Any] = [*self.runs, self.low_step, self.high_step]
        for kind in LISTED:
            if wanted := getattr(self, kind):
                parts.append(f"s.{kind} = (SELECT id FROM names WHERE kind = '{kind}' AND text = ?)")
                values.append(wanted)
        if self.task:
            parts.append("s.task IN (SELECT id FROM names WHERE kind = 'task' AND instr(text, ?))")
            values.append(self.task)
        for sign, bound in ((">=", self.low), ("<=", self.high)):
            if bound is not None:
                parts.append(f"s.reward {sign} ?")
                values.append(bound)
        for word in _words(self.text):
            own = "s.id IN (SELECT rowid FROM words WHERE words MATCH ?)"
            shared = "s.first IN (SELECT rowid FROM words WHERE words MATCH ?)"
            parts.append(f"({own} OR {shared})")
            values += [f'{{completion log}} : "{word}"*', f'prompt : "{word}"*']
        tables = f"files f CROSS JOIN samples s ON s.id >= f.id * {ROWS} AND s.id < (f.id + 1) * {ROWS}"
        return f"FROM {tables} WHERE {' AND '.join(parts)}", values


def _words(text: str) -> list[str]:
    """The words of a search as the index splits texts: letters, digits and underscores."""
    return "".join(one if one.isalnum() or one == "_" else " " for one in text).split()


def count(db: sqlite3.Connection, chosen: Filter) -> int:
    """The number of samples of a filter."""
    if chosen == Filter(chosen.runs, chosen.low_step, chosen.high_step):
        places = ", ".join("?" * len(chosen.runs))
        query = f"SELECT sum(rows) FROM files WHERE run IN ({places}) AND place BETWEEN ? AND ?"
        return db.execute(query, [*chosen.runs, chosen.low_step, chosen.high_step]).fetchone()[0] or 0
    clause, values = chosen.clause()
    return db.execute(f"SELECT count(*) {clause}", values).fetchone()[0]


def samples(
    db: sqlite3.Connection,
    chosen: Filter,
    sort: str = "place",
    down: bool = False,
    offset: int = 0,
    most: int = MOST_ROWS,
) -> Rows:
    """Samples of a filter in order, without their texts. Those of equal rank are in the order of their files."""
    clause, values = chosen.clause()
    way = "DESC" if down else "ASC"
    order = f"f.place {way}, f.run, s.id"
    if sort in KINDS:  # By the text of its name; samples without one come last.
        order = f"s.{sort} IS NULL, (SELECT text FROM names WHERE id = s.{sort}) {way}, s.id"
    elif sort != "place":
        order = f"s.{sort} IS NULL, s.{sort} {way}, s.id"
    columns = ", ".join(f"s.{name}" for name in (*KINDS, *NUMBERS))
    found = db.execute(
        f"SELECT f.run, f.place, s.id % {ROWS}, {columns} {clause} ORDER BY {order} LIMIT ? OFFSET ?",
        [*values, min(most, MOST_ROWS), offset],
    )
    names = ("run", "place", "row", *KINDS, *NUMBERS)
    rows = [dict(zip(names, row, strict=True)) for row in found]
    return _named(db, rows)


def _named(db: sqlite3.Connection, rows: Rows) -> Rows:
    """The rows with texts in place of the ids of names."""
    wanted = {row[kind] for row in rows for kind in KINDS} - {None}
    places = ", ".join("?" * len(wanted))
    texts = dict(db.execute(f"SELECT id, text FROM names WHERE id IN ({places})", [*wanted]))
    return [{**row, **{kind: texts.get(row[kind]) for kind in KINDS}} for row in rows]


def choices(db: sqlite3.Connection, runs: Sequence[int]) -> dict[str, dict[str, int]]:
    """The values of the columns with few values, with the number of their samples, the most frequent first."""
    places = ", ".join("?" * len(runs))
    found: dict[str, dict[str, int]] = {kind: {} for kind in LISTED}
    for kind, text, rows in db.execute(
        f"""SELECT n.kind, n.text, sum(c.rows) AS rows FROM files f JOIN counts c ON c.file = f.id
        JOIN names n ON n.id = c.name WHERE f.run IN ({places}) GROUP BY n.id ORDER BY rows DESC""",
        list(runs),
    ):
        found[kind][text] = rows
    return found


def full_samples(db: sqlite3.Connection, root: Path, chosen: Filter) -> Iterator[dict[str, Any]]:
    """All samples of a filter with their texts, in the order of their files. Each file is read once."""
    clause, values = chosen.clause()
    names = dict(db.execute("SELECT id, path FROM runs"))
    query = f"SELECT f.id, f.run, f.path, s.id % {ROWS} {clause} ORDER BY f.run, f.place, s.id"
    current = 0
    rows: Iterator[tuple[int, dict[str, Any]]] = iter(())
    for number, run, path, place in db.execute(query, values):
        if number != current:
            current, rows = number, _with_prompts(root, path)
        for at, row in rows:
            if at == place:
                yield {"run": names[run], **row}
                break


def _with_prompts(root: Path, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a file by their place, each with its prompt, which the file has once for each group."""
    real = inside(root, root / path)
    if real is None:
        return
    prompts: dict[Any, str] = {}
    try:
        for at, row in enumerate(read_rows(real)):
            key = row.get("group", row.get("task"))
            yield at, {**row, "prompt": prompts.setdefault(key, row.get("prompt", ""))}
    except DamagedFile:  # The index has its rows up to here, and its problem.
        return


def whole_sample(db: sqlite3.Connection, root: Path, run: int, place: int, row: int) -> dict[str, Any] | None:
    """A sample with its texts and the other turns of its episode; None if the index does not have it."""
    found = db.execute("SELECT id, path FROM files WHERE run = ? AND place = ?", [run, place]).fetchone()
    if found is None:
        return None
    number, path = found
    at = number * ROWS + row
    wanted = {
        row,
        *(id % ROWS for (id,) in db.execute(EPISODE, {"id": at, "low": number * ROWS, "high": at | ROWS - 1})),
    }
    rows = {place: one for place, one in _with_prompts(root, path) if place in wanted}
    if row not in rows:
        return None
    answer, thoughts = apart(rows[row]["completion"])
    turns = [{**one, "place": place} for place, one in _turns(rows, row)]
    return {**rows[row], "answer": answer, "thoughts": thoughts, "turns": turns, "matrix": _matrix(rows, row)}


EPISODE = (
    "SELECT b.id FROM samples a JOIN samples b ON b.task = a.task WHERE a.id = :id AND b.id BETWEEN :low AND :high"
)


def apart(completion: str | None) -> tuple[str, str]:
    """The answer of a completion and the thoughts before it."""
    text, answer = unified(completion or ""), without_thoughts(completion or "")
    begin = text.rfind(answer.strip()) if answer.strip() else len(text)
    return (answer, text[:begin].strip()) if begin > 0 and answer != text else (text, "")


def _turns(rows: Mapping[int, dict[str, Any]], row: int) -> list[tuple[int, dict[str, Any]]]:
    """The turns of a sample's episode with it, by place; empty for an episode of one turn.

    A turn follows another if its prompt has the other's completion. Of a group, the turn with the sample's number is taken.
    """
    own = rows[row]

    def follows(later: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
        text = (earlier["completion"] or "").strip()
        return bool(text) and later.get("group", 0) > earlier.get("group", 0) and text in later["prompt"]

    found: dict[Any, tuple[int, dict[str, Any]]] = {own.get("group"): (row, own)}
    for place, one in sorted(rows.items(), key=lambda item: item[1]["sample"] != own["sample"]):
        if follows(own, one) or follows(one, own):
            found.setdefault(one["group"], (place, one))
    return [found[group] for group in sorted(found)] if len(found) > 1 else []


def _matrix(rows: Mapping[int, dict[str, Any]], row: int) -> dict[str, Any] | None:
    """The programs of an episode and the tests that ran against them; None for an episode without tests."""
    own = rows[row]
    if own.get("tests") and own.get("samples"):  # An answer of +stage=infer.
        return {"programs": own["samples"], "tests": own["tests"], "ran": len(own["samples"])}
    about = {place: one.get("about") or {} for place, one in rows.items()}
    if not about[row].get("role"):
        return None
    programs = {facts["program"]: rows[place] for place, facts in about.items() if "program" in facts}
    sets = [facts for facts in about.values() if isinstance(facts.get("tests"), list)]
    tests = [{**test, "set": k, "ran": facts["programs"]} for k, facts in enumerate(sets) for test in facts["tests"]]
    if not programs or not tests:
        return None
    shown = [{"program": one["completion"], "outcome": one["outcome"]} for _, one in sorted(programs.items())]
    return {"programs": shown, "tests": tests, "ran": len(shown)}


def tasks(db: sqlite3.Connection, run: int) -> Rows:
    """Tasks that were measured before or after training, with (passed, judged) of their samples; the largest change first."""
    passed = "sum(s.outcome = (SELECT id FROM names WHERE kind = 'outcome' AND text = 'passed'))"
    clause, values = Filter((run,)).clause()
    query = f"SELECT f.place, s.task, s.family, {passed}, count(*) {clause} AND f.place IN (?, ?) GROUP BY 1, 2"
    found: dict[int, dict[str, Any]] = {}
    for place, task, family, right, judged in db.execute(query, [*values, BEFORE, AFTER]):
        row = found.setdefault(task, {**dict.fromkeys(KINDS), "task": task, "family": family})
        row[SIDES[place]] = [right or 0, judged]

    def change(row: dict[str, Any]) -> float:
        before, after = (row[side][0] / row[side][1] if side in row else 0.0 for side in SIDES.values())
        return -abs(after - before) if len(row.keys() & {*SIDES.values()}) == 2 else 1.0

    rows = [
        {name: row[name] for name in ("task", "family", *SIDES.values()) if name in row}
        for row in _named(db, list(found.values()))
    ]
    return sorted(rows, key=lambda row: (change(row), row["task"]))[:MOST_TASKS]


SIDES = {BEFORE: "before", AFTER: "after"}


def both_sides(db: sqlite3.Connection, root: Path, run: int, task: str) -> dict[str, Rows]:
    """All samples of a task before and after training, with their texts."""
    sides = {}
    for place, side in SIDES.items():
        chosen = Filter((run,), place, place, task)
        sides[side] = [
            {**row, "answer": apart(row["completion"])[0], "thoughts": apart(row["completion"])[1]}
            for row in full_samples(db, root, chosen)
            if row["task"] == task
        ]
    return sides
