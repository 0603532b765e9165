"""The answers of +stage=infer: a line for each task, which opens to the program and the verifier's log. An answer in stages of
reasoning shows how it came to be: outputs with the tester's critique beside each, tests against all programs.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any

from rlvr_exp.report.curves import words
from rlvr_exp.report.data import RunData

MOST, MOST_OPEN, MOST_TESTS, MOST_PROGRAMS = 200, 3, 40, 16
"""Answers, those that are shown open, tests, and programs with a column of their own."""
MOST_CHARACTERS = 4000
"""Characters of a text."""


def answers_section(run: RunData) -> str:
    """'' for a run of another stage, or where its file of answers is gone."""
    named = Path(str(run.manifest.get("output", "")))
    places = (named, run.directory / named.name)  # The run may have been moved, or written by another folder.
    path = next((place for place in places if place.is_file()), None)
    if run.config.get("stage") != "infer" or path is None:
        return ""
    rows = list(islice(_rows(path), MOST))
    items = "".join(f"<li>{_answer(row, number < MOST_OPEN)}</li>" for number, row in enumerate(rows))
    source = (run.manifest.get("input") or {}).get("source", "")
    first = f"The first {MOST:,} answers" if len(rows) == MOST else f"{len(rows):,} answers"
    note = f'<p class="note">{first}, of {escape(str(source))}; all are in {escape(str(path))}.</p>'
    return f'{note}<ul class="logs">{items}</ul>' if rows else ""


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """Complete lines; the last one of a run that still goes may be torn."""
    with open(path, encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.endswith("\n"))


def _answer(row: Mapping[str, Any], shown: bool) -> str:
    outcome = row["outcome"] or "not judged"
    cases = f"{row['passed']:,} of {row['total']:,}" if row["total"] else ""
    tries = f"attempt {row['attempt']} of {row['attempts']}" if row["attempts"] > 1 else ""
    facts = ", ".join(filter(None, (cases, tries, f"{row['tokens']:,} tokens")))
    text = row["formatted"] or row["program"] or row["text"] or "(empty)"
    why = "" if row["outcome"] == "passed" else row["fault"] or row["log"] or ""
    log = f'<div class="log"><pre>{escape(why[:MOST_CHARACTERS])}</pre></div>' if why.strip() else ""
    return (
        f'<details{" open" if shown else ""}><summary><b>{escape(str(row["id"]))}</b> <span class="verdict {escape(outcome)}">'
        f"{escape(words(row['bucket'] or row['rule'] or outcome))}</span> <small>{facts}</small></summary>"
        f"{_shown(row, text)}{log}{_vote(row)}</details>"
    )


def _shown(row: Mapping[str, Any], text: str) -> str:
    """The answer, or how it came to be where that is known."""
    return worked_out(row) if row.get("stages") else f"<pre>{escape(text[:MOST_CHARACTERS])}</pre>"


def _vote(row: Mapping[str, Any]) -> str:
    """A row for each answer of the vote; '' where there was none."""
    cells = [
        (f"{number:,}", f"{place:,}", f"{one['votes']:,}", f"{one['shown_right']:.0%}", json.dumps(one["output"]))
        for number, answers in enumerate((row.get("voted") or {}).get("answers", ()), 1)
        for place, one in enumerate(answers, 1)
    ]
    if not cells:
        return ""
    names = ("held-back input", "answer", "votes", "shown pairs right", "output")
    heads = "".join(f"<th>{name}</th>" for name in names)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell[:MOST_CHARACTERS])}</td>' for cell in line)}</tr>" for line in cells
    )
    return f'<div class="wide"><table><tr>{heads}</tr>{rows}</table></div>'


def worked_out(row: Mapping[str, Any]) -> str:
    """Of a row of +stage=infer: the chosen chain, then the tests with a column for each sample's program."""
    return f"{_stages(row['stages'], row.get('critiques') or {})}{_tests(row)}{_unread(row)}"


def beside_answer(about: Mapping[str, Any]) -> str:
    """Of an evaluated episode: the outputs before its answer, folded, and the tester's tests with what came of them; '' of others."""
    earlier = list((about.get("stages") or {}).items())[:-1]
    chain = f"<details><summary>the stages before it</summary>{_stages(dict(earlier), {})}</details>" if earlier else ""
    if not about.get("tests"):
        return chain
    facts = [
        f"{name} {about[key]:.0%}"
        for name, key in (("valid", "validity"), ("passed by this answer", "pass_rate"))
        if about.get(key) is not None
    ]
    return f"{chain}<h4>tests <small>{', '.join(facts)}</small></h4>{_pre(about['tests'])}"


def _stages(stages: Mapping[str, str], critiques: Mapping[str, str]) -> str:
    heads = "<tr><th></th><th>solver</th><th>tester</th></tr>" if critiques else "<tr><th></th><th>solver</th></tr>"
    said = {stage: f"<td>{escape(critiques.get(stage, ''))}</td>" if critiques else "" for stage in stages}
    rows = "".join(
        f"<tr><th>{escape(stage)}</th><td>{_pre(text)}</td>{said[stage]}</tr>" for stage, text in stages.items()
    )
    return f'<div class="wide chain"><table>{heads}{rows}</table></div>'


def _tests(row: Mapping[str, Any]) -> str:
    """A row for each test: whether it is valid, and which programs it catches; then what each program passes."""
    samples, tests = row["samples"][:MOST_PROGRAMS], row.get("tests") or []
    if not tests and len(samples) < 2:
        return ""
    numbers = "".join(f"<th>{_number(place, row['sample'])}</th>" for place in range(len(samples)))
    heads = f"<tr><th>test</th><th>set</th><th></th>{numbers}</tr>"
    lines = "".join(_test(one, len(samples)) for one in tests[:MOST_TESTS])
    left = f'<p class="none">&hellip; {len(tests) - MOST_TESTS:,} more tests</p>' if len(tests) > MOST_TESTS else ""
    passed = _line("valid tests passed", [_share(one["pass_rate"]) for one in samples])
    hidden = _line("hidden tests", [escape(one["outcome"] or "not run") for one in samples])
    return f'<div class="wide marks"><table>{heads}{lines}{passed}{hidden}</table></div>{left}'


def _test(one: Mapping[str, Any], programs: int) -> str:
    marks = "".join(f"<td>{_mark(one, place)}</td>" for place in range(programs))
    valid = "valid" if one["valid"] else "invalid"
    kind = "passed" if one["valid"] else "failed"
    return (
        f"<tr><td><code>{escape(one['text'])}</code></td><td>{one['set'] + 1}</td>"
        f'<td><span class="verdict {kind}">{valid}</span></td>{marks}</tr>'
    )


def _mark(one: Mapping[str, Any], place: int) -> str:
    if not one["valid"]:
        return ""
    return '<span class="down">caught</span>' if place in one["catches"] else "passes"


def _line(name: str, cells: Sequence[str]) -> str:
    return f"<tr><th>{name}</th><td></td><td></td>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _number(place: int, chosen: int) -> str:
    return f"sample {place + 1}{', chosen' if place == chosen else ''}"


def _share(rate: float | None) -> str:
    return "&ndash;" if rate is None else f"{rate:.0%}"


def _unread(row: Mapping[str, Any]) -> str:
    """Sets in which there is no test."""
    known = {one["set"] for one in row.get("tests") or []}
    texts = [text for place, text in enumerate(row.get("written") or []) if place not in known]
    items = "".join(_pre(text) for text in texts)
    return f"<details><summary>{len(texts)} sets without a test</summary>{items}</details>" if texts else ""


def _pre(text: str) -> str:
    return f"<pre>{escape(text[:MOST_CHARACTERS]) or '(empty)'}</pre>"
